# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which copy of the plan in force counts, after runs that ended and runs that were killed."""

from __future__ import annotations

from typing import Any

import planning
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _planner, _record, _sticky
from small import cluster, service


def plan_with(*services: dict[str, Any], in_force: _sticky.InForce | None = None) -> _planner.Plan:
    return _planner.make_plan(planning.inventory(*cluster(*services, a100=2, v100=2)), planning.catalog(), in_force)


def records(made: _planner.Plan, previous: dict[str, Any] | None = None) -> dict[str, Any]:
    known = previous or {}
    return {name: _record.make(part, made.document["generation"], known.get(name, {}), []) for name, part in made.document["nodes"].items()}


SMALL = (service("a", device={"gpus": 1}, replicas=2),)
LARGE = (service("a", device={"gpus": 1}, replicas=1), service("b", device={"gpus": 1}, replicas=2))


def test_the_same_plan_keeps_its_generation_from_file_records_or_both() -> None:
    first = plan_with(*SMALL)
    kept = records(first)
    for in_force in (
        _sticky.read(first.document, {}),
        _sticky.read(None, kept),
        _sticky.read(first.document, kept),
        _sticky.read(first.document, {"a100-1": kept["a100-1"]}),
    ):
        again = plan_with(*SMALL, in_force=in_force)
        assert planning.text(again) == planning.text(first)
        assert records(again, kept) == kept


def test_a_plan_that_was_begun_is_finished_whatever_node_was_reached() -> None:
    old = records(plan_with(*SMALL))
    new = plan_with(*LARGE, in_force=_sticky.read(None, old))
    assert new.document["generation"] == 2
    target = records(new, old)
    for reached in target:
        mixed = {name: target[name] if name == reached else old[name] for name in old}
        again = plan_with(*LARGE, in_force=_sticky.read(new.document, mixed))
        if target[reached] != old[reached]:
            assert planning.text(again) == planning.text(new)
        assert records(again, mixed) == target


def test_a_plan_that_nobody_began_does_not_count() -> None:
    old = records(plan_with(*SMALL))
    looked_at = plan_with(*LARGE, in_force=_sticky.read(None, old))
    back = plan_with(*SMALL, in_force=_sticky.read(looked_at.document, old))
    assert not back.moves
    assert not back.started
    assert records(back, old) == old


def test_an_old_file_of_another_controller_does_not_count() -> None:
    first = plan_with(*SMALL)
    now = records(plan_with(*LARGE, in_force=_sticky.read(first.document, {})), records(first))
    again = plan_with(*LARGE, in_force=_sticky.read(first.document, now))
    assert not again.moves
    assert not again.started
    assert records(again, now) == now


def test_what_worked_is_kept_with_what_had_worked_before() -> None:
    one, two = ({"gpus": [], "replicas": [], "geometry": [name]} for name in "ab")
    node: dict[str, Any] = {}
    old, new = {"nvidia-driver": ["driver=1"]}, {"nvidia-driver": ["driver=2"]}
    node |= _record.after(one, 1, node, [])
    assert set(node) == {"record"}
    node |= _record.after(one, 1, node, [], old)
    assert set(node) == {"record", "verified"}
    assert _record.after(one, 1, node, [], old) == {}
    node |= _record.after(two, 2, node, [])
    assert node["verified"]["geometry"] == ["a"]  # a run that fails from here on leaves what worked
    node |= _record.after(two, 2, node, [], old)
    assert (node["verified"]["geometry"], node["previous"]["geometry"]) == (["b"], ["a"])
    assert _record.after(two, 7, node, [], {}) == {}
    node |= _record.after(two, 2, node, [], new)
    assert (node["previous"]["geometry"], node["previous"]["packages"], node["verified"]["packages"]) == (["b"], old, new)
    assert body_of_all(node) == {"b"}


def body_of_all(node: dict[str, Any]) -> set[str]:
    """What is beside the plan in a record does not make it another plan."""
    return {_record.body(record)["geometry"][0] for record in node.values()}


def test_boards_are_remembered_while_their_driver_is_away() -> None:
    part = {"gpus": [{"pci_address": "0000:07:00.0"}, {"pci_address": "0000:0f:00.0"}]}
    first = _record.make(part, 1, {}, [{"pci_address": "0000:07:00.0", "uuid": "GPU-1"}, {"pci_address": "0000:99:00.0", "uuid": "GPU-9"}])
    assert first["gpu_uuids"] == {"0000:07:00.0": "GPU-1"}
    assert _record.make(part, 5, first, [{"pci_address": "0000:07:00.0", "uuid": None}]) == first
