# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has the node, and who has drained it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.action import node_record
from ansible_collections.heterogpu.inference.plugins.module_utils import _node_record
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError
from hypothesis import given
from hypothesis import strategies as st

ME = {"id": "here/1/10/5", "user": "root", "host": "here", "pid": 10}
OTHER = {"id": "there/2/20/7", "user": "ops", "host": "there", "pid": 20, "expires": 1000.0}


def test_a_free_node_is_taken_for_so_long() -> None:
    assert _node_record.lease_after_take({}, ME, 10, 100.0) == {**ME, "expires": 700}


def test_a_lease_of_another_run_is_respected_and_named() -> None:
    with pytest.raises(
        _node_record.LeaseHeld, match=r"ops on there, process 20, for at most 15 minutes more\. Wait .* site_lease_break"
    ) as raised:
        _node_record.lease_after_take(OTHER, ME, 10, 100.0)
    assert raised.value.facts["holder"] == OTHER


@pytest.mark.parametrize(
    "arguments",
    [{"now": 1000.5}, {"now": 100.0, "dead": ["there/2/20/7"]}, {"now": 100.0, "by_force": True}],
    ids=["expired", "dead", "force"],
)
def test_a_lease_that_nobody_needs_is_taken_over(arguments: dict[str, Any]) -> None:
    assert _node_record.lease_after_take(OTHER, ME, 10, **arguments)["id"] == ME["id"]


def test_only_the_owner_gives_a_lease_back() -> None:
    assert _node_record.lease_after_release({**ME, "expires": 9}, ME) == {}
    assert _node_record.lease_after_release(OTHER, ME) == OTHER


REQUESTS = st.lists(st.tuples(st.sampled_from(["drained", "active"]), st.sampled_from(["site", "administrator"])), max_size=8)


@given(REQUESTS)
def test_what_an_administrator_has_drained_only_an_administrator_puts_back(requests: list[tuple[str, str]]) -> None:
    state: dict[str, Any] = dict(_node_record.ACTIVE)
    by_hand = False
    for wanted, by in requests:
        state = _node_record.drain_after(state, wanted, by, "a reason", ["dcgm"] if wanted == "drained" else [])
        if by == "administrator":
            by_hand = wanted == "drained"
        assert (state["state"] == "drained") >= by_hand
        if state["state"] == "drained":
            assert (state["by"] == "administrator") == by_hand
        assert state["state"] == "drained" or state == dict(_node_record.ACTIVE)
    assert state == {**state, **_node_record.drain_after(state, state["state"], state["by"] or "site", "again", [])}


def test_a_second_drain_keeps_the_services_of_the_first() -> None:
    first = _node_record.drain_after({}, "drained", "site", "driver", ["dcgm", "exporter"])
    assert _node_record.drain_after(first, "drained", "site", "later", []) == first


def test_files_are_written_as_a_whole_and_removed(tmp_path: Path) -> None:
    path = str(tmp_path / "drain.json")
    assert _node_record.read(path) == {}
    _node_record.write(path, {"state": "drained"})
    assert _node_record.read(path) == {"state": "drained"}
    _node_record.write(path, None)
    _node_record.write(path, None)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_a_broken_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "plan.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(GpuError, match=r"plan\.json .*remove it"):
        _node_record.read(str(tmp_path / "plan.json"))


def test_a_run_is_alive_as_long_as_its_process_is() -> None:
    run = node_record.this_run()
    assert node_record.alive(run)
    assert not node_record.alive({**run, "boot": "another"})
    assert not node_record.alive({**run, "id": run["id"] + "0"})  # another process has got the number
    assert not node_record.alive({**run, "pid": 2**22 + 1})
    assert node_record.alive({**run, "host": "elsewhere"})
