# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Adds up what several consumers need per file system and compares it with what is free."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

_MIB = 1024 * 1024


@dataclass(frozen=True)
class SpaceNeed:
    path: str
    mib: int


@dataclass(frozen=True)
class FileSystem:
    path: str
    needed_mib: int
    free_mib: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(needs: Sequence[SpaceNeed]) -> list[FileSystem]:
    needed: dict[str, int] = {}
    for need in needs:
        mount_point = _mount_point(need.path)
        needed[mount_point] = needed.get(mount_point, 0) + need.mib
    return [FileSystem(path, mib, _free_mib(path)) for path, mib in sorted(needed.items())]


def _mount_point(path: str) -> str:
    path = os.path.realpath(path)
    while not os.path.exists(path) or not os.path.ismount(path):
        path = os.path.dirname(path)
    return path


def _free_mib(path: str) -> int:
    status = os.statvfs(path)
    return status.f_bfree * status.f_frsize // _MIB
