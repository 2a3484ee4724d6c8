# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declared hardware against what nodes report."""

from __future__ import annotations

from typing import Any

import planning
import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _differences, _planner, _sticky
from small import cluster, service

SLOTS = [f"0000:{bus:02x}:00.0" for bus in (7, 15, 71, 78)]
LINK = {"link": 0, "active": True}


def facts(**changes: Any) -> dict[str, dict[str, Any]]:
    """What a node with four A100 reports; `changes` are those of GPU 2."""
    gpus = [
        {
            "index": index,
            "name": "NVIDIA A100-SXM4-80GB",
            "uuid": f"GPU-{index}",
            "pci_address": slot,
            "numa_node": index // 2,
            "memory_mib": 81920,
            "nvlinks": [LINK],
            "mig": {"capable": True, "mode_current": "disabled", "instances": []},
        }
        for index, slot in enumerate(SLOTS)
    ]
    gpus[2] |= changes
    return {"a100-1": {"gpus": gpus}}


def inventory(*services: dict[str, Any]) -> Any:
    return planning.inventory(*cluster(*(services or (service("a", device={"gpus": 2}),)), a100=4, v100=0))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({}, None),
        ({"name": None, "numa_node": None, "nvlinks": None, "mig": None}, None),
        ({"numa_node": -1}, None),
        ({"name": "NVIDIA A100-SXM4-40GB"}, "the model of GPU 2 is declared as A100-SXM4-80GB, but the node has A100-SXM4-40GB"),
        ({"name": "NVIDIA T4"}, "the model of GPU 2 is declared as A100-SXM4-80GB, but the node has NVIDIA T4"),
        ({"numa_node": 0}, "the NUMA node of GPU 2 is declared as 1, but the node has 0"),
        ({"nvlinks": []}, "NVLink of GPU 2 is declared as present, but the node has absent"),
        ({"nvlinks": [{"link": 0, "active": False}]}, None),
    ],
)
def test_what_differs_is_said_and_what_is_unknown_is_not(changes: dict[str, Any], what: str | None) -> None:
    found = [difference.document() for difference in _differences.compare(inventory(), facts(**changes), planning.catalog())]
    assert [one["sentence"].split(". ")[0] for one in found] == ([f"a100-1: {what}"] if what else [])
    assert all(one["error"] for one in found)


def test_the_plan_is_the_same_from_declared_slots_and_from_facts() -> None:
    hosts, groups = cluster(service("a", device={"gpus": 2}), service("b", replicas=3, device={"mig": "3g.40gb"}), a100=4, v100=0)
    found = _planner.make_plan(_differences.with_slots(planning.inventory(hosts, groups), facts()), planning.catalog())
    hosts["a100-1"]["gpu_devices"] = [hosts["a100-1"]["gpu_devices"][0] | {"pci_addresses": SLOTS}]
    assert planning.text(found) == planning.text(planning.plan(hosts, groups))


def test_the_geometry_of_a_node_without_a_plan_is_used_before_another_is_made() -> None:
    there = [{"profile": "3g.40gb", "start": 4}, {"profile": "3g.40gb", "start": 0}]
    reported = facts(mig={"capable": True, "mode_current": "enabled", "instances": there})
    asked = _differences.with_slots(inventory(service("b", replicas=2, device={"mig": ["4g.40gb", "3g.40gb"]})), reported)
    in_force = _differences.geometry_of(_sticky.InForce(), reported)
    made = _planner.make_plan(asked, planning.catalog(), in_force)
    assert not made.geometry_changes
    assert {replica["device"]["pci_address"] for replica in made.document["nodes"]["a100-1"]["replicas"]} == {SLOTS[2]}


def test_less_memory_counts_only_where_a_replica_no_longer_fits() -> None:
    asked = inventory(service("a", device={"gpus": 1}, replicas=4))
    plan = _planner.make_plan(asked, planning.catalog()).document
    settings = asked.settings
    assert not _differences.memory_differences(asked, plan, facts(memory_mib=70000), settings)
    (found,) = _differences.memory_differences(asked, plan, facts(memory_mib=20000), settings)
    assert "the memory under a-" in found.document()["sentence"]


def test_a_replaced_board_is_reported() -> None:
    in_force = _sticky.read(None, {"a100-1": {"gpu_uuids": {SLOTS[2]: "GPU-2"}}})
    assert not _differences.replaced_gpus(in_force, facts())
    (found,) = _differences.replaced_gpus(in_force, facts(uuid="GPU-9"))
    assert "The board was replaced" in found.document()["sentence"]
    assert not found.error


def test_a_geometry_that_nobody_could_read_is_not_an_empty_one() -> None:
    reported = facts(mig={"capable": True, "mode_current": "enabled", "instances": None})
    assert SLOTS[2] not in _differences.geometry_of(_sticky.InForce(), reported).layouts["a100-1"]
