# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine as sysfs shows it. PRIVATE: internal to the collection, may change at any time.

The root is a parameter, so that recorded trees can be read; modules always read `/`.
"""

from __future__ import annotations

import os
import re
from typing import Any

NVIDIA = "0x10de"
GPU_CLASSES = ("0x0300", "0x0302")
SWITCH_CLASS = "0x0680"
_ADDRESS = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
_GIGABITS = re.compile(r"^(\d+(?:\.\d+)?) Gb/sec")


def cpu_numbers(cpulist: str) -> list[int]:
    """0-2,8 is 0 1 2 8."""
    numbers: list[int] = []
    for part in filter(None, cpulist.strip().split(",")):
        first, _dash, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


class Sysfs:
    """Reads; a file that does not exist is None."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    def path(self, name: str) -> str:
        return os.path.join(self.root, name.lstrip("/"))

    def text(self, name: str) -> str | None:
        try:
            with open(self.path(name), encoding="utf-8", errors="replace") as stream:
                return stream.read().strip()
        except OSError:
            return None

    def number(self, name: str) -> int | None:
        text = self.text(name)
        try:
            return int(text) if text is not None else None
        except ValueError:
            return None

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self.path(folder)))
        except OSError:
            return []

    # --- PCI ---
    def pci_devices(self) -> list[dict[str, Any]]:
        found = []
        for address in self.names("sys/bus/pci/devices"):
            folder = f"sys/bus/pci/devices/{address}"
            found.append(
                {
                    "pci_address": address,
                    "vendor": self.text(f"{folder}/vendor"),
                    "pci_device_id": self.text(f"{folder}/device"),
                    "class": (self.text(f"{folder}/class") or "")[:6],
                }
            )
        return found

    def bridges(self, address: str) -> list[str]:
        """The bridges above a device from the root port down, by its place in the tree."""
        parts = os.path.realpath(self.path(f"sys/bus/pci/devices/{address}")).split(os.sep)
        return [part for part in parts if _ADDRESS.match(part)][:-1]

    def numa_node(self, address: str) -> int | None:
        """As the firmware tells it; -1 where it tells nothing."""
        return self.number(f"sys/bus/pci/devices/{address}/numa_node")

    def numa_node_effective(self, address: str) -> int | None:
        """-1 is answered by the nearest bridge that knows better, else by the only node; None where there is no telling."""
        for device in [address, *reversed(self.bridges(address))]:
            node = self.numa_node(device)
            if node is not None and node >= 0:
                return node
        nodes = self.numa_ids()
        return nodes[0] if len(nodes) == 1 else None

    def local_cpus(self, address: str) -> str | None:
        return self.text(f"sys/bus/pci/devices/{address}/local_cpulist")

    # --- NUMA and CPUs ---
    def numa_ids(self) -> list[int]:
        names = self.names("sys/devices/system/node")
        return sorted(int(name[4:]) for name in names if re.match(r"^node\d+$", name))

    def numa_nodes(self) -> list[dict[str, Any]]:
        return [self._numa_node(node) for node in self.numa_ids()]

    def _numa_node(self, node: int) -> dict[str, Any]:
        folder = f"sys/devices/system/node/node{node}"
        memory = re.search(r"MemTotal:\s+(\d+) kB", self.text(f"{folder}/meminfo") or "")
        pages = []
        for name in self.names(f"{folder}/hugepages"):
            pages.append(
                {
                    "size_kib": int(name[len("hugepages-") : -len("kB")]),
                    "total": self.number(f"{folder}/hugepages/{name}/nr_hugepages"),
                    "free": self.number(f"{folder}/hugepages/{name}/free_hugepages"),
                }
            )
        return {
            "id": node,
            "cpus": self.text(f"{folder}/cpulist"),
            "memory_mib": int(memory.group(1)) // 1024 if memory else None,
            "distances": [int(part) for part in (self.text(f"{folder}/distance") or "").split()],
            "hugepages": pages,
        }

    def cpus(self) -> dict[str, Any]:
        online = self.text("sys/devices/system/cpu/online")
        numbers = cpu_numbers(online or "")
        packages, siblings = set(), set()
        for number in numbers:
            folder = f"sys/devices/system/cpu/cpu{number}/topology"
            packages.add(self.number(f"{folder}/physical_package_id"))
            siblings.add(self.text(f"{folder}/thread_siblings_list") or str(number))
        threads = len(numbers) // len(siblings) if siblings else None
        return {"online": online, "count": len(numbers), "sockets": len(packages), "cores": len(siblings), "threads_per_core": threads}

    def memory_mib(self) -> int | None:
        match = re.search(r"MemTotal:\s+(\d+) kB", self.text("proc/meminfo") or "")
        return int(match.group(1)) // 1024 if match else None

    # --- networks ---
    def hcas(self) -> list[dict[str, Any]]:
        return [self._hca(name) for name in self.names("sys/class/infiniband")]

    def _hca(self, name: str) -> dict[str, Any]:
        folder = f"sys/class/infiniband/{name}"
        address = os.path.basename(os.path.realpath(self.path(f"{folder}/device")))
        netdevs = self.names(f"{folder}/device/net")
        ports = []
        for port in self.names(f"{folder}/ports"):
            place = f"{folder}/ports/{port}"
            rate = _GIGABITS.match(self.text(f"{place}/rate") or "")
            ports.append(
                {
                    "port": int(port),
                    "state": (self.text(f"{place}/state") or "").partition(": ")[2] or None,
                    "physical_state": (self.text(f"{place}/phys_state") or "").partition(": ")[2] or None,
                    "rate_gbps": float(rate.group(1)) if rate else None,
                    "link_layer": self.text(f"{place}/link_layer"),
                    "netdev": self.text(f"{place}/gid_attrs/ndevs/0") or (netdevs[0] if netdevs else None),
                }
            )
        return {"device": name, "pci_address": address, "numa_node": self.numa_node(address), "ports": ports}

    def nics(self) -> list[dict[str, Any]]:
        """Ethernet interfaces of PCI devices."""
        found = []
        for name in self.names("sys/class/net"):
            folder = f"sys/class/net/{name}"
            address = os.path.basename(os.path.realpath(self.path(f"{folder}/device")))
            if self.number(f"{folder}/type") != 1 or not _ADDRESS.match(address):
                continue
            speed = self.number(f"{folder}/speed")
            gbps = speed / 1000 if speed and speed > 0 else None
            found.append({"netdev": name, "pci_address": address, "numa_node": self.numa_node(address), "speed_gbps": gbps})
        return found
