# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU lists as the kernel writes them ("0-3,8"). PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterable


def parse(text: str) -> tuple[int, ...]:
    """Return the sorted CPUs of a list such as "0-3,8"; raise ValueError when it is not one."""
    cpus: set[int] = set()
    for part in str(text).replace(" ", "").split(","):
        if not part:
            continue
        first, dash, last = part.partition("-")
        low = int(first)
        high = int(last) if dash else low
        if low < 0 or high < low or high > 65535:
            raise ValueError(f"{part!r} is not a range of CPUs")
        cpus.update(range(low, high + 1))
    return tuple(sorted(cpus))


def text(cpus: Iterable[int]) -> str:
    """Return the shortest list that names exactly these CPUs."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def cores(cpus: tuple[int, ...], threads_per_core: int) -> tuple[tuple[int, ...], ...]:
    """Group the CPUs of one NUMA node into physical cores.

    Linux numbers the first threads of all cores first and their siblings after them, so the siblings of a NUMA
    node with n cores are n places apart in its own list ("0-63,128-191": 0 and 128). A list that does not
    divide is taken as it stands, one CPU a core.
    """
    count, rest = divmod(len(cpus), threads_per_core)
    if threads_per_core == 1 or rest:
        return tuple((cpu,) for cpu in cpus)
    return tuple(tuple(cpus[index + thread * count] for thread in range(threads_per_core)) for index in range(count))
