# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On small clusters the planner places as much as any placement could, so every refusal is right."""

from __future__ import annotations

import json
from typing import Any

import checker
import exhaustive
import generated
import planning
from hypothesis import HealthCheck, given, settings

SMALL = settings(deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
TABLES = {model: checker.gpu_table(model, planning.ROOT / "data") for model in (generated.A100, generated.V100)}


def placed(plan: dict[str, Any]) -> dict[str, list[exhaustive.Device]]:
    found: dict[str, list[exhaustive.Device]] = {}
    for node, part in plan["nodes"].items():
        for replica in part["replicas"]:
            device = replica["device"]
            found.setdefault(replica["service"], []).append(
                (node, tuple(device["indexes"]), device.get("profile", ""), device.get("start", 0), device.get("share", 0))
            )
    return found


@SMALL
@given(generated.cluster(most_nodes=2, most_gpus=2, most_services=3, most_replicas=2))
def test_nothing_more_could_be_placed(cluster: Any) -> None:
    hosts, groups = cluster
    plan = planning.plan(hosts, groups).document
    search = exhaustive.Exhaustive(hosts, groups, TABLES)
    reached = search.score({name: placed(plan).get(name, []) for name in search.services})
    assert reached == search.run()


@SMALL
@given(
    generated.cluster(most_nodes=2, most_gpus=2, most_services=2, most_replicas=3),
    generated.cluster(most_nodes=1, most_services=1, most_replicas=2),
)
def test_what_a_full_cluster_refuses_has_no_place_beside_what_runs(cluster: Any, extra: Any) -> None:
    hosts, groups = cluster
    first = json.loads(planning.text(planning.plan(hosts, groups)))
    added = {key: value for key, value in extra[0]["n0"]["inference_services"][0].items() if key not in {"pool", "nodes", "apart_from"}} | {
        "name": "new"
    }
    more = {name: variables | {"inference_services": [*hosts["n0"]["inference_services"], added]} for name, variables in hosts.items()}
    plan = planning.plan(more, groups, first).document
    search = exhaustive.Exhaustive(more, groups, TABLES)
    reached = search.score({name: placed(plan).get(name, []) for name in search.services})
    assert reached == search.run(placed(first))
