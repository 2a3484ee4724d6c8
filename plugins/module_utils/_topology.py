# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far devices are from each other. PRIVATE: internal to the collection, may change at any time.

The words are those of `nvidia-smi topo -m`, and so are their meanings: PIX one PCIe switch, PXB several, PHB one host bridge,
NODE one NUMA node, SYS across NUMA nodes, NV# a number of NVLinks. PCIe distances come from the device tree, so that they are
known without a driver and for adapters too, of which NVML knows nothing.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs

Matrix = dict[str, dict[str, Any]]


def between(sysfs: Sysfs, first: str, second: str) -> str:
    """The PCIe distance of two PCI devices."""
    if first == second:
        return "X"
    left, right = sysfs.ancestors(first), sysfs.ancestors(second)
    common = 0
    while common < min(len(left), len(right)) and left[common] == right[common]:
        common += 1
    if common > 1:
        # The bridges of one switch are an upstream port, which is common, and a downstream port for each device.
        return "PIX" if max(len(left), len(right)) - common <= 1 else "PXB"
    if common == 1:
        return "PHB"
    node = sysfs.numa_node_effective(first)
    return "NODE" if node is not None and node == sysfs.numa_node_effective(second) else "SYS"


def read(sysfs: Sysfs, gpus: list[dict[str, Any]], switches: list[dict[str, Any]]) -> dict[str, Matrix]:
    """Three matrices by PCI address: PCIe distance, count of active NVLinks, and the shorter of both as nvidia-smi shows it."""
    present = [gpu for gpu in gpus if gpu["pci_address"]]
    behind = {switch["pci_address"] for switch in switches}
    pcie: Matrix = {}
    nvlinks: Matrix = {}
    levels: Matrix = {}
    for one in present:
        address = one["pci_address"]
        pcie[address] = {other["pci_address"]: between(sysfs, address, other["pci_address"]) for other in present}
        nvlinks[address] = {other["pci_address"]: _links(one, other, behind) for other in present}
        levels[address] = {far: f"NV{count}" if count else pcie[address][far] for far, count in nvlinks[address].items()}
    return {"levels": levels, "pcie": pcie, "nvlinks": nvlinks}


def _links(one: dict[str, Any], other: dict[str, Any], switches: set[str]) -> int | None:
    """Active NVLinks from one GPU to another, direct or through switches; None where NVML does not tell."""
    if one["nvlinks"] is None or other["nvlinks"] is None:
        return None
    if one is other:
        return 0
    active = [link for link in one["nvlinks"] if link["active"]]
    direct = [link for link in active if link["remote_pci_address"] == other["pci_address"]]
    return len(direct) or min(_switched(one, switches), _switched(other, switches))


def _switched(gpu: dict[str, Any], switches: set[str]) -> int:
    """NVSwitches of a node connect each GPU with every other one with all its links."""
    return sum(link["active"] and (link["remote_type"] == "switch" or link["remote_pci_address"] in switches) for link in gpu["nvlinks"])
