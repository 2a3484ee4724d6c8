# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI devices: /sys/devices/pciDDDD:BB/... with all bridges, and the links of /sys/bus/pci/devices."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from .tree import Tree, cpu_list, cpu_mask, cpu_numbers

GTS = {3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}
NVIDIA, MELLANOX, BROADCOM, SAMSUNG, AMD = "0x10de", "0x15b3", "0x14e4", "0x144d", "0x1022"
GPU, SWITCH, BRIDGE, INFINIBAND, ETHERNET, NVME = "0x030200", "0x068000", "0x060400", "0x020700", "0x020000", "0x010802"


@dataclass(frozen=True)
class Function:
    """One PCI function, as its configuration space describes it."""

    address: str
    vendor: str
    device: str
    pci_class: str
    numa_node: int
    subsystem: str = "0x0000"
    generation: int = 4
    width: int = 16
    secondary_bus: int = 0

    @property
    def bus(self) -> int:
        return int(self.address.split(":")[1], 16)

    def config(self) -> bytes:
        """The standard header; lspci reads nothing else unless asked for details."""
        config = bytearray(256)
        config[0x00:0x04] = _word(self.vendor) + _word(self.device)
        config[0x08:0x0C] = b"\xa1" + bytes.fromhex(self.pci_class[2:])[::-1]
        if self.secondary_bus:
            config[0x0E] = 1
            config[0x18:0x1B] = bytes((self.bus, self.secondary_bus, self.secondary_bus))
        else:
            config[0x2C:0x30] = _word(self.vendor) + _word(self.subsystem)
        return bytes(config)

    def modalias(self) -> str:
        ids = [value[2:].upper().rjust(8, "0") for value in (self.vendor, self.device, self.vendor, self.subsystem)]
        kind = self.pci_class[2:].upper()
        return "pci:v{}d{}sv{}sd{}bc{}sc{}i{}".format(*ids, kind[0:2], kind[2:4], kind[4:6])

    def uevent(self) -> str:
        vendor, device, subsystem = (value[2:].upper() for value in (self.vendor, self.device, self.subsystem))
        return (
            f"PCI_CLASS={self.pci_class[2:].lstrip('0').upper()}\nPCI_ID={vendor}:{device}\nPCI_SUBSYS_ID={vendor}:{subsystem}\n"
            f"PCI_SLOT_NAME={self.address}\nMODALIAS={self.modalias()}"
        )


def _word(text: str) -> bytes:
    return bytes.fromhex(text[2:])[::-1]


class PciTree:
    """Builds below a tree that stands for /sys."""

    def __init__(self, sys: Tree, hardware: dict[str, Any]) -> None:
        self.sys = sys
        self.cpus = {node["id"]: cpu_numbers(node["cpulist"]) for node in hardware["numa_nodes"]}
        self.hardware = hardware
        self.bridges: set[str] = set()

    def build(self) -> dict[str, str]:
        """PCI address to the folder of the device."""
        hardware, places = self.hardware, {}
        for gpu in hardware["gpus"]:
            place = self.add(gpu, NVIDIA, GPU, gpu["pcie_generation"], gpu["pcie_width"])
            places[gpu["pci_address"]] = place
            # A GPU of a virtual machine cannot be reset from inside.
            if not gpu.get("passthrough"):
                self.sys.file(f"{place}/reset", "", 0o200)
            self.sys.file(f"{place}/driver_override", "(null)", 0o644)
        others = [
            ("nvswitches", NVIDIA, SWITCH, 4, 16, ""),
            ("hcas", MELLANOX, INFINIBAND, 4, 16, "mlx5_core"),
            ("nics", BROADCOM, ETHERNET, 3, 8, "bnxt_en"),
            ("nvmes", SAMSUNG, NVME, 4, 4, "nvme"),
        ]
        for kind, vendor, pci_class, generation, width, driver in others:
            for device in hardware.get(kind, []):
                places[device["pci_address"]] = self.add(device, vendor, pci_class, generation, width)
                if driver:
                    bind_driver(self.sys, driver, device["pci_address"])
        for name in ("drivers", "slots"):
            self.sys.folder(f"bus/pci/{name}")
        self.sys.file("bus/pci/rescan", "", 0o200)
        return places

    def add(self, device: dict[str, Any], vendor: str, pci_class: str, generation: int, width: int) -> str:
        """The device below its bridges; each bridge leads to the bus of what is next."""
        node, address = device.get("numa_node", -1), device["pci_address"]
        chain = [*device["pci_path"], address]
        path = f"devices/pci{chain[0][:7]}"
        self._bus(path, chain[0][:7], node)
        for bridge, behind in zip(chain, chain[1:]):
            path = f"{path}/{bridge}"
            if bridge not in self.bridges:
                self.bridges.add(bridge)
                self._function(path, Function(bridge, AMD, "0x1483", BRIDGE, node, secondary_bus=int(behind.split(":")[1], 16)))
                self._bus(path, behind[:7], node)
        path = f"{path}/{address}"
        subsystem = device.get("subsystem_id", "0x0000")
        self._function(path, Function(address, vendor, device["device_id"], pci_class, node, subsystem, generation, width))
        return path

    def _local_cpus(self, node: int) -> list[int]:
        """A device without a NUMA node is local to all CPUs."""
        return self.cpus.get(node, [cpu for numbers in self.cpus.values() for cpu in numbers])

    def _bus(self, bridge: str, name: str, node: int) -> None:
        place = f"{bridge}/pci_bus/{name}"
        cpus = self._local_cpus(node)
        self.sys.files(place, {"cpuaffinity": cpu_mask(cpus), "cpulistaffinity": cpu_list(cpus)})
        self.sys.link(f"class/pci_bus/{name}", place)

    def _function(self, path: str, function: Function) -> None:
        cpus = self._local_cpus(function.numa_node)
        self.sys.files(
            path,
            {
                "vendor": function.vendor,
                "device": function.device,
                "subsystem_vendor": function.vendor,
                "subsystem_device": function.subsystem,
                "class": function.pci_class,
                "revision": "0xa1",
                "irq": 0,
                "enable": 1,
                "numa_node": function.numa_node,
                "local_cpus": cpu_mask(cpus),
                "local_cpulist": cpu_list(cpus),
                "current_link_speed": GTS[function.generation],
                "max_link_speed": GTS[function.generation],
                "current_link_width": function.width,
                "max_link_width": function.width,
                "modalias": function.modalias(),
                "uevent": function.uevent(),
                "resource": "\n".join(["0x0000000000000000 0x0000000000000000 0x0000000000000000"] * 13),
            },
        )
        with open(self.sys.path(f"{path}/config"), "wb") as stream:
            stream.write(function.config())
        self.sys.link(f"bus/pci/devices/{function.address}", path)
        self.sys.link(f"{path}/subsystem", "bus/pci")


def bind_driver(sys: Tree, name: str, address: str) -> None:
    """The links between a device and the driver that took it."""
    sys.link(f"bus/pci/drivers/{name}/{address}", f"bus/pci/devices/{address}")
    device = os.path.realpath(sys.path(f"bus/pci/devices/{address}"))
    sys.link(os.path.relpath(f"{device}/driver", os.path.realpath(sys.root)), f"bus/pci/drivers/{name}")


def release_driver(sys: Tree, name: str) -> None:
    folder = sys.path(f"bus/pci/drivers/{name}")
    for address in os.listdir(folder) if os.path.isdir(folder) else []:
        os.unlink(f"{folder}/{address}/driver")
        os.unlink(f"{folder}/{address}")
