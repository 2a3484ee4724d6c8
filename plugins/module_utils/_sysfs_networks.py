# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""InfiniBand and Ethernet adapters. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs

_GIGABITS = re.compile(r"^(\d+(?:\.\d+)?) Gb/sec")
_ETHERNET = 1  # ARPHRD_ETHER


def hcas(sysfs: Sysfs) -> list[dict[str, Any]]:
    return [_hca(sysfs, name) for name in sysfs.names("sys/class/infiniband")]


def _hca(sysfs: Sysfs, name: str) -> dict[str, Any]:
    folder = f"sys/class/infiniband/{name}"
    address = sysfs.pci_address_of(folder)
    return {
        "device": name,
        "pci_address": address,
        "pci_device_id": sysfs.text(f"{folder}/device/device"),
        "firmware_version": sysfs.text(f"{folder}/fw_ver"),
        "virtual_function": sysfs.link_name(f"{folder}/device/physfn") is not None,
        **(sysfs.place(address) if address else {"numa_node": None, "numa_node_effective": None}),
        "ports": [_port(sysfs, folder, port) for port in sysfs.names(f"{folder}/ports")],
    }


def _port(sysfs: Sysfs, folder: str, port: str) -> dict[str, Any]:
    place = f"{folder}/ports/{port}"
    rate = _GIGABITS.match(sysfs.text(f"{place}/rate") or "")
    return {
        "port": int(port),
        "state": _word(sysfs.text(f"{place}/state")),
        "physical_state": _word(sysfs.text(f"{place}/phys_state")),
        "rate_gbps": float(rate.group(1)) if rate else None,
        "link_layer": sysfs.text(f"{place}/link_layer"),
        "netdev": sysfs.text(f"{place}/gid_attrs/ndevs/0") or _netdev(sysfs, folder, int(port)),
    }


def _word(state: str | None) -> str | None:
    """4: ACTIVE is ACTIVE."""
    return (state or "").partition(": ")[2] or None


def _netdev(sysfs: Sysfs, folder: str, port: int) -> str | None:
    """IP over InfiniBand has no GID entry; interfaces of a function with two ports count their ports from 0."""
    for name in sysfs.names(f"{folder}/device/net"):
        if sysfs.number(f"{folder}/device/net/{name}/dev_port") == port - 1:
            return name
    return None


def nics(sysfs: Sysfs) -> list[dict[str, Any]]:
    """Ethernet interfaces of PCI devices; bridges, bonds and containers' interfaces are not hardware."""
    found = []
    for name in sysfs.names("sys/class/net"):
        folder = f"sys/class/net/{name}"
        address = sysfs.pci_address_of(folder)
        if address is None or sysfs.number(f"{folder}/type") != _ETHERNET:
            continue
        speed = sysfs.number(f"{folder}/speed")
        gbps = speed / 1000 if speed and speed > 0 else None  # -1 and a refusal to read stand for a link that is down
        found.append(
            {"netdev": name, "pci_address": address, **sysfs.place(address), "speed_gbps": gbps, "state": sysfs.text(f"{folder}/operstate")}
        )
    return found
