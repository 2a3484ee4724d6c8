# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes trees of small files, as sysfs and procfs have them."""

from __future__ import annotations

import os
from typing import Any


class Tree:
    """A folder; values become files with one line."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._shared: dict[str, str] = {}

    def path(self, name: str) -> str:
        return os.path.join(self.root, name.lstrip("/"))

    def file(self, name: str, value: Any, mode: int = 0o444) -> None:
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # A file in the same place may share its content with others.
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(f"{value}\n")
        os.chmod(path, mode)

    def files(self, folder: str, values: dict[str, Any]) -> None:
        for name, value in values.items():
            self.file(f"{folder}/{name}", value)

    def constants(self, folder: str, values: dict[str, Any]) -> None:
        """Files that nobody writes: equal ones are one file under many names, or 256 CPUs would cost each node 40 MiB of memory."""
        os.makedirs(self.path(folder), exist_ok=True)
        for name, value in values.items():
            path, text = f"{folder}/{name}", str(value)
            if text in self._shared:
                os.link(self._shared[text], self.path(path))
            else:
                self.file(path, text)
                self._shared[text] = self.path(path)

    def folder(self, name: str) -> str:
        path = self.path(name)
        os.makedirs(path, exist_ok=True)
        return path

    def link(self, name: str, target: str) -> None:
        """A relative link, so that it holds wherever the tree is mounted."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        relative = os.path.relpath(self.path(target), os.path.dirname(path))
        if not os.path.islink(path):
            os.symlink(relative, path)


def cpu_numbers(cpulist: str) -> list[int]:
    numbers: list[int] = []
    for part in cpulist.split(","):
        first, _dash, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def cpu_list(numbers: list[int]) -> str:
    """0-3,8 for 0 1 2 3 8."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def cpu_mask(numbers: list[int]) -> str:
    """Hexadecimal groups of 32 bits, as sysfs writes CPU masks."""
    mask = sum(1 << number for number in numbers)
    groups: list[str] = []
    while mask or not groups:
        groups.append(f"{mask & 0xFFFFFFFF:08x}")
        mask >>= 32
    return ",".join(reversed(groups))
