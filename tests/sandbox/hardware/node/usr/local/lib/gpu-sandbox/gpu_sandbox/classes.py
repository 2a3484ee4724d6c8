# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""InfiniBand, network and NVMe devices in /sys/class."""

from __future__ import annotations

import hashlib
from typing import Any

from .tree import Tree

PORT_STATES = {"ACTIVE": ("4: ACTIVE", "5: LinkUp"), "DOWN": ("1: DOWN", "3: Disabled"), "INIT": ("2: INIT", "5: LinkUp")}
ETHERNET, INFINIBAND = 1, 32  # link types of the kernel (ARPHRD_*)


def build(sys: Tree, hardware: dict[str, Any], places: dict[str, str]) -> None:
    """`places` holds the folder of each PCI device."""
    for hca in hardware.get("hcas", []):
        _hca(sys, hca, places[hca["pci_address"]])
    for nic in hardware.get("nics", []):
        _net(sys, nic["netdev"], places[nic["pci_address"]], nic["speed_mbps"], link_type=ETHERNET)
    for nvme in hardware.get("nvmes", []):
        _nvme(sys, nvme, places[nvme["pci_address"]])


def _hca(sys: Tree, hca: dict[str, Any], device: str) -> None:
    place = f"{device}/infiniband/{hca['device']}"
    guid = hca["node_guid"]
    facts = {"node_guid": guid, "sys_image_guid": guid, "node_type": "1: CA", "fw_ver": "20.39.3004", "board_id": "MT_0000000223"}
    sys.files(place, {**facts, "hca_type": f"MT{int(hca['device_id'], 16)}"})
    sys.link(f"{place}/device", device)
    sys.link(f"class/infiniband/{hca['device']}", place)
    for port in hca["ports"]:
        state, physical = PORT_STATES[port["state"]]
        folder = f"{place}/ports/{port['port']}"
        facts = {"state": state, "phys_state": physical, "rate": port["rate"], "link_layer": port["link_layer"]}
        sys.files(folder, {**facts, "lid": "0x1", "sm_lid": "0x1", "cap_mask": "0xa651e848"})
        sys.file(f"{folder}/gids/0", f"fe80:0000:0000:0000:{guid}")
        sys.file(f"{folder}/gid_attrs/ndevs/0", port["netdev"])
        for name in ("link_downed", "symbol_error", "port_rcv_errors", "port_xmit_data", "port_rcv_data"):
            sys.file(f"{folder}/counters/{name}", 0)
        link_type = INFINIBAND if port["link_layer"] == "InfiniBand" else ETHERNET
        # IP over InfiniBand shows the speed of its link, as Ethernet does.
        _net(sys, port["netdev"], device, port["rate_gbps"] * 1000, link_type=link_type, up=port["state"] == "ACTIVE")


def _net(sys: Tree, name: str, device: str, speed_mbps: int, *, link_type: int, up: bool = True) -> None:
    """Shown by sysfs alone: the kernel has no such interface, so nothing can send into it."""
    place = f"{device}/net/{name}"
    digest = hashlib.sha256(place.encode()).hexdigest()
    address = "02:" + ":".join(digest[at : at + 2] for at in range(0, 38 if link_type == INFINIBAND else 10, 2))
    sys.files(
        place,
        {
            "speed": speed_mbps,
            "duplex": "full",
            "operstate": "up" if up else "down",
            "carrier": int(up),
            "mtu": 2044 if link_type == INFINIBAND else 1500,
            "type": link_type,
            "flags": "0x1003" if up else "0x1002",
            "dev_port": 0,
            "dev_id": "0x0",
            "address": address,
            "ifindex": 1000 + int(digest[:4], 16),
        },
    )
    sys.link(f"{place}/device", device)
    sys.link(f"class/net/{name}", place)


def _nvme(sys: Tree, nvme: dict[str, Any], device: str) -> None:
    """nvme0n1 is namespace 1 of the controller nvme0."""
    controller = nvme["device"].rpartition("n")[0]
    place = f"{device}/nvme/{controller}"
    sys.files(place, {"model": "Simulated NVMe drive", "state": "live", "transport": "pcie"})
    sys.files(f"{place}/{nvme['device']}", {"size": nvme["size_gib"] * 2**30 // 512, "ro": 0, "removable": 0, "queue/rotational": 0})
    sys.link(f"{place}/device", device)
    sys.link(f"class/nvme/{controller}", place)
