# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan on real nodes: from facts, from records, with a limit, and what excludes or holds a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from system_sandbox import INVENTORY, Node, Run, Untouched, playbook

pytestmark = pytest.mark.sandbox
SITE = "playbooks/site.yml"
PLAN = "playbooks/plan.yml"
SERVICES = yaml.safe_load((INVENTORY / "group_vars/all/services.yml").read_text(encoding="utf-8"))["inference_services"]
RECORD = "/etc/heterogpu/plan.json"


def services(**replicas: int) -> dict[str, Any]:
    return {"inference_services": [service | {"replicas": replicas.get(service["name"], service["replicas"])} for service in SERVICES]}


def plan(folder: Path, *, read: bool, variables: dict[str, Any] | None = None, limit: str = "") -> tuple[Run, dict[str, Any]]:
    """Plan into a folder of its own; the plan in force is what lies there and, when the nodes are read, their records."""
    run = playbook(PLAN, variables={"plan_directory": str(folder), "plan_read_nodes": read} | (variables or {}), limit=limit)
    assert run.status == 0, run.failure
    result = next(iter(run.results("Compute geometry and placement").values()))
    return run, result


def record(node: Node) -> dict[str, Any]:
    return json.loads(node.run(f"cat {RECORD}"))


@pytest.fixture(scope="module", autouse=True)
def converged() -> None:
    run = playbook(SITE)
    assert run.status == 0, run.failure


def test_every_node_has_its_part_and_knows_its_boards(nodes: dict[str, Node], tmp_path: Path) -> None:
    _run, made = plan(tmp_path, read=True)
    for name, node in nodes.items():
        kept = record(node)
        about = {key: kept.pop(key) for key in ("schema", "generation", "gpu_uuids")}
        assert kept == made["plan"]["nodes"][name]
        assert len(about["gpu_uuids"]) == 8


def test_the_records_are_enough_when_the_controller_has_lost_its_plan(tmp_path: Path) -> None:
    _run, made = plan(tmp_path, read=True)
    assert (made["moves"], made["started"], made["stopped"], made["geometry_changes"]) == ([], [], [], [])


def test_a_replaced_board_is_reported(nodes: dict[str, Node], tmp_path: Path) -> None:
    node = nodes["v100-2"]
    text = node.run(f"cat {RECORD}")
    changed = json.loads(text)
    slot = next(iter(changed["gpu_uuids"]))
    changed["gpu_uuids"][slot] = "GPU-00000000-0000-0000-0000-000000000000"
    node.run(f"cat > {RECORD}", stdin=json.dumps(changed))
    try:
        _run, made = plan(tmp_path, read=True)
    finally:
        node.run(f"cat > {RECORD}", stdin=text)
    (difference,) = made["differences"]
    assert f"v100-2: the GPU at {slot} is declared as GPU-00000000" in difference["sentence"]
    assert not difference["error"]


def test_what_cannot_be_placed_stops_the_site_before_anything_is_changed(nodes: dict[str, Node]) -> None:
    with Untouched(list(nodes.values())):
        run = playbook(SITE, variables=services(bulk=40))
    assert run.status != 0
    assert "bulk" in run.failure
    assert "plan_allow_partial" in run.failure
    assert "Nothing was changed on any node" in run.failure


def test_hardware_that_is_declared_wrongly_stops_the_site(nodes: dict[str, Node]) -> None:
    wrong = [{"model": "A100-SXM4-80GB", "count": 8, "numa_nodes": [1, 0, 0, 0, 1, 1, 1, 1], "nvlink_set": "all"}]
    with Untouched([nodes["a100-1"]]):
        run = playbook(SITE, variables={"gpu_devices": wrong}, limit="a100-1")
    assert run.status != 0
    assert "the NUMA node of GPU 0 is declared as 1, but the node has 0" in run.failure


def test_another_run_on_the_node_keeps_the_site_away(nodes: dict[str, Node]) -> None:
    holder = {"id": "elsewhere/1/2/3", "user": "ops", "host": "elsewhere", "boot": "1", "pid": 2, "expires": 4102444800}
    nodes["a100-2"].run("cat > /var/lib/heterogpu/lease.json", stdin=json.dumps(holder))
    try:
        run = playbook(SITE)
        assert run.status != 0
        assert "ops on elsewhere, process 2" in run.failure
        assert "site_lease_break" in run.failure
        assert not nodes["a100-1"].run("cat /var/lib/heterogpu/lease.json 2>/dev/null || true")
    finally:
        nodes["a100-2"].run("rm -f /var/lib/heterogpu/lease.json")


@pytest.mark.slow
def test_a_lease_can_be_broken(nodes: dict[str, Node]) -> None:
    holder = {"id": "elsewhere/1/2/3", "user": "ops", "host": "elsewhere", "boot": "1", "pid": 2, "expires": 4102444800}
    nodes["a100-2"].run("cat > /var/lib/heterogpu/lease.json", stdin=json.dumps(holder))
    broken = playbook(SITE, variables={"site_lease_break": True})
    assert broken.status == 0, broken.failure
    assert not nodes["a100-2"].run("cat /var/lib/heterogpu/lease.json 2>/dev/null || true")


@pytest.fixture
def drained(nodes: dict[str, Node]) -> Iterator[Node]:
    run = playbook("playbooks/drain.yml", variables={"site_drain_reason": "new cables"}, limit="v100-1")
    assert run.status == 0, run.failure
    yield nodes["v100-1"]
    run = playbook("playbooks/undrain.yml", limit="v100-1")
    assert run.status == 0, run.failure


def serving(node: Node) -> list[str]:
    return node.run("systemctl list-units --state=active --plain --no-legend 'triton@*'").split()


def test_what_an_administrator_has_drained_stays_drained(drained: Node, nodes: dict[str, Node]) -> None:
    assert serving(drained) == []
    assert serving(nodes["v100-2"])
    run = playbook(SITE)
    assert run.status == 0, run.failure
    state = json.loads(drained.run("cat /var/lib/heterogpu/drain.json"))
    assert (state["by"], state["reason"]) == ("administrator", "new cables")
    assert serving(drained) == []


def test_an_undrained_node_serves_again(nodes: dict[str, Node]) -> None:
    assert serving(nodes["v100-1"])
    assert nodes["v100-1"].run("test -e /var/lib/heterogpu/drain.json || echo gone").strip() == "gone"


@pytest.mark.slow
def test_a_limited_run_changes_only_its_nodes_and_the_next_one_the_rest(nodes: dict[str, Node]) -> None:
    grown = services(chat=6)
    before = record(nodes["a100-2"])
    with Untouched([nodes["a100-2"], nodes["v100-1"], nodes["v100-2"]]):
        run = playbook(SITE, variables=grown, limit="a100-1")
    assert run.status == 0, run.failure
    assert record(nodes["a100-2"]) == before
    assert sum(replica["service"] == "chat" for replica in record(nodes["a100-1"])["replicas"]) == 4
    back = playbook(SITE)
    assert back.status == 0, back.failure
    assert playbook(SITE).changed == {}
