# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""InfiniBand, network and NVMe devices in /sys/class."""

from __future__ import annotations

from typing import Any

from .tree import Tree


def build(sys: Tree, hardware: dict[str, Any], places: dict[str, str]) -> None:
    """`places` holds the folder of each PCI device."""
    for hca in hardware.get("hcas", []):
        _hca(sys, hca, places[hca["pci_address"]])
    for nic in hardware.get("nics", []):
        _net(sys, nic["netdev"], places[nic["pci_address"]], nic["speed_mbps"])
    for nvme in hardware.get("nvmes", []):
        controller = nvme["device"].split("n", 2)
        name = f"n{controller[1]}"
        place = f"{places[nvme['pci_address']]}/nvme/{name}"
        sys.files(place, {"model": "SAMSUNG MZQL23T8HCLS-00A07", "state": "live", "transport": "pcie"})
        sys.link(f"{place}/device", places[nvme["pci_address"]])
        sys.link(f"class/nvme/{name}", place)


def _hca(sys: Tree, hca: dict[str, Any], device: str) -> None:
    place = f"{device}/infiniband/{hca['device']}"
    sys.files(place, {"node_guid": hca["node_guid"], "sys_image_guid": hca["node_guid"], "node_type": "1: CA", "fw_ver": "20.39.3004", "board_id": "MT_0000000223"})
    sys.link(f"{place}/device", device)
    sys.link(f"class/infiniband/{hca['device']}", place)
    for port in hca["ports"]:
        states = {"ACTIVE": ("4: ACTIVE", "5: LinkUp"), "DOWN": ("1: DOWN", "3: Disabled"), "INIT": ("2: INIT", "5: LinkUp")}
        state, physical = states[port["state"]]
        folder = f"{place}/ports/{port['port']}"
        sys.files(
            folder,
            {"state": state, "phys_state": physical, "rate": port["rate"], "link_layer": port["link_layer"], "lid": "0x1", "sm_lid": "0x1", "cap_mask": "0xa651e848"},
        )
        sys.file(f"{folder}/gids/0", f"fe80:0000:0000:0000:{hca['node_guid']}")
        sys.file(f"{folder}/gid_attrs/ndevs/0", port["netdev"])
        _net(sys, port["netdev"], device, -1, link_type=32)


def _net(sys: Tree, name: str, device: str, speed_mbps: int, link_type: int = 1) -> None:
    """Link type 1 is Ethernet, 32 InfiniBand; IP over InfiniBand has no speed of its own."""
    place = f"{device}/net/{name}"
    sys.files(
        place,
        {
            "speed": speed_mbps,
            "operstate": "up",
            "carrier": 1,
            "mtu": 2044 if link_type == 32 else 1500,
            "type": link_type,
            "flags": "0x1003",
            "dev_port": 0,
            "dev_id": "0x0",
            "address": "00:00:00:00:00:00",
            "ifindex": 1000 + sum(map(ord, name)),
        },
    )
    sys.link(f"{place}/device", device)
    sys.link(f"class/net/{name}", place)
