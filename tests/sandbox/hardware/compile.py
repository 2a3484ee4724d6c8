#!/usr/bin/env python3
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiles a mix into one hardware description per node. Usage: compile.py MIX FOLDER"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sandbox_hardware.mix import MixError, compile_mix


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: compile.py MIX FOLDER", file=sys.stderr)
        return 2
    try:
        nodes = compile_mix(Path(sys.argv[1]))
    except MixError as error:
        print(error, file=sys.stderr)
        return 1
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name, hardware in nodes.items():
        text = json.dumps(hardware, indent=1, sort_keys=True) + "\n"
        path = folder / f"{name}.json"
        # In place: a bind mount of a file follows the file and not its name.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
