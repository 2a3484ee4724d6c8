# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node profiles: from the collection's data, or made up from a short description of other hardware."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import yaml

from .errors import MixError

# Buses 10 to cf, eight for each switch; what is above belongs to adapters and drives.
MOST_SWITCHES = 24
DATA = Path(__file__).resolve().parents[4] / "data"


@functools.cache
def board(model: str) -> dict[str, Any]:
    """Everything about one board: the facts of its GPU model with what is particular to the board. `model` is a name that NVML
    gives, or the same as inventories write it: A100-SXM4-80GB for "NVIDIA A100-SXM4-80GB"."""
    boards = _boards()
    spelt = {re.sub("^(NVIDIA|Tesla) ", "", name).replace(" ", "-"): name for name in boards}
    name = spelt.get(model, model)
    if name not in boards:
        raise MixError(f"There is no GPU model {model!r}; the models are {', '.join(sorted(spelt))}.")
    return boards[name]


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
            neighbours = sum(switches[gpu["switch"]]["numa_node"] == node for gpu in gpus)
            name = f"sw{neighbours // 2}n{node}"
            if name not in switches:
                if len(switches) == MOST_SWITCHES:
                    raise MixError(f"{where}: there is room for {2 * MOST_SWITCHES} GPUs, two below each PCIe switch; describe fewer.")
                bus = 0x10 + 8 * len(switches)
                switches[name] = {"root_port": f"0000:{bus:02x}:01.1", "upstream": f"0000:{bus + 1:02x}:00.0", "numa_node": node}
            bus = int(switches[name]["upstream"].split(":")[1], 16) + 2 + neighbours % 2
            gpu = {"model": entry["model"], "pci_address": f"0000:{bus:02x}:00.0", "switch": name}
            gpus.append({**gpu, "nvlink": "nvswitch"} if entry.get("nvlink_set", "none") != "none" else gpu)
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
                "device_id": "0x16d7",
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
