# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/sys/devices/system/node and /sys/devices/system/cpu of a machine that is larger than the one it runs on."""

from __future__ import annotations

import os
from typing import Any

from .tree import Tree, cpu_mask, cpu_numbers

HUGEPAGES_KIB = (2048, 1048576)


def ranges(numbers: list[int]) -> str:
    """0-3,8 for 0 1 2 3 8."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def build_nodes(tree: Tree, hardware: dict[str, Any]) -> None:
    nodes = hardware["numa_nodes"]
    ids = ranges([node["id"] for node in nodes])
    for name in ("online", "possible", "has_cpu", "has_memory", "has_normal_memory"):
        tree.file(name, ids)
    for node in nodes:
        folder, kib = f"node{node['id']}", node["memory_mib"] * 1024
        numbers = cpu_numbers(node["cpulist"])
        tree.files(
            folder,
            {
                "cpulist": node["cpulist"],
                "cpumap": cpu_mask(numbers),
                "distance": " ".join(map(str, node["distances"])),
                "meminfo": "\n".join(
                    f"Node {node['id']} {name + ':':<16}{value:>10} kB"
                    for name, value in (("MemTotal", kib), ("MemFree", kib - kib // 50), ("MemUsed", kib // 50))
                ),
                "numastat": "numa_hit 0\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 0",
            },
        )
        for size in HUGEPAGES_KIB:
            for name in ("nr_hugepages", "free_hugepages", "surplus_hugepages"):
                tree.file(f"{folder}/hugepages/hugepages-{size}kB/{name}", 0, 0o644)
        for number in numbers:
            # As in sysfs; it leads to the CPU where both trees are mounted.
            os.symlink(f"../../cpu/cpu{number}", tree.path(f"{folder}/cpu{number}"))


def build_cpus(tree: Tree, hardware: dict[str, Any]) -> None:
    numbers = [number for node in hardware["numa_nodes"] for number in cpu_numbers(node["cpulist"])]
    for name in ("online", "possible", "present"):
        tree.file(name, ranges(numbers))
    tree.file("offline", "")
    tree.file("isolated", "")
    tree.file("kernel_max", 8191)
    for number in sorted(numbers):
        _topology(tree, f"cpu{number}", number, hardware)


def _topology(tree: Tree, folder: str, number: int, hardware: dict[str, Any]) -> None:
    """SMT siblings are half the machine apart, as Linux numbers them."""
    cpu = hardware["cpu"]
    cores = cpu["sockets"] * cpu["cores_per_socket"]
    core = number % cores
    siblings = [core + thread * cores for thread in range(cpu["threads_per_core"])]
    socket = core // cpu["cores_per_socket"]
    package = [c + t * cores for t in range(cpu["threads_per_core"]) for c in range(socket * cpu["cores_per_socket"], (socket + 1) * cpu["cores_per_socket"])]
    tree.files(
        f"{folder}/topology",
        {
            "core_id": core % cpu["cores_per_socket"],
            "physical_package_id": socket,
            "thread_siblings_list": ranges(siblings),
            "core_cpus_list": ranges(siblings),
            "core_siblings_list": ranges(package),
            "package_cpus_list": ranges(package),
        },
    )
    if number:
        tree.file(f"{folder}/online", 1)
