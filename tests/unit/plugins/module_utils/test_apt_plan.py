# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import tempfile

from ansible_collections.heterogpu.inference.plugins.module_utils._apt_plan import (
    Answer,
    Apt,
    AptPlan,
    AptRequest,
    PackageChange,
    resolve_in,
)

SIMULATION = """\
Reading package lists...
Remv old-driver [470.1-1]
Inst library (580.95.05-1 mirror:stable [amd64])
Inst driver [535.1-1] (580.95.05-1 mirror:stable [amd64]) []
Conf driver (580.95.05-1 mirror:stable [amd64])
"""
SHOWN = """\
Package: library
Installed-Size: 2048
Size: 1048577

Package: driver
Installed-Size: 1
Size: 10
"""
REQUEST = AptRequest(["driver=580.95.05-1"], {"mirror": "Types: deb\n"}, "")


class FakeApt(Apt):
    def __init__(self, answers: dict[str, Answer]) -> None:
        super().__init__(timeout_s=1)
        self.answers = answers
        self.calls: list[str] = []

    def run(self, *command: str, cwd: str | None = None) -> Answer:
        key = f"{command[0]} {command[1]}"
        self.calls.append(key)
        return self.answers.get(key, Answer(0, "", ""))


def apt(installed: str = "", update: Answer | None = None, install: Answer | None = None) -> FakeApt:
    return FakeApt(
        {
            "dpkg-query -W": Answer(0, installed, ""),
            "apt-get update": update or Answer(0, "", ""),
            "apt-get install": install or Answer(0, SIMULATION, ""),
            "apt-cache show": Answer(0, SHOWN, ""),
        }
    )


def resolve(request: AptRequest, fake: FakeApt) -> AptPlan:
    with tempfile.TemporaryDirectory() as root:
        return resolve_in(root, request, fake)[0]


def test_dependencies_upgrades_removals_and_sizes_are_read() -> None:
    plan = resolve(REQUEST, apt("driver=535.1-1 installed\n"))
    assert plan.install == [PackageChange("library", "580.95.05-1", None), PackageChange("driver", "580.95.05-1", "535.1-1")]
    assert plan.remove == ["old-driver"]
    assert (plan.installed_mib, plan.download_mib) == (3, 2)
    assert plan.problems == []


def test_version_that_no_repository_has() -> None:
    install = Answer(100, "", "E: Version '9' for 'driver' was not found\nE: Version '9' for 'utils' was not found\n")
    assert resolve(REQUEST, apt(install=install)).problems == ["no repository has version 9 of driver, utils."]


def test_package_that_no_repository_has() -> None:
    install = Answer(100, "", "E: Unable to locate package driver\n")
    assert resolve(REQUEST, apt(install=install)).problems == ["no repository has driver."]


def test_unmet_dependencies_are_named_first() -> None:
    output = "The following packages have unmet dependencies:\n driver : Depends: library (= 2) but 1 is to be installed\n"
    problems = resolve(
        REQUEST, apt(install=Answer(100, output, "E: Unable to correct problems, you have held broken packages.\n"))
    ).problems
    assert problems[0] == "driver : Depends: library (= 2) but 1 is to be installed."


def test_unreachable_repository_is_a_problem_although_apt_only_warns() -> None:
    update = Answer(0, "", "W: Failed to fetch http://mirror/InRelease  Could not connect\nW: Some index files failed to download.\n")
    fake = apt(update=update)
    assert resolve(REQUEST, fake).problems == ["Failed to fetch http://mirror/InRelease  Could not connect."]
    assert "apt-get install" not in fake.calls
