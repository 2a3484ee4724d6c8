# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks up the UUIDs of a replica's devices before its server starts: those of MIG are new each time an instance is made."""

from __future__ import annotations

import json
import os
import sys

MAP = "/run/heterogpu/devices.json"
FOLDER = "/run/heterogpu/triton"


def main(name: str) -> int:
    wanted = [key for key in os.environ.get("DEVICES", "").split(",") if key]
    try:
        with open(MAP, encoding="utf-8") as stream:
            known = json.load(stream)
    except (OSError, ValueError) as error:
        return fail(f"Replica {name} cannot look up its device, because {MAP} cannot be read ({error}); see `journalctl -u heterogpu-gpu`.")
    missing = [key for key in wanted if not known.get(key)]
    if missing or not wanted:
        return fail(
            f"Replica {name} needs the device {', '.join(missing) or 'that its environment does not name'}, which does not exist now; "
            "see `journalctl -u heterogpu-gpu`, or run the role mig."
        )
    uuids = ",".join(known[key] for key in wanted)
    os.makedirs(FOLDER, mode=0o755, exist_ok=True)
    path = f"{FOLDER}/{name}.env"
    with open(f"{path}.new", "w", encoding="utf-8") as stream:
        stream.write(f"NVIDIA_VISIBLE_DEVICES={uuids}\nCUDA_VISIBLE_DEVICES={uuids}\n")
    os.chmod(f"{path}.new", 0o644)
    os.replace(f"{path}.new", path)
    return 0


def fail(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
