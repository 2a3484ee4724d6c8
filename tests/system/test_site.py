# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job: check mode on virgin nodes, the real run, the second run, and the answers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from system_sandbox import INVENTORY, ROOT, Node, Run, Untouched, ansible_environment, playbook

pytestmark = pytest.mark.sandbox
MAXIMUM_TASKS = 30
# Actions that run on the controller and cost next to nothing.
FREE_ACTIONS = {
    "set_fact",
    "assert",
    "debug",
    "fail",
    "meta",
    "import_tasks",
    "include_tasks",
    "validate_argument_spec",
    "include_role",
    "group_by",
}


def sandbox(name: str) -> None:
    command = [
        "ansible-playbook",
        str(ROOT / "tests/sandbox/playbooks" / name),
        "-e",
        f"sandbox_mix={ROOT}/tests/sandbox/mixes/default.yml",
    ]
    subprocess.run(command, cwd=ROOT, env=ansible_environment(), check=True, capture_output=True)


@pytest.fixture(scope="module")
def checked(nodes: dict[str, Node]) -> Run:
    """Virgin nodes, then the run in check mode."""
    sandbox("destroy.yml")
    sandbox("create.yml")
    shutil.rmtree(INVENTORY / "plan", ignore_errors=True)
    with Untouched(list(nodes.values())):
        return playbook("playbooks/site.yml", "--check", "--diff")


@pytest.fixture(scope="module")
def converged(checked: Run) -> Run:
    return playbook("playbooks/site.yml")


@pytest.fixture(scope="module")
def repeated(converged: Run) -> Run:
    return playbook("playbooks/site.yml")


def changes(run: Run) -> dict[str, dict[str, Any]]:
    return {host: result["ansible_facts"]["site_changes"] for host, result in run.results("Collect what the roles have reported").items()}


def test_check_mode_on_virgin_nodes_touches_nothing_and_succeeds(checked: Run) -> None:
    assert checked.status == 0, checked.failure


def test_facts_and_declared_hardware_give_the_same_plan(checked: Run, tmp_path: Path) -> None:
    unread = playbook("playbooks/plan.yml", variables={"plan_directory": str(tmp_path)})
    assert unread.status == 0, unread.failure
    made, declared = (next(iter(run.results("Compute geometry and placement").values())) for run in (checked, unread))
    assert made["differences"] == []
    assert made["plan"] == declared["plan"]


@pytest.mark.parametrize("part", ["packages", "geometry", "units"])
def test_check_mode_names_what_the_real_run_does(checked: Run, converged: Run, part: str) -> None:
    assert converged.status == 0, converged.failure
    foretold = {host: change[part] for host, change in changes(checked).items()}
    assert foretold == {host: change[part] for host, change in changes(converged).items()}
    if part != "geometry":
        assert all(foretold.values())


def test_geometry_of_a_node_without_driver_is_marked_as_declared(checked: Run) -> None:
    sources = {host: change["geometry_source"] for host, change in changes(checked).items()}
    assert {sources["a100-1"], sources["a100-2"]} == {"declared"}


def test_installed_packages_are_those_that_were_named(checked: Run, converged: Run, nodes: dict[str, Node]) -> None:
    for host, change in changes(checked).items():
        shown = nodes[host].run("dpkg-query -W -f '${Package}=${Version}\\n'").splitlines()
        assert set(change["packages"]) <= set(shown)


def test_second_run_changes_nothing(repeated: Run, nodes: dict[str, Node]) -> None:
    assert repeated.status == 0, repeated.failure
    assert repeated.changed == {}


def test_second_run_stays_within_the_budget_of_tasks(repeated: Run, nodes: dict[str, Node]) -> None:
    counts = dict.fromkeys(nodes, 0)
    for play in repeated.document["plays"]:
        for entry in play["tasks"]:
            for host, result in entry["hosts"].items():
                if not result.get("skipped") and result.get("action", "").rpartition(".")[2] not in FREE_ACTIONS:
                    counts[host] += len(result.get("results", [None]))
    assert max(counts.values()) <= MAXIMUM_TASKS, counts


def test_every_service_answers_rightly(repeated: Run) -> None:
    demo = playbook("playbooks/demo.yml")
    assert demo.status == 0, demo.failure
    rows = [row for result in demo.results("Make the rows of the table").values() for row in result["ansible_facts"]["demo_rows"]]
    assert {row["service"] for row in rows} == {"chat", "bulk", "embed", "rerank"}
    assert len({row["endpoint"] for row in rows}) == len(rows) >= 10
