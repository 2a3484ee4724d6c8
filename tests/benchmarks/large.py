# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans 1,000 nodes with 8 GPUs each, 50 services and about 6,000 replicas; prints seconds and memory.

    python3 tests/benchmarks/large.py [--full] [--again]

--full asks for more than fits; --again plans once more with the first plan in force.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from pathlib import Path
from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils import _catalog, _document, _inventory, _planner, _sticky

DATA = Path(_catalog.__file__).parents[2] / "data"
NUMA = [{"id": 0, "cpus": "0-63,128-191", "memory_mib": 515072}, {"id": 1, "cpus": "64-127,192-255", "memory_mib": 516096}]
MODELS = {
    "small": {"parameters": 8.03e9, "layers": 32, "attention_heads": 32, "kv_heads": 8, "hidden_size": 4096, "dtype": "float16"},
    "large": {"parameters": 70.6e9, "layers": 80, "attention_heads": 64, "kv_heads": 8, "hidden_size": 8192, "dtype": "bfloat16"},
    "encoder": {"parameters": 568e6, "layers": 24, "attention_heads": 16, "hidden_size": 1024, "dtype": "float16", "encoder": True},
}


def variables(
    nodes: int, services: int, full: bool, seed: int = 7
) -> tuple[dict[str, dict[str, Any]], dict[str, tuple[str, ...]], dict[str, Any]]:
    """Return hosts, groups and cluster variables: three of four nodes have A100s, the others V100s."""
    choose = random.Random(seed)
    a100 = {
        "gpu_devices": [{"model": "A100-SXM4-80GB", "count": 8, "numa_nodes": [0] * 4 + [1] * 4, "nvlink_set": "all"}],
        "numa_nodes": NUMA,
    }
    v100 = {"gpu_devices": [{"model": "V100-PCIE-32GB", "count": 8, "numa_nodes": [0] * 4 + [1] * 4}], "numa_nodes": NUMA}
    hosts = {f"gpu-{index:04}": v100 if index % 4 == 3 else a100 for index in range(nodes)}
    groups: dict[str, tuple[str, ...]] = {name: ("gpu_nodes", "v100" if value is v100 else "a100") for name, value in hosts.items()}
    kinds: list[dict[str, Any]] = [
        {"model": "small", "class": "interactive", "device": {"mig": ["4g.40gb", "3g.40gb"]}, "replicas": 260},
        {"model": "small", "class": "interactive", "device": {"mig": "2g.20gb"}, "replicas": 180, "concurrent_requests": 1},
        {"model": "large", "class": "batch", "device": {"gpus": 4}, "replicas": 40},
        {"model": "large", "class": "batch", "device": {"gpus": 8}, "replicas": 10},
        {"model": "encoder", "class": "auxiliary", "device": {"share": 4}, "replicas": 110},
        {"model": "small", "class": "interactive", "replicas": 60},
        {"model": "encoder", "class": "auxiliary", "pool": "v100", "device": {"share": 2}, "replicas": 60},
    ]
    entries = []
    for index in range(services):
        kind = dict(kinds[index % len(kinds)])
        count = round(kind.pop("replicas") * choose.uniform(0.85, 1.6) * nodes / 1000 * (2.2 if full else 1)) or 1
        entries.append({"name": f"service-{index:02}", "replicas": count, "context_tokens": 4096, "concurrent_requests": 4} | kind)
    return hosts, groups, {"inference_models": MODELS, "inference_services": entries}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--services", type=int, default=50)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--again", action="store_true")
    arguments = parser.parse_args()
    hosts, groups, cluster = variables(arguments.nodes, arguments.services, arguments.full)
    catalog = _catalog.load(DATA)
    started = time.process_time()
    inventory = _inventory.load([_inventory.Host(name, groups[name], own) for name, own in hosts.items()], cluster, catalog)
    read = time.process_time()
    made = _planner.make_plan(inventory, catalog)
    planned = time.process_time()
    text = _document.render(made.document)
    ended = time.process_time()
    print(json.dumps(made.document["summary"]))
    print(f"inventory {read - started:.2f} s, plan {planned - read:.2f} s, document {ended - planned:.2f} s ({len(text) / 1e6:.1f} MB)")
    if arguments.again:
        started = time.process_time()
        again = _planner.make_plan(inventory, catalog, _sticky.read(json.loads(text), {}))
        print(
            f"again {time.process_time() - started:.2f} s, moves {len(again.moves)}, same bytes {_document.render(again.document) == text}"
        )
    print(f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
