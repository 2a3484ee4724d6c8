# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Runs the node's apt on a private copy of its configuration and reads what it would do."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

_INSTALL = re.compile(r"^Inst (?P<name>\S+)(?: \[(?P<old>[^\]]+)\])? \((?P<new>\S+) ")
_REMOVE = re.compile(r"^(?:Remv|Purg) (?P<name>\S+) ")
_NO_VERSION = re.compile(r"^Version '(?P<version>[^']+)' for '(?P<name>[^']+)' was not found$")
_NO_PACKAGE = re.compile(r"^Unable to locate package (?P<name>\S+)$")
_KIB_PER_MIB = 1024
_BYTES_PER_MIB = 1024 * 1024


@dataclass(frozen=True)
class AptRequest:
    packages: Sequence[str]
    repositories: dict[str, str]
    preferences: str
    # Of what is on the node, the preferences file that `preferences` is going to replace.
    replaced_preferences: str = ""
    # Further options of apt, such as the proxy of a repository.
    options: Sequence[str] = ()
    change_held: bool = False


@dataclass(frozen=True)
class PackageChange:
    name: str
    version: str
    installed_version: str | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class AptPlan:
    install: list[PackageChange] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    download_mib: int = 0
    installed_mib: int = 0


@dataclass(frozen=True)
class Answer:
    status: int
    output: str
    errors: str


class Apt:
    """Bounded calls of the package tools in a fixed language."""

    def __init__(self, timeout_s: int) -> None:
        self.timeout_s = timeout_s

    def run(self, *command: str, cwd: str | None = None) -> Answer:
        environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        try:
            # run_command has no time limit, and apt waits for its lock.
            done = subprocess.run(  # pylint: disable=ansible-bad-function
                command, capture_output=True, text=True, env=environment, timeout=self.timeout_s, check=False, cwd=cwd
            )
        except subprocess.TimeoutExpired:
            return Answer(124, "", f"E: {command[0]} did not end within {self.timeout_s} seconds")
        return Answer(done.returncode, done.stdout, done.stderr)


def resolve_in(root: str, request: AptRequest, apt: Apt) -> tuple[AptPlan, list[str]]:
    """Resolve in the folder root; return also the options with which apt goes on working there."""
    own, everything = _lay_out(root, request)
    plan = AptPlan()
    if request.repositories:
        update = apt.run("apt-get", "update", "-q", "--no-list-cleanup", *own)
        plan.problems.extend(_complaints(update))
        if plan.problems:
            return plan, everything
    simulated = [*everything, "--allow-change-held-packages"] if request.change_held else everything
    simulation = apt.run(
        "apt-get", "install", "-q", "--simulate", "--no-install-recommends", "--allow-downgrades", *simulated, *request.packages
    )
    read_simulation(simulation, plan)
    if not plan.problems:
        _add_sizes(plan, everything, apt)
    return plan, everything


def read_simulation(simulation: Answer, plan: AptPlan) -> None:
    if simulation.status != 0:
        plan.problems.extend(_complaints(simulation) or [f"apt-get ended with status {simulation.status}."])
        return
    for line in simulation.output.splitlines():
        install, remove = _INSTALL.match(line), _REMOVE.match(line)
        if install:
            plan.install.append(PackageChange(install["name"], install["new"], install["old"]))
        elif remove:
            plan.remove.append(remove["name"])


def _lay_out(root: str, request: AptRequest) -> tuple[list[str], list[str]]:
    """Make apt's folders below root; return the options for updating our repositories and for resolving with all of them."""
    for folder in ("lists/partial", "cache/archives/partial", "own", "all", "preferences"):
        os.makedirs(os.path.join(root, folder))
    _link_files("/var/lib/apt/lists", os.path.join(root, "lists"))
    _link_files("/etc/apt/sources.list.d", os.path.join(root, "all"), leave_out=request.repositories)
    _link_files("/etc/apt/preferences.d", os.path.join(root, "preferences"), leave_out=[request.replaced_preferences])
    for name, content in request.repositories.items():
        for folder in ("own", "all"):
            _write(os.path.join(root, folder, f"{name}.sources"), content)
    if request.preferences:
        _write(os.path.join(root, "preferences", "heterogpu-plan"), request.preferences)
    common = [
        f"-oDir::State::lists={root}/lists",
        f"-oDir::Cache={root}/cache",
        f"-oDir::Etc::preferencesparts={root}/preferences",
        # The private folder belongs to root; apt's download user could not write there.
        "-oAPT::Sandbox::User=root",
        "-oAcquire::Languages=none",
        "-oAcquire::Retries=1",
        *request.options,
    ]
    own = [*common, "-oDir::Etc::sourcelist=/dev/null", f"-oDir::Etc::sourceparts={root}/own"]
    return own, [*common, f"-oDir::Etc::sourceparts={root}/all"]


def _link_files(source: str, target: str, leave_out: Sequence[str] | dict[str, str] = ()) -> None:
    if not os.path.isdir(source):
        return
    for name in os.listdir(source):
        path = os.path.join(source, name)
        if os.path.isfile(path) and name != "lock" and os.path.splitext(name)[0] not in leave_out:
            os.symlink(path, os.path.join(target, name))


def _write(path: str, content: str) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(content)


def _complaints(answer: Answer) -> list[str]:
    """apt's errors and, for an update, its warnings about repositories that it could not use, as sentences."""
    lines = [line.strip() for line in (answer.errors + "\n" + answer.output).splitlines()]
    errors = [line[3:] for line in lines if line.startswith("E: ")]
    errors += [line[3:] for line in lines if line.startswith("W: Failed to fetch")]
    unmet = [line for line in lines if " : Depends: " in line or " : Conflicts: " in line or " : Breaks: " in line]
    return _gather(list(dict.fromkeys(unmet + errors)))


def _gather(complaints: Sequence[str]) -> list[str]:
    """apt complains about each package; a driver consists of many, so they are named together."""
    versions: dict[str, list[str]] = {}
    unknown: list[str] = []
    others: list[str] = []
    for text in complaints:
        no_version, no_package = _NO_VERSION.match(text), _NO_PACKAGE.match(text)
        if no_version:
            versions.setdefault(no_version["version"], []).append(no_version["name"])
        elif no_package:
            unknown.append(no_package["name"])
        else:
            others.append(text.rstrip(".") + ".")
    gathered = [f"no repository has version {version} of {', '.join(names)}." for version, names in versions.items()]
    if unknown:
        gathered.append(f"no repository has {', '.join(unknown)}.")
    return gathered + others


def _add_sizes(plan: AptPlan, options: Sequence[str], apt: Apt) -> None:
    if not plan.install:
        return
    shown = apt.run("apt-cache", "show", *options, *(f"{change.name}={change.version}" for change in plan.install))
    installed_kib = sum(int(size) for size in re.findall(r"^Installed-Size: (\d+)$", shown.output, re.MULTILINE))
    download = sum(int(size) for size in re.findall(r"^Size: (\d+)$", shown.output, re.MULTILINE))
    plan.installed_mib = -(-installed_kib // _KIB_PER_MIB)
    plan.download_mib = -(-download // _BYTES_PER_MIB)
