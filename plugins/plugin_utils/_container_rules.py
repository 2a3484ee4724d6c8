# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What podman reads and the container toolkit writes, from data/compat.yml. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml

_DATA = Path(__file__).resolve().parents[2] / "data"


@functools.lru_cache(maxsize=1)
def rules() -> dict[str, Any]:
    """What the module container_toolkit takes as _rules."""
    compat = yaml.safe_load((_DATA / "compat.yml").read_text(encoding="utf-8"))
    return {
        "toolkits": [{key: row[key] for key in ("toolkit", "cdi", "without_gids")} for row in compat["container_toolkit"]["rows"]],
        "podman": [{key: row[key] for key in ("podman", "cdi")} for row in compat["podman_cdi"]["rows"]],
    }
