# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties that every plan has, whatever the inventory."""

from __future__ import annotations

import json
import random
from typing import Any

import checker
import generated
import planning
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ORDINARY = settings(
    deadline=None, derandomize=True, max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
TABLES = {model: checker.gpu_table(model, planning.ROOT / "data") for model in (generated.A100, generated.V100)}


@ORDINARY
@given(generated.cluster())
def test_a_plan_passes_the_independent_checker(cluster: Any) -> None:
    hosts, groups = cluster
    assert not checker.violations(hosts, groups, planning.plan(hosts, groups).document, TABLES)


@ORDINARY
@given(generated.cluster(), st.randoms(use_true_random=False))
def test_order_of_hosts_services_and_keys_does_not_matter(cluster: Any, order: random.Random) -> None:
    hosts, groups = cluster

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            order.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        return value

    other = shuffled(hosts)
    services = list(hosts["n0"]["inference_services"])
    order.shuffle(services)
    for variables in other.values():
        variables["inference_services"] = [shuffled(service) for service in services]
    assert planning.text(planning.plan(other, groups)) == planning.text(planning.plan(hosts, groups))


@ORDINARY
@given(generated.cluster())
def test_planning_again_changes_no_byte_and_moves_nothing(cluster: Any) -> None:
    hosts, groups = cluster
    first = planning.text(planning.plan(hosts, groups))
    again = planning.plan(hosts, groups, json.loads(first))
    assert planning.text(again) == first
    assert not (again.moves or again.started or again.stopped or again.geometry_changes or again.drained)


@ORDINARY
@given(generated.cluster(most_services=3), generated.cluster(most_nodes=1, most_services=1))
def test_a_new_node_and_a_new_service_move_nothing(cluster: Any, extra: Any) -> None:
    hosts, groups = cluster
    first = json.loads(planning.text(planning.plan(hosts, groups)))
    added = dict(extra[0]["n0"]["inference_services"][0], name="new", apart_from=[], nodes=[])
    added.pop("pool", None)
    services = [*hosts["n0"]["inference_services"], added]
    more = {name: variables | {"inference_services": services} for name, variables in (hosts | {"n9": extra[0]["n0"]}).items()}
    made = planning.plan(more, groups | {"n9": extra[1]["n0"]}, first)
    assert not made.moves and not made.stopped
    assert not checker.violations(more, groups | {"n9": extra[1]["n0"]}, made.document, TABLES)


@ORDINARY
@given(generated.cluster(most_nodes=4))
def test_removing_a_node_replaces_only_what_it_held(cluster: Any) -> None:
    hosts, groups = cluster
    if len(hosts) < 2:
        return
    first = json.loads(planning.text(planning.plan(hosts, groups)))
    gone = "n1"
    left = {name: variables | ({"node_state": "absent"} if name == gone else {}) for name, variables in hosts.items()}
    made = planning.plan(left, groups, first)
    held = {replica["name"] for replica in first["nodes"][gone]["replicas"]}
    assert {move["replica"] for move in made.moves} <= held
    assert {stop["replica"] for stop in made.stopped} <= held
    assert not checker.violations(left, groups, made.document, TABLES)
