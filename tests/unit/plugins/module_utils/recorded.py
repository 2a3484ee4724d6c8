# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees as sysfs and procfs show them, built file by file."""

from __future__ import annotations

import os
from pathlib import Path

GPU, DISPLAY, SWITCH, BRIDGE, INFINIBAND = "0x030200", "0x030000", "0x068000", "0x060400", "0x020700"
NVIDIA, MELLANOX = "0x10de", "0x15b3"


class RecordedTree:
    """The root of a machine; modules read the same names below `/`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "sys/bus/pci/devices").mkdir(parents=True)

    def file(self, name: str, content: object = "") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")

    def link(self, name: str, target: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(self.root / target, path.parent))

    def pci(self, *path: str, vendor: str = NVIDIA, kind: str = GPU, device: str = "0x20b2", numa: int = 0, driver: str = "nvidia") -> str:
        """A device below its host bridge and bridges: pci("pci0000:00", "0000:00:01.0", "0000:07:00.0")."""
        for depth in range(2, len(path)):
            self._function("/".join(path[:depth]), vendor="0x8086", kind=BRIDGE, device="0x1234", numa=numa)
        place = self._function("/".join(path), vendor=vendor, kind=kind, device=device, numa=numa)
        self.file(f"{place}/local_cpulist", "0-1,4-5")
        if driver:
            (self.root / f"sys/bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
            self.link(f"{place}/driver", f"sys/bus/pci/drivers/{driver}")
        return path[-1]

    def _function(self, path: str, vendor: str, kind: str, device: str, numa: int) -> str:
        place, address = f"sys/devices/{path}", path.rpartition("/")[2]
        if not (self.root / place / "vendor").exists():
            for name, content in (("vendor", vendor), ("device", device), ("class", kind), ("numa_node", numa)):
                self.file(f"{place}/{name}", content)
            self.link(f"sys/bus/pci/devices/{address}", place)
        return place

    def numa_node(self, node: int, cpus: str, memory_kib: int, distances: str, hugepages: tuple[int, int] = (0, 0)) -> None:
        folder = f"sys/devices/system/node/node{node}"
        self.file(f"{folder}/cpulist", cpus)
        self.file(f"{folder}/meminfo", f"Node {node} MemTotal:       {memory_kib} kB\nNode {node} MemFree:        12 kB")
        self.file(f"{folder}/distance", distances)
        self.file(f"{folder}/hugepages/hugepages-2048kB/nr_hugepages", hugepages[0])
        self.file(f"{folder}/hugepages/hugepages-2048kB/free_hugepages", hugepages[1])

    def cpus(self, online: str, siblings: dict[int, str], sockets: dict[int, int]) -> None:
        self.file("sys/devices/system/cpu/online", online)
        for number, core in siblings.items():
            self.file(f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list", core)
            self.file(f"sys/devices/system/cpu/cpu{number}/topology/physical_package_id", sockets[number])

    def hca(self, name: str, address: str, ports: dict[int, dict[str, str]]) -> None:
        self.link(
            f"sys/class/infiniband/{name}/device", os.path.relpath((self.root / f"sys/bus/pci/devices/{address}").resolve(), self.root)
        )
        self.file(f"sys/class/infiniband/{name}/fw_ver", "20.43.1014")
        for port, files in ports.items():
            for file, content in files.items():
                self.file(f"sys/class/infiniband/{name}/ports/{port}/{file}", content)

    def interface(self, name: str, address: str | None, **files: object) -> None:
        folder = f"sys/class/net/{name}"
        if address:
            device = os.path.relpath((self.root / f"sys/bus/pci/devices/{address}").resolve(), self.root)
            folder = f"{device}/net/{name}"
            self.link(f"sys/class/net/{name}", folder)
            self.link(f"{folder}/device", device)
        for file, content in files.items():
            self.file(f"{folder}/{file}", content)
