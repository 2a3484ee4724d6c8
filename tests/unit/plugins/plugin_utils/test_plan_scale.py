# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Large clusters, measured in looks at a node and not in seconds. tests/benchmarks/large.py measures time and memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import checker
import generated
import planning
import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _state

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
import large


@pytest.mark.parametrize("nodes", [100, 200])
def test_looks_at_nodes_grow_with_replicas_and_not_with_nodes_times_services(nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    original = _state.NodeState.choices

    def counted(*arguments: Any, **keys: Any) -> Any:
        nonlocal looks
        looks += 1
        return original(*arguments, **keys)

    monkeypatch.setattr(_state.NodeState, "choices", counted)
    hosts, groups, shared = large.variables(nodes, 50, full=False)
    whole = {name: own | shared for name, own in hosts.items()}
    made = planning.plan(whole, groups)
    assert made.complete
    assert looks <= 3 * made.document["summary"]["replicas_placed"]
    tables = {model: checker.gpu_table(model, planning.ROOT / "data") for model in (generated.A100, generated.V100)}
    assert not checker.violations(whole, groups, made.document, tables)


def test_a_cluster_that_is_too_small_is_planned_and_says_what_is_missing() -> None:
    hosts, groups, shared = large.variables(60, 50, full=True)
    made = planning.plan({name: own | shared for name, own in hosts.items()}, groups)
    total = made.document["summary"]
    assert not made.complete
    assert total["replicas_placed"] + sum(refusal["missing"] for refusal in made.document["refusals"]) == total["replicas_wanted"]
