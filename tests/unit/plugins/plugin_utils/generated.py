# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generates small clusters and services for property tests, as raw variables."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

A100, V100 = "A100-SXM4-80GB", "V100-PCIE-32GB"
MODELS: dict[str, dict[str, Any]] = {
    "eight": {
        "parameters": 8.03e9,
        "layers": 32,
        "attention_heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "hidden_size": 4096,
        "dtype": "float16",
    },
    "seventy": {
        "parameters": 70.6e9,
        "layers": 80,
        "attention_heads": 64,
        "kv_heads": 8,
        "head_dim": 128,
        "hidden_size": 8192,
        "dtype": "bfloat16",
    },
    "encoder": {"parameters": 568e6, "layers": 24, "attention_heads": 16, "hidden_size": 1024, "dtype": "float16", "encoder": True},
}


@st.composite
def node(draw: st.DrawFn, most_gpus: int = 4) -> tuple[str, dict[str, Any]]:
    kind = draw(st.sampled_from(["a100", "a100", "v100", "mixed"]))
    runs = []
    for model in {"a100": [A100], "v100": [V100], "mixed": [A100, V100]}[kind]:
        count = draw(st.integers(1, most_gpus if kind != "mixed" else max(1, most_gpus // 2)))
        runs.append(
            {
                "model": model,
                "count": count,
                "numa_nodes": sorted(draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))),
                "nvlink_set": draw(st.sampled_from(["all", "none", [index // 2 for index in range(count)]])),
            }
        )
    variables: dict[str, Any] = {
        "gpu_devices": runs,
        "numa_nodes": [
            {
                "id": 0,
                "cpus": draw(st.sampled_from(["0-15,32-47", "0-7,32-39", "0-4,32-36"])),
                "memory_mib": 16384 + 65536 * draw(st.integers(1, 4)),
            },
            {"id": 1, "cpus": "16-31,48-63", "memory_mib": 16384 + 65536 * draw(st.integers(1, 4))},
        ],
        "numa_hugepages_mib": draw(st.sampled_from([0, 0, 8192])),
    }
    if draw(st.integers(0, 9)) == 0:
        variables["gpu_excluded"] = [0]
    if draw(st.integers(0, 9)) == 0:
        variables["node_state"] = draw(st.sampled_from(["maintenance", "absent"]))
    return kind, variables


DEVICES = [
    {"mig": "1g.10gb"},
    {"mig": "2g.20gb"},
    {"mig": "3g.40gb"},
    {"mig": ["4g.40gb", "3g.40gb"]},
    {"mig": "7g.80gb"},
    {"mig": ["1g.20gb", "2g.20gb"]},
    {"gpus": 1},
    {"gpus": 2},
    {"gpus": 4},
    {"share": 2},
    {"share": 4},
    None,
]


@st.composite
def service(draw: st.DrawFn, name: str, *, others: list[str], nodes: list[str], pools: list[str], most_replicas: int) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": name,
        "model": draw(st.sampled_from(["eight", "eight", "encoder", "encoder", "seventy"])),
        "class": draw(st.sampled_from(["interactive", "batch", "auxiliary"])),
        "replicas": draw(st.integers(1, most_replicas)),
        "context_tokens": draw(st.sampled_from([512, 4096])),
        "concurrent_requests": draw(st.sampled_from([1, 8])),
        "cpus": draw(st.sampled_from([0, 2, 8])),
        "memory_mib": draw(st.sampled_from([0, 16384, 49152])),
    }
    device = draw(st.sampled_from(DEVICES))
    if device:
        entry["device"] = device
    rare = draw(st.integers(0, 11))
    if rare == 0:
        entry["anti_affinity"] = draw(st.sampled_from(["node", "gpu"]))
    elif rare == 1 and others:
        entry["apart_from"] = [draw(st.sampled_from(others))]
    elif rare == 2:
        entry["nodes"] = [draw(st.sampled_from(nodes))]
    elif rare == 3:
        entry["pool"] = draw(st.sampled_from(pools))
    elif rare == 4:
        entry["hugepages_mib"] = 4096
    elif rare == 5:
        entry["allow_pcie_tensor_parallel"] = True
    return entry


@st.composite
def cluster(
    draw: st.DrawFn, most_nodes: int = 3, most_gpus: int = 4, most_services: int = 4, most_replicas: int = 5
) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Return variables by host and groups by host."""
    drawn = draw(st.lists(node(most_gpus), min_size=1, max_size=most_nodes))
    hosts = {f"n{index}": variables for index, (_kind, variables) in enumerate(drawn)}
    groups: dict[str, tuple[str, ...]] = {f"n{index}": ("gpu_nodes", kind) for index, (kind, _variables) in enumerate(drawn)}
    names = [f"s{index}" for index in range(draw(st.integers(1, most_services)))]
    pools = sorted({group for found in groups.values() for group in found})
    services = [
        draw(service(name, others=names[:index], nodes=sorted(hosts), pools=pools, most_replicas=most_replicas))
        for index, name in enumerate(names)
    ]
    shared = {"inference_models": MODELS, "inference_services": services}
    return {name: shared | variables for name, variables in hosts.items()}, groups
