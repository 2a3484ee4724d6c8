# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs stays where it is."""

from __future__ import annotations

import json
from typing import Any

import planning
import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _planner, _sticky
from small import cluster, service


def replan(first: Any, *services: dict[str, Any], change: dict[str, dict[str, Any]] | None = None, **keys: Any) -> Any:
    limited = keys.pop("limited", None)
    hosts, groups = cluster(*services, **keys)
    for node, variables in (change or {}).items():
        hosts[node] = hosts[node] | variables
    return planning.plan(hosts, groups, json.loads(planning.text(first)), limited)


def make(*services: dict[str, Any], **keys: Any) -> Any:
    return planning.plan(*cluster(*services, **keys))


def where(plan: Any) -> dict[str, tuple[str, str, int]]:
    return {
        replica["name"]: (replica["device_key"], replica["cpus"], replica["http_port"])
        for part in plan.document["nodes"].values()
        for replica in part["replicas"]
    }


def test_unchanged_replicas_keep_device_cpus_and_ports() -> None:
    first = make(service("b", replicas=3, device={"mig": "3g.40gb"}), service("c", replicas=2, model="encoder", device={"share": 4}))
    second = replan(
        first,
        service("a", replicas=4, device={"mig": "2g.20gb"}),
        service("b", replicas=5, device={"mig": "3g.40gb"}),
        service("c", replicas=1, model="encoder", device={"share": 4}),
    )
    before, after = where(first), where(second)
    assert {name: after[name] for name in before if name != "c-2"} == {name: before[name] for name in before if name != "c-2"}
    assert not second.moves
    assert [stop["replica"] for stop in second.stopped] == ["c-2"]


def test_a_service_that_fits_only_by_moving_another_is_refused_with_the_moves() -> None:
    first = make(service("a", replicas=2, device={"mig": "3g.40gb"}, nodes=["a100-1"], anti_affinity="gpu"), a100=2, v100=0)
    whole = service("b", device={"gpus": 1}, pool="a100")
    same = service("a", replicas=2, device={"mig": "3g.40gb"}, nodes=["a100-1"])
    second = replan(first, same, whole, a100=2, v100=0)
    (refusal,) = second.document["refusals"]
    assert refusal["code"] == "needs_moves"
    assert (
        refusal["moves"] == [{"replica": "a-1", "from": "a100-1/gpu0/3g.40gb@4", "to": "a100-1/gpu1/3g.40gb@0"}]
        or len(refusal["moves"]) == 1
    )
    assert "Allow it with plan_max_moves: 1" in refusal["sentence"]
    assert not second.moves
    third = replan(first, same, whole, a100=2, v100=0, plan_max_moves=1)
    assert third.complete
    assert len(third.moves) == 1
    assert third.drained == ["a100-1"]


def test_where_moves_are_allowed_a_more_important_service_comes_before_what_needs_none() -> None:
    first = make(service("a", replicas=2, device={"mig": "3g.40gb"}, anti_affinity="gpu"), a100=2, v100=0)
    services = (
        service("a", replicas=2, device={"mig": "3g.40gb"}),
        service("whole", device={"gpus": 1}),
        service("part", device={"mig": "3g.40gb"}, **{"class": "auxiliary"}),
    )
    without = replan(first, *services, a100=2, v100=0)
    assert {name: entry["placed"] for name, entry in without.document["services"].items()} == {"a": 2, "part": 1, "whole": 0}
    assert not without.moves
    moved = replan(first, *services, a100=2, v100=0, plan_max_moves=1)
    assert {name: entry["placed"] for name, entry in moved.document["services"].items()} == {"a": 2, "part": 0, "whole": 1}
    assert len(moved.moves) == 1


def test_no_more_replicas_move_than_allowed() -> None:
    first = make(service("a", replicas=4, device={"mig": "3g.40gb"}, anti_affinity="gpu"), a100=4, v100=0)
    services = (service("a", replicas=4, device={"mig": "3g.40gb"}), service("whole", replicas=2, device={"gpus": 1}))
    for allowed in (0, 1, 2, 3):
        second = replan(first, *services, a100=4, v100=0, plan_max_moves=allowed)
        assert len(second.moves) == second.document["services"]["whole"]["placed"] == min(allowed, 2)


