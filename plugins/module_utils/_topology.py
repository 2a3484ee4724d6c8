# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far devices are from each other. PRIVATE: internal to the collection, may change at any time.

The words are those of nvidia-smi: NV# a number of NVLinks, PIX one PCIe switch, PXB several, PHB one host bridge, NODE one NUMA
node, SYS across NUMA nodes.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs

# nvmlGpuTopologyLevel_t
NVML_LEVELS = {0: "X", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}


def between(sysfs: Sysfs, first: str, second: str) -> str:
    """The distance of two PCI devices by the bridges above them."""
    if first == second:
        return "X"
    left, right = sysfs.bridges(first), sysfs.bridges(second)
    common = 0
    while common < min(len(left), len(right)) and left[common] == right[common]:
        common += 1
    if common:
        return "PIX" if max(len(left), len(right)) - common <= 1 else "PXB"
    a, b = sysfs.numa_node(first), sysfs.numa_node(second)
    return "NODE" if a is not None and a >= 0 and a == b else "SYS"


def matrix(sysfs: Sysfs, gpus: list[dict[str, Any]], links: dict[tuple[str, str], int | None]) -> dict[str, dict[str, str]]:
    """PCI address to PCI address to distance; active NVLinks count more than PCIe."""
    found: dict[str, dict[str, str]] = {}
    for one in gpus:
        row = found.setdefault(one["pci_address"], {})
        for other in gpus:
            pair = (one["pci_address"], other["pci_address"])
            count = links.get(pair)
            row[other["pci_address"]] = f"NV{count}" if count else between(sysfs, *pair)
    return found


def nvlinks_between(gpus: list[dict[str, Any]], switches: set[str]) -> dict[tuple[str, str], int | None]:
    """Active links between two GPUs, through switches or directly."""
    found: dict[tuple[str, str], int | None] = {}
    for one in gpus:
        for other in gpus:
            if one is other:
                continue
            active = [link for link in one.get("nvlinks") or [] if link["active"]]
            direct = [link for link in active if link["remote_pci_address"] == other["pci_address"]]
            through = [link for link in active if link["remote_type"] == "switch" or link["remote_pci_address"] in switches]
            far = [link for link in other.get("nvlinks") or [] if link["active"] and link["remote_type"] == "switch"]
            count = len(direct) or min(len(through), len(far))
            if count:
                found[(one["pci_address"], other["pci_address"])] = count
    return found
