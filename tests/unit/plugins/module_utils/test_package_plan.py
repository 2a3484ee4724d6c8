# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a set of packages needs, from what dpkg, the record and apt say."""

from __future__ import annotations

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _package_plan as package_plan
from ansible_collections.heterogpu.inference.plugins.module_utils._apt_plan import AptPlan, PackageChange
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput
from ansible_collections.heterogpu.inference.plugins.module_utils._package_plan import Difference, Memory, Package, Wanted

NOBODY = Memory()
SET = Wanted(packages=["driver=2"], closure=["driver=2", "library=2", "extra=2"])


def right() -> dict[str, Package]:
    return {"driver": Package("2", held=True), "library": Package("2", held=True), "bash": Package("5")}


def test_all_right_needs_nothing() -> None:
    found = package_plan.compare(SET, right(), NOBODY)
    assert found == Difference(closure={"driver": "2", "library": "2", "extra": "2"})


@pytest.mark.parametrize(
    ("name", "package", "request_"),
    [
        ("driver", None, ["driver=2"]),
        ("driver", Package("1", held=True), ["driver=2"]),
        ("driver", Package("3", held=True), ["driver=2"]),
        ("library", Package("1", held=True), ["library=2"]),
        # A part of the closure that nobody needs is not brought.
        ("library", None, []),
        ("extra", Package("2", "config-files"), []),
        ("driver", Package("2", "half-installed", held=True), ["driver=2"]),
        ("driver", Package("2", "unpacked", held=True), []),
    ],
)
def test_what_is_missing_or_of_another_version_is_asked_for(name: str, package: Package | None, request_: list[str]) -> None:
    node = {**right(), **({name: package} if package else {})}
    if package is None:
        del node[name]
    assert package_plan.compare(SET, node, NOBODY).request == request_


def test_without_a_version_any_version_will_do() -> None:
    found = package_plan.compare(Wanted(["tool", "driver=2"]), {"tool": Package("7"), **right()}, NOBODY)
    assert (found.request, found.closure) == ([], {"driver": "2"})


def test_two_versions_of_one_package_are_refused() -> None:
    with pytest.raises(InvalidInput, match="declared with the versions 1 and 2"):
        package_plan.compare(Wanted(["driver=1", "driver=2"]), {}, NOBODY)


def test_what_is_not_held_gets_held_and_what_left_the_set_is_released() -> None:
    node = {"driver": Package("2"), "library": Package("2", held=True), "old": Package("1", held=True), "kernel": Package("6")}
    found = package_plan.compare(Wanted(SET.packages, SET.closure, keep=["kern*"]), node, Memory(held=frozenset({"old"})))
    assert (found.hold, found.release, found.kept) == (["driver", "kernel"], ["old"], {"kernel": "6"})


def test_former_members_and_replaced_packages_go() -> None:
    node = {**right(), "old": Package("1"), "driver-open": Package("2"), "foreign": Package("1")}
    wanted = Wanted(SET.packages, SET.closure, replaces=["driver-*"])
    assert package_plan.compare(wanted, node, Memory(members=frozenset({"old", "driver", "gone"}))).obsolete == ["driver-open", "old"]


def test_a_kept_package_never_goes() -> None:
    node = {**right(), "kernel": Package("6")}
    wanted = Wanted(SET.packages, SET.closure, keep=["kernel"], replaces=["kern*"])
    assert package_plan.compare(wanted, node, Memory(members=frozenset({"kernel"}))).obsolete == []


def test_another_source_is_a_problem() -> None:
    found = package_plan.compare(Wanted(["driver=2"], conflicts=["nvidia-*"]), {"nvidia-smi": Package("2")}, NOBODY)
    assert "nvidia-smi is installed and must not be beside the set" in found.problems[0]


def test_removal_takes_members_their_configuration_and_what_the_set_replaces() -> None:
    node = {"driver": Package("9"), "library": Package("2", "config-files"), "driver-open": Package("1"), "bash": Package("5", held=True)}
    found = package_plan.compare_absent(
        Wanted(["driver=2"], replaces=["driver-*"]), node, Memory(frozenset({"library"}), frozenset({"bash"}))
    )
    assert (found.obsolete, found.release) == (["driver", "driver-open", "library"], ["bash"])


@pytest.mark.parametrize(
    ("plan", "word"),
    [
        (AptPlan(remove=["editor"]), "apt would remove editor"),
        (AptPlan(install=[PackageChange("libc", "3", "2")]), "libc is held in another version by somebody else"),
        (AptPlan(problems=["no repository has driver."]), "no repository has driver"),
    ],
)
def test_what_apt_must_not_do(plan: AptPlan, word: str) -> None:
    node = {**right(), "libc": Package("2", held=True), "editor": Package("1")}
    problems = package_plan.judge(Difference(closure={"driver": "2"}), plan, node, NOBODY, [])
    assert len(problems) == 1
    assert word in problems[0]


def test_own_members_and_holds_are_no_problem() -> None:
    plan = AptPlan(install=[PackageChange("driver", "2", "1")], remove=["old", "driver-open"])
    node = {"driver": Package("1", held=True), "old": Package("1", held=True), "driver-open": Package("1")}
    memory = Memory(frozenset({"old"}), frozenset({"driver", "old"}))
    assert package_plan.judge(Difference(closure={"driver": "2"}), plan, node, memory, ["driver-*"]) == []


def test_pins_by_version() -> None:
    text = package_plan.preferences({"b": "2", "a": "2", "c": "1:3"})
    assert text == "Package: c\nPin: version 1:3\nPin-Priority: 1001\n\nPackage: a b\nPin: version 2\nPin-Priority: 1001\n"
    assert package_plan.preferences({}) == ""


def test_what_the_change_brings_of_the_kept_is_kept_too() -> None:
    found = package_plan.with_kept(
        Difference(closure={"driver": "2"}),
        AptPlan(install=[PackageChange("linux-headers-6", "6.1", None), PackageChange("driver", "2", None)]),
        Wanted(["driver=2"], keep=["linux-*"]),
    )
    assert found.pinned == {"driver": "2", "linux-headers-6": "6.1"}


def test_from_nothing_and_back() -> None:
    """Of a set between two versions apt is asked as if nothing of it were there; the answer is compared with what is."""
    node = {"driver": Package("1"), "library": Package("2"), "extra": Package("2", "unpacked"), "old": Package("1")}
    found = package_plan.compare(SET, node, Memory(members=frozenset({"old"})))
    names, left_out = package_plan.from_nothing(SET, found, node, {})
    assert names == ["driver=2"]
    assert left_out == {"driver", "library", "extra", "old"}
    everything = AptPlan(install=[PackageChange(name, "2", None) for name in ("driver", "library", "extra", "dependency")])
    plan = package_plan.as_it_is(everything, found, node)
    assert [(change.name, change.installed_version) for change in plan.install] == [("driver", "1"), ("extra", "2"), ("dependency", None)]
    assert plan.remove == ["old"]


def test_the_diff_shows_versions_and_holds() -> None:
    plan = AptPlan(install=[PackageChange("driver", "2", "1"), PackageChange("library", "2", None)], remove=["old"])
    (shown,) = package_plan.diff("set", plan, Difference(hold=["library"]))
    assert shown["before"] == "driver 1\nold installed\n"
    assert shown["after"] == "driver 2\nlibrary 2\nlibrary held\n"
    assert package_plan.diff("set", AptPlan(), Difference()) == []