def test_a_limited_run_changes_only_the_limited_nodes() -> None:
    services = (service("a", replicas=2, device={"gpus": 1}, pool="a100"), service("b", replicas=2, device={"share": 2}, pool="v100"))
    first = make(*services)
    grown = (service("a", replicas=4, device={"gpus": 1}, pool="a100"), service("b", replicas=4, device={"share": 2}, pool="v100"))
    second = replan(first, *grown, limited=["a100-1"])
    assert second.document["nodes"]["v100-1"]["replicas"] == first.document["nodes"]["v100-1"]["replicas"]
    assert len(second.document["nodes"]["a100-1"]["replicas"]) == 4
    assert second.document["refusals"][0]["service"] == "b"
    # A service that is gone from the inventory still runs on nodes outside of the limit.
    third = replan(first, services[0], limited=["a100-1"])
    assert third.document["nodes"]["v100-1"]["replicas"] == first.document["nodes"]["v100-1"]["replicas"]


def test_maintenance_keeps_what_runs_and_takes_nothing_new() -> None:
    first = make(service("a", replicas=2, device={"gpus": 1}, pool="a100"))
    second = replan(first, service("a", replicas=3, device={"gpus": 1}, pool="a100"), change={"a100-1": {"node_state": "maintenance"}})
    assert where(second) == where(first)
    assert second.document["refusals"][0]["code"] == "no_active_node"


def test_an_excluded_gpu_gives_up_its_replica() -> None:
    first = make(service("a", replicas=2, device={"gpus": 1}, pool="a100"))
    second = replan(first, service("a", replicas=2, device={"gpus": 1}, pool="a100"), change={"a100-1": {"gpu_excluded": [0]}})
    (move,) = second.moves
    assert move["from"] == "a100-1/gpu0"
    assert "excluded" in move["reason"]


def test_slots_that_become_known_move_nothing() -> None:
    asked = service("a", replicas=3, device={"mig": ["4g.40gb", "3g.40gb"]}), service("b", device={"gpus": 2}, pool="a100")
    first = make(*asked, a100=4, v100=0)
    hosts, groups = cluster(*asked, a100=4, v100=0)
    slots = [f"0000:{bus:02x}:00.0" for bus in (7, 15, 71, 78)]
    hosts["a100-1"]["gpu_devices"] = [hosts["a100-1"]["gpu_devices"][0] | {"pci_addresses": slots}]
    second = planning.plan(hosts, groups, json.loads(planning.text(first)))
    assert not second.moves
    assert not second.geometry_changes
    assert second.document["nodes"]["a100-1"]["replicas"][0]["device_key"].startswith("a100-1/0000:")


def test_the_record_of_a_node_counts_more_than_the_file_of_the_controller() -> None:
    asked = service("a", device={"gpus": 1}, pool="a100")
    first = json.loads(planning.text(make(asked)))
    record = json.loads(json.dumps(first["nodes"]["a100-1"]))
    record["replicas"][0]["device"] = {"gpus": [5], "indexes": [5]}
    record["replicas"][0]["numa_node"] = 1
    record["replicas"][0]["cpus"] = ""
    in_force = _sticky.read(first, {"a100-1": record})
    made = _planner.make_plan(planning.inventory(*cluster(asked)), planning.catalog(), in_force)
    assert made.document["nodes"]["a100-1"]["replicas"][0]["device_key"] == "a100-1/gpu5"
    assert not made.moves


def test_unused_instances_stay_until_their_room_is_needed() -> None:
    first = make(service("a", replicas=2, device={"mig": "3g.40gb"}), service("b", device={"gpus": 1}, pool="a100"), a100=2, v100=0)
    second = replan(first, service("b", device={"gpus": 1}, pool="a100"), a100=2, v100=0)
    assert not second.geometry_changes
    assert second.document["nodes"]["a100-1"]["unused_instances"] == ["gpu1/3g.40gb@0", "gpu1/3g.40gb@4"]
    third = replan(second, service("b", replicas=2, device={"gpus": 1}, pool="a100"), a100=2, v100=0)
    assert [change["after"] for change in third.geometry_changes] == ["off"]


@pytest.mark.parametrize(
    "broken",
    [{"schema": 7, "nodes": {}}, {"nodes": {}}, [], {"schema": 1, "nodes": {"x": {"replicas": [{}]}}}, {"schema": 1, "nodes": {"x": 3}}],
)
def test_a_plan_in_force_that_cannot_be_read_is_said(broken: Any) -> None:
    with pytest.raises(_sticky.PlanError, match="the plan in force"):
        _sticky.read(broken, {})
