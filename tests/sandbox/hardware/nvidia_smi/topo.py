# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`topo -m`: who is how near to whom."""

from __future__ import annotations

import os
from typing import Any

import pynvml as nv

from .common import all_gpus, text, value

LEVELS = {0: "X", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
PCI = "/sys/bus/pci/devices"


def _links(one: Any, other: Any) -> int:
    """Active NVLinks that reach the other GPU, directly or through a switch."""
    count = 0
    for link in range(36):
        state = value("nvmlDeviceGetNvLinkState", one, link)
        if state is None:
            break
        kind = value("nvmlDeviceGetNvLinkRemoteDeviceType", one, link)
        remote = value("nvmlDeviceGetNvLinkRemotePciInfo", one, link)
        same = remote is not None and text(remote.busId) == text(nv.nvmlDeviceGetPciInfo(other).busId)
        count += bool(state) and (same or (kind == 2 and value("nvmlDeviceGetNvLinkState", other, 0) is not None))
    return count


def _address(device: Any) -> str:
    return text(nv.nvmlDeviceGetPciInfo(device).busId).lower()[4:]


def _bridges(address: str) -> list[str]:
    return os.path.realpath(f"{PCI}/{address}").split("/")[4:-1]


def _numa(address: str) -> str:
    try:
        with open(f"{PCI}/{address}/numa_node", encoding="ascii") as stream:
            return stream.read().strip()
    except OSError:
        return "N/A"


def _distance(one: str, other: str) -> str:
    left, right = _bridges(one), _bridges(other)
    common = next((at for at, pair in enumerate(zip(left, right)) if pair[0] != pair[1]), min(len(left), len(right)))
    if common:
        return "PIX" if max(len(left), len(right)) - common <= 1 else "PXB"
    return "NODE" if _numa(one) == _numa(other) else "SYS"


def matrix() -> int:
    gpus = all_gpus()
    names = sorted(os.listdir("/sys/class/infiniband")) if os.path.isdir("/sys/class/infiniband") else []
    nics = [os.path.basename(os.path.realpath(f"/sys/class/infiniband/{name}/device")) for name in names]
    heads = [f"GPU{index}" for index, _device in gpus] + [f"NIC{index}" for index in range(len(nics))]
    print("\t" + "\t".join([*heads, "CPU Affinity", "NUMA Affinity"]))
    for index, device in gpus:
        cells = []
        for other_index, other in gpus:
            links = 0 if index == other_index else _links(device, other)
            level = LEVELS.get(value("nvmlDeviceGetTopologyCommonAncestor", device, other), "SYS")
            cells.append("X" if index == other_index else f"NV{links}" if links else level)
        address = _address(device)
        cells += [_distance(address, nic) for nic in nics]
        try:
            with open(f"{PCI}/{address}/local_cpulist", encoding="ascii") as stream:
                cpus = stream.read().strip()
        except OSError:
            cpus = "N/A"
        print("\t".join([f"GPU{index}", *cells, cpus, _numa(address)]))
    for number, nic in enumerate(nics):
        cells = [_distance(nic, _address(device)) for _index, device in gpus]
        cells += ["X" if nic == other else _distance(nic, other) for other in nics]
        print("\t".join([f"NIC{number}", *cells]))
    print(
        "\nLegend:\n\n  X    = Self\n  SYS  = across NUMA nodes\n  NODE = within a NUMA node\n"
        "  PHB  = one host bridge\n  PXB  = several PCIe switches\n"
        "  PIX  = one PCIe switch\n  NV#  = a bonded set of # NVLinks"
    )
    if names:
        print("\nNIC Legend:\n")
        for number, name in enumerate(names):
            print(f"  NIC{number}: {name}")
    return 0
