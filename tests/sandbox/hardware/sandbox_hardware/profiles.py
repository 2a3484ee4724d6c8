# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node profiles: from the collection's data, or made up from a short description of other hardware."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml

from .errors import MixError

DATA = Path(__file__).resolve().parents[4] / "data"


@functools.cache
def board(model: str) -> dict[str, Any]:
    """Everything about one board: the facts of its GPU model with what is particular to the board. `model` is a name that NVML gives."""
    boards = _boards()
    if model not in boards:
        raise MixError(f"There is no GPU model {model!r}; the models are {', '.join(sorted(boards))}.")
    return boards[model]


@functools.lru_cache(maxsize=1)
def _boards() -> dict[str, dict[str, Any]]:
    found = {}
    for path in sorted((DATA / "gpu-profiles").glob("*.yaml")):
        facts = yaml.safe_load(path.read_text(encoding="utf-8"))
        for name, own in facts.pop("boards").items():
            found[name] = {**facts, **own, "nvml_name": name}
    return found


def load(name: str, where: str) -> dict[str, Any]:
    path = DATA / "node-profiles" / f"{name}.yaml"
    if not path.exists():
        known = ", ".join(sorted(one.stem for one in path.parent.glob("*.yaml")))
        raise MixError(f"{where} names the node profile {name!r}, which does not exist; the profiles are {known}.")
    profile = dict(yaml.safe_load(path.read_text(encoding="utf-8")))
    return _with_base(profile, where) if "base" in profile else profile


def _with_base(profile: dict[str, Any], where: str) -> dict[str, Any]:
    """Maps and lists of GPUs add to the base's, everything else replaces it."""
    base = load(profile["base"], where)
    model = profile.get("replace_gpu_model")
    gpus = [{**gpu, "model": model} if model else gpu for gpu in base["gpus"]] + profile.get("gpus", [])
    return {**base, **profile, "switches": {**base["switches"], **profile.get("switches", {})}, "gpus": gpus}


def generate(hardware: dict[str, Any], where: str) -> dict[str, Any]:
    """One PCIe switch for two GPUs, addresses in order, CPUs without SMT."""
    count = hardware.get("numa_nodes", 2)
    cpus = hardware.get("cpus_per_numa_node", 16)
    memory = hardware.get("memory_mib_per_numa_node", 257024)
    switches: dict[str, Any] = {}
    gpus: list[dict[str, Any]] = []
    for entry in hardware["gpu_devices"]:
        nodes = entry.get("numa_nodes") or [index * count // entry["count"] for index in range(entry["count"])]
        if len(nodes) != entry["count"]:
            raise MixError(f"{where}: {entry['model']} has count {entry['count']} but {len(nodes)} numa_nodes; give one for each GPU.")
        for node in nodes:
            if node >= count:
                raise MixError(f"{where}: a {entry['model']} is on NUMA node {node}, but the node has {count}; correct numa_nodes.")
            number = len(gpus)
            switch = f"sw{number // 2}n{node}"
            bus = 0x10 + 8 * (number // 2)
            switches.setdefault(
                switch, {"root_port": f"0000:{bus:02x}:01.1", "upstream": f"0000:{bus + 1:02x}:{node % 16:02x}.0", "numa_node": node}
            )
            gpu = {"model": entry["model"], "pci_address": f"0000:{bus + 3 + number % 2:02x}:00.0", "switch": switch}
            gpus.append({**gpu, "nvlink": "nvswitch"} if entry.get("nvlink_set") else gpu)
    hcas = [
        {
            "device": f"mlx5_{index}",
            "pci_address": f"0000:{0xE0 + index:02x}:00.0",
            "root_port": f"0000:{0xD0 + index:02x}:01.1",
            "numa_node": index % count,
            "device_id": "0x101b",
            "rate_gbps": 200,
            "netdev": f"ibp{0xE0 + index}s0",
        }
        for index in range(hardware.get("hcas", 2))
    ]
    linked = any("nvlink" in gpu for gpu in gpus)
    return {
        "cpu": {"model": "Simulated", "sockets": count, "cores_per_socket": cpus, "threads_per_core": 1},
        "numa_nodes": [
            {
                "id": node,
                "cpulist": f"{node * cpus}-{node * cpus + cpus - 1}",
                "memory_mib": memory,
                "distances": [10 if node == other else 21 for other in range(count)],
            }
            for node in range(count)
        ],
        "switches": {**switches, "board": {"root_port": "0000:f0:01.1", "upstream": "0000:f1:00.0", "numa_node": 0}},
        "gpus": gpus,
        "nvswitches": ["0000:f4:00.0", "0000:f5:00.0"] if linked else [],
        "nvswitch": {"device_id": "0x1af1", "switch": "board"},
        "hcas": hcas,
        "nics": [
            {
                "pci_address": "0000:f9:00.0",
                "root_port": "0000:f8:01.1",
                "numa_node": 0,
                "device_id": "0x1015",
                "speed_mbps": 25000,
                "netdev": "enp249s0f0np0",
            }
        ],
        "nvmes": [
            {
                "device": "nvme0n1",
                "pci_address": "0000:fb:00.0",
                "root_port": "0000:fa:01.1",
                "numa_node": 0,
                "device_id": "0xa824",
                "size_gib": 3576,
            }
        ],
    }
