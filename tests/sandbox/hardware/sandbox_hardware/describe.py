# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's description, in the form that the simulated driver and the boot program read."""

from __future__ import annotations

import uuid
from typing import Any

from . import profiles

# How the kernel names the four lanes of an InfiniBand port at a rate.
LINKS = {100: "4X EDR", 200: "4X HDR", 400: "4X NDR"}
NAMESPACE = uuid.UUID("6f1d9c0e-6a0b-4f6e-9d55-3f6f2b8f7a11")


def node(sandbox: str, declared: dict[str, Any], profile: dict[str, Any]) -> dict[str, Any]:
    """GPUs in the order of the PCI bus, which is NVML's; everything that identifies one is made from its place."""
    gpus = sorted(profile["gpus"], key=lambda gpu: gpu["pci_address"])
    switches = [_nvswitch(address, profile) for address in profile.get("nvswitches", [])]
    seed = f"{sandbox}/{declared['name']}"
    described = [_gpu(index, gpu, profile, switches, seed) for index, gpu in enumerate(gpus)]
    if declared.get("passthrough"):
        described = [{**gpu, "passthrough": True} for gpu in described]
    return {
        "version": 1,
        "node": declared["name"],
        "cpu": profile["cpu"],
        "numa_nodes": profile["numa_nodes"],
        "gpus": described,
        "nvswitches": switches,
        "hcas": [_hca(hca, profile, seed) for hca in profile.get("hcas", [])],
        "nics": [_behind(nic, profile) for nic in profile.get("nics", [])],
        "nvmes": [_behind(nvme, profile) for nvme in profile.get("nvmes", [])],
        "gpu_profiles": {name: profiles.board(name) for name in sorted({gpu["model"] for gpu in gpus})},
    }


def _gpu(index: int, gpu: dict[str, Any], profile: dict[str, Any], switches: list[dict[str, Any]], seed: str) -> dict[str, Any]:
    facts = profiles.board(gpu["model"])
    place = f"{seed}/{gpu['pci_address']}"
    links = facts.get("nvlink", {})
    nvlinks = []
    if gpu.get("nvlink") == "nvswitch" and switches:
        # The links of a GPU are spread evenly over the switches.
        nvlinks = [
            {"remote_type": "switch", "remote_pci": switches[link % len(switches)]["pci_address"], "version": links.get("version", 3)}
            for link in range(links.get("links", 0))
        ]
    return {
        **_behind(gpu, profile),
        "gpu_profile": gpu["model"],
        "name": facts["nvml_name"],
        "uuid": f"GPU-{uuid.uuid5(NAMESPACE, place)}",
        "serial": str(1320000000000 + uuid.uuid5(NAMESPACE, place).int % 999999999),
        "minor_number": index,
        "device_id": facts["pci_device_id"],
        "subsystem_id": facts["pci_subsystem_id"],
        "vbios": facts["vbios"],
        "board_part_number": facts["board_part_number"],
        "inforom_image": facts["inforom_image"],
        "pcie_generation": facts["pcie"]["generation"],
        "pcie_width": facts["pcie"]["width"],
        "nvlinks": nvlinks,
    }


def _nvswitch(address: str, profile: dict[str, Any]) -> dict[str, Any]:
    return {**_behind({**profile["nvswitch"], "pci_address": address}, profile)}


def _hca(hca: dict[str, Any], profile: dict[str, Any], seed: str) -> dict[str, Any]:
    guid = uuid.uuid5(NAMESPACE, f"{seed}/{hca['device']}").hex[:16]
    port = {
        "port": 1,
        "link_layer": "InfiniBand",
        "rate_gbps": hca["rate_gbps"],
        "rate": f"{hca['rate_gbps']} Gb/sec ({LINKS[hca['rate_gbps']]})",
        "state": "ACTIVE",
        "netdev": hca["netdev"],
    }
    return {**_behind(hca, profile), "node_guid": ":".join(guid[at : at + 4] for at in range(0, 16, 4)), "ports": [port]}


def _behind(device: dict[str, Any], profile: dict[str, Any]) -> dict[str, Any]:
    """The device with the bridges above it: a root port, and for a switch its upstream and this device's downstream port."""
    rest = {key: value for key, value in device.items() if key not in ("switch", "root_port", "model", "nvlink")}
    if "switch" not in device:
        return {**rest, "pci_path": [device["root_port"]]}
    switch = profile["switches"][device["switch"]]
    bus = int(switch["upstream"].split(":")[1], 16)
    downstream = f"0000:{bus + 1:02x}:{int(device['pci_address'].split(':')[1], 16) % 32:02x}.0"
    return {**rest, "numa_node": switch["numa_node"], "pci_path": [switch["root_port"], switch["upstream"], downstream]}
