# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which links and files make a toolkit the default, and which record leads back."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _cuda_plan
from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_rules import Verdict
from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_state import LOADER, Alternative, State, Toolkit
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput, Refused

OLD, NEW = Toolkit("12.2", "12.2.2", "/usr/local/cuda-12.2"), Toolkit("12.6", "12.6.3", "/usr/local/cuda-12.6")
FULL, FORWARD = Verdict("full", None), Verdict("forward", None)


def group(name: str, value: Toolkit, automatic: bool) -> Alternative:
    return Alternative(name, f"/usr/local/{name}", automatic, value.path, (OLD.path, NEW.path))


def state(default: Toolkit = NEW, automatic: bool = True, **changes: Any) -> State:
    values: dict[str, Any] = {
        "toolkits": {"12.2": OLD, "12.6": NEW},
        "alternatives": {name: group(name, default, automatic) for name in ("cuda", "cuda-12")},
        "link": default.path,
        "link_is_folder": False,
        "record": {},
        "driver": {},
        "loaded_from": {"libcudart.so.12": default.path + "/lib64/libcudart.so.12"},
    }
    return State(**{**values, **changes})


def plan(node: State, toolkit: Toolkit, verdict: Verdict = FULL) -> _cuda_plan.Plan:
    return _cuda_plan.present(node, toolkit, verdict, {})


def test_both_groups_are_set_and_fixed() -> None:
    found = plan(state(), OLD)
    assert [(step.action, step.name, step.before, step.to) for step in found.links] == [
        ("set_alternative", "cuda", "auto", OLD.path),
        ("set_alternative", "cuda-12", "auto", OLD.path),
    ]
    assert found.stale_loader


def test_an_automatic_choice_is_fixed_although_it_is_the_declared_one() -> None:
    assert [step.before for step in plan(state(), NEW).links] == ["auto", "auto"]
    assert not plan(state(automatic=False), NEW).links


def test_a_stale_loader_is_seen_without_any_other_difference() -> None:
    found = plan(state(automatic=False, loaded_from={"libcudart.so.12": OLD.path + "/lib64/libcudart.so.12"}), NEW)
    assert (found.links, found.stale_loader) == ([], True)


def test_forward_compatibility_comes_first_in_the_loader_and_never_otherwise() -> None:
    assert plan(state(), NEW, FORWARD).files[LOADER].splitlines()[1:] == [NEW.path + "/compat", NEW.path + "/lib64"]
    assert plan(state(), NEW).files[LOADER].splitlines()[1:] == [NEW.path + "/lib64"]


def test_without_alternatives_a_plain_link_is_replaced() -> None:
    (step,) = plan(state(alternatives={}), OLD).links
    assert (step.action, step.before, step.to) == ("replace_link", NEW.path, OLD.path)


def test_a_folder_in_the_place_of_the_link_is_refused() -> None:
    with pytest.raises(Refused, match="is a folder where a link belongs"):
        plan(state(alternatives={}, link_is_folder=True), OLD)


def test_a_toolkit_that_the_packages_did_not_register_is_refused() -> None:
    groups = {"cuda": Alternative("cuda", "/usr/local/cuda", True, NEW.path, (NEW.path,))}
    with pytest.raises(Refused, match="no choice of update-alternatives for /usr/local/cuda"):
        plan(state(alternatives=groups), OLD)


def test_only_an_installed_or_planned_toolkit_can_be_found() -> None:
    empty = state(toolkits={})
    with pytest.raises(Refused, match=r"CUDA 12\.2 is not installed below /usr/local/cuda-12\.2, installed are none"):
        _cuda_plan.find(empty, "12.2", {})
    assert _cuda_plan.find(empty, "12.2", {"12.2": "12.2.2"}) == OLD


def test_the_way_back_exists_once() -> None:
    node = state()
    node.record = _cuda_plan.next_record(node, "12.2", "a", "present")
    assert node.record["previous"] == {"version": "12.6", "generation": ""}
    node.record = _cuda_plan.next_record(node, "12.2", "b", "present")  # other packages, same default
    assert _cuda_plan.wanted_version(node, None, "previous") == "12.2"
    assert _cuda_plan.next_record(node, "12.2", "b", "present") == node.record
    node.record = _cuda_plan.next_record(node, "12.2", "", "previous")
    assert node.record == {"current": {"version": "12.2", "generation": "a"}, "previous": None, "undone": True}
    assert _cuda_plan.wanted_version(node, None, "previous") == "12.2"
    assert _cuda_plan.next_record(node, "12.2", "", "previous") == node.record


def test_without_a_record_there_is_no_way_back() -> None:
    with pytest.raises(Refused, match="No earlier default toolkit is recorded"):
        _cuda_plan.wanted_version(state(), None, "previous")
    with pytest.raises(InvalidInput, match="The option version is missing"):
        _cuda_plan.wanted_version(state(), None, "present")


def test_removal_gives_the_choice_back_only_where_it_was_taken() -> None:
    assert _cuda_plan.absent(state(automatic=False)).links == []
    freed = _cuda_plan.absent(state(automatic=False, record={"current": {}}))
    assert [(step.action, step.name) for step in freed.links] == [("free_alternative", "cuda"), ("free_alternative", "cuda-12")]
