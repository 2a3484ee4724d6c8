# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI devices as sysfs shows them, and the reader below it. PRIVATE: internal to the collection, may change at any time.

The root is a parameter, so that recorded trees can be read; modules always read `/`.
"""

from __future__ import annotations

import os
import re
from typing import Any

NVIDIA = "0x10de"
GPU_CLASSES = ("0x0300", "0x0302")  # with and without a display
SWITCH_CLASS = "0x0680"
_ADDRESS = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
_HOST_BRIDGE = re.compile(r"^pci[0-9a-f]{4,8}:[0-9a-f]{2}$")
_DEVICES = "sys/bus/pci/devices"


class Sysfs:
    """Reads; a file that does not exist, or that the kernel refuses to read now, is None."""

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

    def link_name(self, name: str) -> str | None:
        """The last part of what a link leads to, such as the driver of a device."""
        path = self.path(name)
        return os.path.basename(os.path.realpath(path)) if os.path.exists(path) else None

    # --- PCI ---
    def nvidia_devices(self, classes: tuple[str, ...]) -> list[dict[str, Any]]:
        found = []
        for address in self.names(_DEVICES):
            folder = f"{_DEVICES}/{address}"
            if self.text(f"{folder}/vendor") == NVIDIA and (self.text(f"{folder}/class") or "")[:6] in classes:
                found.append({"pci_address": address, "pci_device_id": self.text(f"{folder}/device"), **self.place(address)})
        return found

    def place(self, address: str) -> dict[str, Any]:
        """The NUMA node of a device, told by the firmware and in effect."""
        return {"numa_node": self.numa_node(address), "numa_node_effective": self.numa_node_effective(address)}

    def pci_address_of(self, folder: str) -> str | None:
        """The PCI device that a class device belongs to; None for virtual and platform devices."""
        name = self.link_name(f"{folder}/device")
        return name if name and _ADDRESS.match(name) else None

    def kernel_driver(self, address: str) -> str | None:
        return self.link_name(f"{_DEVICES}/{address}/driver")

    def ancestors(self, address: str) -> list[str]:
        """The host bridge (pci0000:00) and the bridges above a device, from the top down, by its place in the tree."""
        parts = os.path.realpath(self.path(f"{_DEVICES}/{address}")).split(os.sep)
        return [part for part in parts if _HOST_BRIDGE.match(part) or _ADDRESS.match(part)][:-1]

    def numa_node(self, address: str) -> int | None:
        """As the firmware tells it; -1 where it tells nothing."""
        return self.number(f"{_DEVICES}/{address}/numa_node")

    def numa_node_effective(self, address: str) -> int | None:
        """-1 is answered by the nearest bridge that knows better, else by the only node; None where there is no telling."""
        for device in [address, *reversed(self.ancestors(address))]:
            node = self.numa_node(device)
            if node is not None and node >= 0:
                return node
        nodes = self.numa_ids()
        return nodes[0] if len(nodes) == 1 else None

    def numa_ids(self) -> list[int]:
        names = self.names("sys/devices/system/node")
        return sorted(int(name[4:]) for name in names if re.match(r"^node\d+$", name))

    def local_cpus(self, address: str) -> str | None:
        return self.text(f"{_DEVICES}/{address}/local_cpulist")
