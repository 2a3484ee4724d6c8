# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI devices: /sys/devices/pciDDDD:BB/... with all bridges, and the links of /sys/bus/pci/devices."""

from __future__ import annotations

from typing import Any

from .tree import Tree, cpu_mask, cpu_numbers

GTS = {3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}
NVIDIA, MELLANOX, SAMSUNG, AMD = "0x10de", "0x15b3", "0x144d", "0x1022"
GPU, SWITCH, BRIDGE, INFINIBAND, ETHERNET, NVME = "0x030200", "0x068000", "0x060400", "0x020700", "0x020000", "0x010802"


class PciTree:
    """Builds below a tree that stands for /sys."""

    def __init__(self, sys: Tree, hardware: dict[str, Any]) -> None:
        self.sys = sys
        self.cpus = {node["id"]: cpu_numbers(node["cpulist"]) for node in hardware["numa_nodes"]}
        self.hardware = hardware
        self.bridges: set[str] = set()

    def build(self) -> dict[str, str]:
        """PCI address to the folder of the device."""
        places = {}
        hardware = self.hardware
        for gpu in hardware["gpus"]:
            places[gpu["pci_address"]] = self.add(gpu, NVIDIA, GPU, generation=gpu["pcie_generation"], width=gpu["pcie_width"])
            self.sys.file(f"{places[gpu['pci_address']]}/reset", "", 0o200)
        for switch in hardware.get("nvswitches", []):
            places[switch["pci_address"]] = self.add(switch, NVIDIA, SWITCH)
        for hca in hardware.get("hcas", []):
            places[hca["pci_address"]] = self.add(hca, MELLANOX, INFINIBAND)
        for nic in hardware.get("nics", []):
            places[nic["pci_address"]] = self.add(nic, MELLANOX, ETHERNET, generation=3, width=8)
        for nvme in hardware.get("nvmes", []):
            places[nvme["pci_address"]] = self.add(nvme, SAMSUNG, NVME, width=4)
        for name in ("drivers", "slots"):
            self.sys.folder(f"bus/pci/{name}")
        self.sys.file("bus/pci/rescan", "", 0o200)
        return places

    def add(self, device: dict[str, Any], vendor: str, pci_class: str, generation: int = 4, width: int = 16) -> str:
        node = device.get("numa_node", -1)
        path = f"devices/pci{device['pci_path'][0][:7]}"
        for bridge in device["pci_path"]:
            path = f"{path}/{bridge}"
            if bridge not in self.bridges:
                self.bridges.add(bridge)
                self._device(path, bridge, AMD, "0x1483", "0x0000", BRIDGE, node, 4, 16)
        path = f"{path}/{device['pci_address']}"
        subsystem = device.get("subsystem_id", "0x0000")
        self._device(path, device["pci_address"], vendor, device["device_id"], subsystem, pci_class, node, generation, width)
        return path

    def _device(
        self, path: str, address: str, vendor: str, device: str, subsystem: str, pci_class: str, node: int, generation: int, width: int
    ) -> None:
        cpus = self.cpus.get(node, [cpu for numbers in self.cpus.values() for cpu in numbers])
        cpulist = next((one["cpulist"] for one in self.hardware["numa_nodes"] if one["id"] == node), "")
        self.sys.files(
            path,
            {
                "vendor": vendor,
                "device": device,
                "subsystem_vendor": vendor,
                "subsystem_device": subsystem,
                "class": pci_class,
                "revision": "0xa1",
                "irq": 0,
                "enable": 1,
                "numa_node": node,
                "local_cpus": cpu_mask(cpus),
                "local_cpulist": cpulist or f"{min(cpus)}-{max(cpus)}",
                "current_link_speed": GTS[generation],
                "max_link_speed": GTS[generation],
                "current_link_width": width,
                "max_link_width": width,
                "modalias": f"pci:v{vendor[2:].upper():0>8}d{device[2:].upper():0>8}sv{vendor[2:].upper():0>8}sd{subsystem[2:].upper():0>8}bc{pci_class[2:4]}sc{pci_class[4:6]}i{pci_class[6:8]}",
                "uevent": f"PCI_CLASS={pci_class[2:].lstrip('0').upper()}\nPCI_ID={vendor[2:].upper()}:{device[2:].upper()}\nPCI_SLOT_NAME={address}",
                "resource": "\n".join(["0x0000000000000000 0x0000000000000000 0x0000000000000000"] * 13),
            },
        )
        identity = bytes.fromhex(vendor[2:])[::-1] + bytes.fromhex(device[2:])[::-1] + bytes(4) + b"\xa1" + bytes.fromhex(pci_class[2:])[::-1]
        subsystems = bytes.fromhex(vendor[2:])[::-1] + bytes.fromhex(subsystem[2:])[::-1]
        config = bytearray(64)
        config[: len(identity)] = identity
        config[0x0E] = 1 if pci_class == BRIDGE else 0
        config[0x2C:0x30] = subsystems
        with open(self.sys.path(f"{path}/config"), "wb") as stream:
            stream.write(bytes(config))
        self.sys.link(f"bus/pci/devices/{address}", path)
        self.sys.link(f"{path}/subsystem", "bus/pci")
