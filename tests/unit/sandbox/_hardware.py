# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sandbox's hardware compiler and the nodes' programs, where tests find them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
HARDWARE = ROOT / "tests/sandbox/hardware"
for folder in (HARDWARE, HARDWARE / "node/usr/local/lib/gpu-sandbox"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from sandbox_hardware import describe, profiles  # noqa: E402

PROFILES = sorted(path.stem for path in (ROOT / "data/node-profiles").glob("*.yaml"))


def node(profile: str = "hgx_a100_8", sandbox: str = "test", name: str = "n1", **declared: Any) -> dict[str, Any]:
    """The description of one node, as the compiler writes it."""
    return describe.node(sandbox, {"name": name, **declared}, profiles.load(profile, "test"))
