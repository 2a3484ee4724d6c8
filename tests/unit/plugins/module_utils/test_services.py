# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that keep GPUs open are started again, whatever happens in between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _services
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed, Refused

# A systemctl of two services, whose state is a file each.
SYSTEMCTL = """#!/bin/sh
echo "$@" >> "$HOME/calls"
for name; do :; done
case "$1" in
    is-active) test -e "$HOME/$name.active" ;;
    stop) test ! -e "$HOME/$name.stuck" || { echo "it hangs" >&2; exit 1; }; rm -f "$HOME/$name.active" ;;
    start) test ! -e "$HOME/$name.broken" || { echo "it is broken" >&2; exit 1; }; touch "$HOME/$name.active" ;;
esac
"""


@pytest.fixture(name="home", autouse=True)
def fixture_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "systemctl").write_text(SYSTEMCTL)
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(_services, "NOTE", str(tmp_path / "run/paused.json"))
    for name in ("one", "two"):
        (tmp_path / f"{name}.active").touch()
    return tmp_path


def active(home: Path) -> set[str]:
    return {path.stem for path in home.glob("*.active")}


def test_only_what_runs_is_stopped_and_started_again(home: Path) -> None:
    with _services.Services(["one", "three"]).paused():
        assert active(home) == {"two"}
    assert active(home) == {"one", "two"}
    assert not Path(_services.NOTE).exists()


def test_a_failure_in_between_starts_them_again(home: Path) -> None:
    with pytest.raises(KeyError), _services.Services(["one", "two"]).paused():
        raise KeyError("any")
    assert active(home) == {"one", "two"}


def test_the_next_run_starts_what_a_killed_one_has_left(home: Path) -> None:
    paused = _services.Services(["one", "two"]).paused()
    paused.__enter__()
    assert active(home) == set()
    assert json.loads(Path(_services.NOTE).read_text()) == ["one", "two"]
    _services.Services([]).resume()
    assert active(home) == {"one", "two"}


def test_what_cannot_be_stopped_is_named_and_the_others_run_again(home: Path) -> None:
    (home / "two.stuck").touch()
    with (
        pytest.raises(Refused, match=r"two keeps GPUs open and cannot be stopped \(it hangs\)"),
        _services.Services(["one", "two"]).paused(),
    ):
        pytest.fail("nothing may be done now")
    assert active(home) == {"one", "two"}


def test_what_does_not_start_again_is_named(home: Path) -> None:
    with pytest.raises(ApplyFailed, match=r"do not start again: one \(it is broken\)"), _services.Services(["one", "two"]).paused():
        (home / "one.broken").touch()
    assert active(home) == {"two"}


def test_at_boot_only_services_before_the_unit_are_awaited(home: Path) -> None:
    with _services.Services(["one", "two"], waits=("one",)).paused():
        pass
    assert [line for line in (home / "calls").read_text().splitlines() if line.startswith("start")] == ["start one", "start --no-block two"]
