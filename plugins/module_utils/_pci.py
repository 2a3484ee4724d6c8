# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spelling of PCI addresses. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"^(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$")


def normalise(text: str) -> str | None:
    """The kernel's spelling (0000:07:00.0) of an address as NVML (00000000:07:00.0) or lspci (07:00.0) write it; None if it is none."""
    match = _ADDRESS.match(text.strip())
    if not match:
        return None
    domain = int(match.group(1) or "0", 16)
    return f"{domain:04x}:{match.group(2)}:{match.group(3)}.{match.group(4)}".lower()
