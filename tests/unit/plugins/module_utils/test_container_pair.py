# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which podman goes with which container toolkit, with the collection's own table."""

from __future__ import annotations

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _container_plan
from ansible_collections.heterogpu.inference.plugins.module_utils._container_pair import NO_GIDS, Pair, is_readable, match
from ansible_collections.heterogpu.inference.plugins.module_utils._container_state import UNITS, State, Unit
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import Refused
from ansible_collections.heterogpu.inference.plugins.plugin_utils._container_rules import rules

NOW = "1.20.2"
READY = {name: Unit(enabled=True, active=True) for name in UNITS}


@pytest.mark.parametrize(
    ("podman", "toolkit", "pair"),
    [
        (None, NOW, Pair("none")),
        ("3.4.4", NOW, Pair("runtime")),  # Ubuntu 22.04
        ("4.2.0", NOW, Pair("runtime")),
        ("4.3.1", NOW, Pair("cdi", (NO_GIDS,), "0.5.0")),  # Debian 12
        ("4.9.3", NOW, Pair("cdi", (NO_GIDS,), "0.6.0")),  # Ubuntu 24.04
        ("4.9.3", "1.18.2", Pair("cdi", (), "0.6.0")),
        ("5.0.3", NOW, Pair("cdi", (NO_GIDS,), "0.6.0")),
        ("5.4.2", NOW, Pair("cdi", (), "0.8.0")),  # Debian 13
        ("6.0.0", NOW, Pair("cdi", (), "0.8.0")),
    ],
)
def test_the_way_is_found(podman: str | None, toolkit: str, pair: Pair) -> None:
    assert match(podman, toolkit, "auto", rules()) == pair


@pytest.mark.parametrize(
    ("podman", "toolkit", "wish", "sentence"),
    [
        (
            "3.4.4",
            NOW,
            "cdi",
            r"Podman 3\.4\.4 reads no CDI specifications, but .* toolkit 1\.20\.2 writes 0\.5\.0 or later; upgrade podman",
        ),
        ("4.1.1", NOW, "cdi", r"Podman 4\.1\.1 reads CDI specifications up to 0\.4\.0"),
        ("2.1.0", NOW, "auto", r"Podman 2\.1\.0 is older than 3\.4 and reaches GPUs in no known way"),
        (None, "1.17.8", "auto", r"toolkit 1\.17\.8 is too old"),
    ],
)
def test_what_cannot_work_is_refused(podman: str | None, toolkit: str, wish: str, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        match(podman, toolkit, wish, rules())


def test_a_wish_is_followed() -> None:
    assert match("5.4.2", NOW, "runtime", rules()) == Pair("runtime")
    assert match("2.1.0", NOW, "ignore", rules()) == Pair("none")


def test_what_was_really_written_counts() -> None:
    assert is_readable("0.6.0", Pair("cdi", (), "0.6.0"))
    assert not is_readable("0.7.0", Pair("cdi", (), "0.6.0"))
    assert is_readable("1.1.0", Pair("runtime"))


def test_the_drop_in_of_podman_is_there_only_with_the_runtime() -> None:
    wanted, obsolete = _container_plan.files(Pair("runtime"), None)
    assert _container_plan.PODMAN_DROP_IN in wanted
    assert not obsolete
    wanted, obsolete = _container_plan.files(Pair("cdi", (NO_GIDS,)), "version = 2\n")
    assert obsolete == [_container_plan.PODMAN_DROP_IN]
    assert f"FEATURE_FLAGS={NO_GIDS}\n" in wanted[_container_plan.SERVICE_DROP_IN]


def test_units_are_touched_only_where_something_differs() -> None:
    state = State(NOW, None, True, READY, "")
    assert not _container_plan.units(state, [], False).steps()
    assert _container_plan.units(state, [], True).steps() == [{"action": "refresh_specification", "name": "/var/run/cdi/nvidia.yaml"}]
    changed = _container_plan.units(state, [_container_plan.PATH_DROP_IN, _container_plan.CONTAINERD_DROP_IN], False)
    assert [step["action"] for step in changed.steps()] == ["reload_units", "restart_unit", "restart_unit"]


def test_units_that_were_killed_half_way_are_finished() -> None:
    state = State(NOW, None, False, {UNITS[0]: Unit(True, True, stale=True), UNITS[1]: Unit()}, "")
    found = _container_plan.units(state, [], False)
    assert (found.reload, found.enable, found.restart, found.refresh) == (True, [UNITS[1]], [UNITS[0]], True)
