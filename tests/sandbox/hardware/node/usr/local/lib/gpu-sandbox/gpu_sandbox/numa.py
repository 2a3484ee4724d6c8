# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NUMA nodes, CPUs and huge pages of a machine that is larger than the one it runs on."""

from __future__ import annotations

from typing import Any

from .tree import Tree, cpu_list, cpu_mask, cpu_numbers

HUGEPAGES_KIB = (2048, 1048576)
NODES, CPUS = "devices/system/node", "devices/system/cpu"
# Level, type and size of a core's caches; the last one is the socket's. Sizes are of no model in particular.
CACHES = ((1, "Data", "32K"), (1, "Instruction", "32K"), (2, "Unified", "1024K"), (3, "Unified", "32768K"))


def build(tree: Tree, hardware: dict[str, Any]) -> None:
    """Below a tree that stands for /sys."""
    numbers = sorted(number for node in hardware["numa_nodes"] for number in cpu_numbers(node["cpulist"]))
    _nodes(tree, hardware["numa_nodes"])
    for name in ("online", "possible", "present"):
        tree.file(f"{CPUS}/{name}", cpu_list(numbers))
    tree.files(CPUS, {"offline": "", "isolated": "", "kernel_max": 8191})
    smt = int(hardware["cpu"]["threads_per_core"] > 1)
    tree.files(f"{CPUS}/smt", {"active": smt, "control": "on" if smt else "notsupported"})
    for number in numbers:
        _cpu(tree, number, hardware["cpu"])
    _hugepages(tree, "kernel/mm/hugepages", ("nr_overcommit_hugepages", "resv_hugepages"))


def _nodes(tree: Tree, nodes: list[dict[str, Any]]) -> None:
    ids = cpu_list([node["id"] for node in nodes])
    for name in ("online", "possible", "has_cpu", "has_memory", "has_normal_memory"):
        tree.file(f"{NODES}/{name}", ids)
    for node in nodes:
        folder, kib = f"{NODES}/node{node['id']}", node["memory_mib"] * 1024
        numbers = cpu_numbers(node["cpulist"])
        amounts = {
            "MemTotal": kib,
            "MemFree": kib - kib // 50,
            "MemUsed": kib // 50,
        }
        pages = ("HugePages_Total", "HugePages_Free", "HugePages_Surp")
        lines = [f"Node {node['id']} {name + ':':<16}{value:>10} kB" for name, value in amounts.items()]
        lines += [f"Node {node['id']} {name + ':':<16}{0:>6}" for name in pages]
        counters = ("numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node")
        tree.files(
            folder,
            {
                "cpulist": cpu_list(numbers),
                "cpumap": cpu_mask(numbers),
                "distance": " ".join(map(str, node["distances"])),
                "meminfo": "\n".join(lines),
                "numastat": "\n".join(f"{name} 0" for name in counters),
            },
        )
        _hugepages(tree, f"{folder}/hugepages")
        for number in numbers:
            tree.link(f"{folder}/cpu{number}", f"{CPUS}/cpu{number}")
            tree.link(f"{CPUS}/cpu{number}/node{node['id']}", folder)


def _hugepages(tree: Tree, folder: str, more: tuple[str, ...] = ()) -> None:
    for size in HUGEPAGES_KIB:
        for name in ("nr_hugepages", "free_hugepages", "surplus_hugepages", *more):
            tree.file(f"{folder}/hugepages-{size}kB/{name}", 0, 0o644 if name.startswith("nr_") else 0o444)


def _cpu(tree: Tree, number: int, cpu: dict[str, Any]) -> None:
    """SMT siblings are half the machine apart, as Linux numbers them."""
    folder = f"{CPUS}/cpu{number}"
    cores, threads = cpu["sockets"] * cpu["cores_per_socket"], range(cpu["threads_per_core"])
    core = number % cores
    socket = core // cpu["cores_per_socket"]
    siblings = [core + thread * cores for thread in threads]
    first = socket * cpu["cores_per_socket"]
    package = [c + thread * cores for thread in threads for c in range(first, first + cpu["cores_per_socket"])]
    tree.constants(
        f"{folder}/topology",
        {
            "core_id": core % cpu["cores_per_socket"],
            "physical_package_id": socket,
            "die_id": 0,
            "thread_siblings_list": cpu_list(siblings),
            "thread_siblings": cpu_mask(siblings),
            "core_cpus_list": cpu_list(siblings),
            "core_cpus": cpu_mask(siblings),
            "core_siblings_list": cpu_list(package),
            "core_siblings": cpu_mask(package),
            "package_cpus_list": cpu_list(package),
            "package_cpus": cpu_mask(package),
        },
    )
    for index, (level, kind, size) in enumerate(CACHES):
        sharing = package if level == 3 else siblings
        values = {
            "level": level,
            "type": kind,
            "size": size,
            "id": socket if level == 3 else core,
            "shared_cpu_list": cpu_list(sharing),
            "shared_cpu_map": cpu_mask(sharing),
        }
        tree.constants(f"{folder}/cache/index{index}", values)
    if number:
        tree.file(f"{folder}/online", 1, 0o644)
    # What an operator or a role sets is kept for each CPU.
    tree.constants(f"{folder}/cpufreq", {"scaling_available_governors": "performance powersave", "scaling_driver": "simulated"})
    tree.file(f"{folder}/cpufreq/scaling_governor", "powersave", 0o644)
