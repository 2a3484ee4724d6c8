# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans that a person has read and found right. To renew them after an intended change: pytest --update-golden, then read the diff."""

from __future__ import annotations

from pathlib import Path

import checker
import generated
import inventory_folders
import planning
import pytest
from small import NUMA, gpus, service

GOLDEN = Path(__file__).parent / "golden"
INVENTORIES = planning.ROOT / "inventories"


def compare(name: str, text: str, update: bool) -> None:
    path = GOLDEN / f"{name}.json"
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def tables(*models: str) -> dict[str, dict[str, object]]:
    return {model: checker.gpu_table(model, planning.ROOT / "data") for model in models}


def test_the_reference_datacenter(update_golden: bool) -> None:
    source = inventory_folders.read(INVENTORIES / "hongkong")
    hosts = {name: source.variables[name] for name, groups in source.groups.items() if "gpu_nodes" in groups}
    made = planning.plan(hosts, source.groups)
    assert made.complete
    assert not checker.violations(hosts, source.groups, made.document, tables(generated.A100, generated.V100))
    compare("hongkong", planning.text(made), update_golden)


def test_a_node_with_a100_and_v100(update_golden: bool) -> None:
    """Eight A100 and two V100 in one chassis: the proprietary module for all, each service on the GPUs that suit it."""
    shared = {
        "inference_models": generated.MODELS,
        "inference_services": [
            service("chat", replicas=6, device={"mig": ["4g.40gb", "3g.40gb"]}),
            service("bulk", model="seventy", device={"gpus": 4}, **{"class": "batch"}),
            service("embed", model="encoder", replicas=4, device={"share": 4}, **{"class": "auxiliary"}),
        ],
    }
    hosts = {"mixed-1": shared | {"gpu_devices": [gpus(generated.A100, 8, "all"), gpus(generated.V100, 2)], "numa_nodes": NUMA}}
    groups = {"mixed-1": ("gpu_nodes", "mixed")}
    made = planning.plan(hosts, groups)
    assert made.complete
    assert made.document["nodes"]["mixed-1"]["driver"]["flavour"] == "proprietary"
    assert {replica["gpu_model"] for replica in made.document["nodes"]["mixed-1"]["replicas"] if replica["service"] == "embed"} == {
        generated.V100
    }
    assert not checker.violations(hosts, groups, made.document, tables(generated.A100, generated.V100))
    compare("mixed", planning.text(made), update_golden)


@pytest.mark.parametrize("name", ["hongkong"])
def test_the_reference_geometry_uses_all_seven_slices(name: str) -> None:
    source = inventory_folders.read(INVENTORIES / name)
    hosts = {host: source.variables[host] for host, groups in source.groups.items() if "gpu_nodes" in groups}
    nodes = planning.plan(hosts, source.groups).document["nodes"]
    layouts = [entry["profiles"] for node in nodes.values() for entry in node["geometry"] if "profiles" in entry]
    assert layouts.count(["4g.40gb@0", "3g.40gb@4"]) == 6
    assert not any(layout == ["3g.40gb@0", "3g.40gb@4"] for layout in layouts)
