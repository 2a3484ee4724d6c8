# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NUMA nodes, CPUs, memory and huge pages. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs

_TOTAL = re.compile(r"MemTotal:\s+(\d+) kB")


def cpu_numbers(cpulist: str) -> list[int]:
    """0-2,8 is 0 1 2 8."""
    numbers: list[int] = []
    for part in filter(None, cpulist.strip().split(",")):
        first, _dash, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def read(sysfs: Sysfs) -> dict[str, Any]:
    online = sysfs.text("sys/devices/system/cpu/online")
    siblings = {number: _siblings(sysfs, number) for number in cpu_numbers(online or "")}
    nodes = [_node(sysfs, node, siblings) for node in sysfs.numa_ids()]
    known = [node["memory_mib"] for node in nodes if node["memory_mib"] is not None]
    return {
        "numa_nodes": nodes,
        "cpus": _cpus(sysfs, online, siblings),
        "memory_mib": sum(known) if known else _memory_mib(sysfs.text("proc/meminfo")),
        "hugepages": [{"numa_node": node["id"], **pages} for node in nodes for pages in node["hugepages"]],
    }


def _siblings(sysfs: Sysfs, number: int) -> str:
    """The CPUs of one core, which is one CPU where there is no SMT."""
    return sysfs.text(f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list") or str(number)


def _node(sysfs: Sysfs, node: int, siblings: dict[int, str]) -> dict[str, Any]:
    folder = f"sys/devices/system/node/node{node}"
    cpus = sysfs.text(f"{folder}/cpulist")
    return {
        "id": node,
        "cpus": cpus,
        # A core stands where its first CPU does; CPUs that are offline have no core.
        "cores": list(dict.fromkeys(siblings[number] for number in cpu_numbers(cpus or "") if number in siblings)),
        "memory_mib": _memory_mib(sysfs.text(f"{folder}/meminfo")),
        "distances": [int(part) for part in (sysfs.text(f"{folder}/distance") or "").split()],
        "hugepages": [_pages(sysfs, f"{folder}/hugepages", name) for name in sysfs.names(f"{folder}/hugepages")],
    }


def _pages(sysfs: Sysfs, folder: str, name: str) -> dict[str, Any]:
    return {
        "size_kib": int(name[len("hugepages-") : -len("kB")]),
        "total": sysfs.number(f"{folder}/{name}/nr_hugepages"),
        "free": sysfs.number(f"{folder}/{name}/free_hugepages"),
    }


def _cpus(sysfs: Sysfs, online: str | None, siblings: dict[int, str]) -> dict[str, Any]:
    packages = {sysfs.number(f"sys/devices/system/cpu/cpu{number}/topology/physical_package_id") for number in siblings}
    cores = set(siblings.values())
    return {
        "online": online,
        "count": len(siblings),
        "sockets": len(packages),
        "cores": len(cores),
        "threads_per_core": max((len(cpu_numbers(core)) for core in cores), default=None),
    }


def _memory_mib(text: str | None) -> int | None:
    match = _TOTAL.search(text or "")
    return int(match.group(1)) // 1024 if match else None
