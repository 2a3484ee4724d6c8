# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small reference cluster for tests: one node with A100s, one with V100s."""

from __future__ import annotations

import copy
from typing import Any

import generated

NUMA = [{"id": 0, "cpus": "0-31,64-95", "memory_mib": 515072}, {"id": 1, "cpus": "32-63,96-127", "memory_mib": 515072}]
GROUPS = {"a100-1": ("gpu_nodes", "a100"), "v100-1": ("gpu_nodes", "v100")}


def gpus(model: str, count: int, link: Any = "none") -> dict[str, Any]:
    return {"model": model, "count": count, "numa_nodes": [0 if index < count / 2 else 1 for index in range(count)], "nvlink_set": link}


def service(name: str, **keys: Any) -> dict[str, Any]:
    return {
        "name": name,
        "model": "eight",
        "class": "interactive",
        "replicas": 1,
        "context_tokens": 4096,
        "concurrent_requests": 8,
    } | keys


def cluster(
    *services: dict[str, Any], a100: int = 8, v100: int = 8, **variables: Any
) -> tuple[dict[str, dict[str, Any]], dict[str, tuple[str, ...]]]:
    shared: dict[str, Any] = {"inference_models": copy.deepcopy(generated.MODELS), "inference_services": list(services)} | variables
    hosts: dict[str, dict[str, Any]] = {}
    if a100:
        hosts["a100-1"] = shared | {"gpu_devices": [gpus(generated.A100, a100, "all")], "numa_nodes": NUMA}
    if v100:
        hosts["v100-1"] = shared | {"gpu_devices": [gpus(generated.V100, v100)], "numa_nodes": NUMA}
    return hosts, {name: GROUPS[name] for name in hosts}
