# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a set of packages to what is declared: probe, plan, apply, verify. PRIVATE: internal to the collection, may change."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _file_set, _package_files, _package_plan, _package_tools
from ansible_collections.heterogpu.inference.plugins.module_utils._apt_plan import Apt, AptPlan, AptRequest, read_simulation, resolve_in
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError, Refused
from ansible_collections.heterogpu.inference.plugins.module_utils._package_apply import Change, Tools, apply
from ansible_collections.heterogpu.inference.plugins.module_utils._package_plan import Difference, Node, Wanted
from ansible_collections.heterogpu.inference.plugins.module_utils._package_store import PackageSet, Record, Store


@dataclass(frozen=True)
class Request:
    name: str
    state: str
    wanted: Wanted
    repositories: Sequence[dict[str, Any]]
    lock_timeout: int
    timeout: int


@dataclass
class Goal:
    """The declared set, or the recorded one that is returned to."""

    wanted: Wanted
    repositories: dict[str, str]
    files: dict[str, str]
    archives: dict[str, str] = field(default_factory=dict)


@dataclass
class View:
    """What is, and what it lacks."""

    node: Node
    record: Record
    difference: Difference
    files: dict[str, str]
    file_steps: list[_file_set.Step]
    half_done: list[str]
    recorded: bool

    @property
    def is_right(self) -> bool:
        found = self.difference
        return self.recorded and not any([found.request, found.obsolete, found.hold, found.release, self.file_steps, self.half_done])


def run(request: Request, check_mode: bool) -> dict[str, Any]:
    apt, store = Apt(request.timeout), Store(request.name)
    view = _look(request, store, apt)
    if view.difference.problems:
        raise _refusal(request, view.difference.problems)
    if view.is_right:
        return _result(request, view, AptPlan(), view.record)
    if check_mode:
        with tempfile.TemporaryDirectory(prefix="package_set-") as root:
            plan, _options = _resolve(request, view, apt, root)
        return _result(request, view, plan, view.record)
    with _package_tools.exclusive(request.lock_timeout):
        changer = _package_tools.Changer(request.timeout)
        half_done = view.half_done
        if half_done:
            changer.repair()
        view = _look(request, store, apt)
        with store.workplace() as root:
            plan, options = _resolve(request, view, apt, root)
            change = Change(request.state, view.record, view.node, view.difference, plan, view.files, view.file_steps)
            record = apply(change, Tools(store, apt, changer, root, options))
    view.half_done = half_done
    after = _look(request, store, apt)
    if not after.is_right:
        raise GpuError(_unlike(request, after))
    return _result(request, view, plan, record)


def _look(request: Request, store: Store, apt: Apt) -> View:
    node, record = _package_tools.packages(apt), store.read()
    memory = record.memory()
    if request.state == "absent":
        difference = _package_plan.compare_absent(request.wanted, node, memory)
        files: dict[str, str] = {}
    else:
        goal = _goal(request, record, node)
        difference = _package_plan.compare(goal.wanted, node, memory)
        files = {**goal.files, _package_files.preferences_path(request.name): _package_plan.preferences(difference.pinned)}
    try:
        file_steps = _package_files.plan(files, _former_files(request, record) - set(files) - store.used_elsewhere())
    except _file_set.FileSetError as error:
        raise GpuError(str(error)) from None
    recorded = _is_recorded(request, record, difference, files)
    return View(node, record, difference, files, file_steps, _package_plan.interrupted(node), recorded)


def _goal(request: Request, record: Record, node: Node) -> Goal:
    if request.state == "present":
        sources = _package_files.sources(request.repositories)
        return Goal(request.wanted, {entry["name"]: entry["content"] for entry in request.repositories}, sources)
    target = _target(request, record)
    have = {name: package.version for name, package in node.items() if package.is_there}
    lacking = target.missing(have)
    if lacking:
        raise Refused(
            f"The set {request.name} cannot return to what it was: the node does not keep {', '.join(lacking)} in the former version. "
            "Nothing was changed; declare that version with a repository that has it."
        )
    # A set that was there before the first record has no closure: its part in ours is what belongs together.
    members = record.memory().members
    closure = target.closure or {name: version for name, version in target.installed.items() if name in members}
    return Goal(replace(request.wanted, packages=_exact(target.installed), closure=_exact(closure)), {}, target.files, target.archives)


def _exact(versions: dict[str, str]) -> list[str]:
    return [f"{name}={version}" for name, version in versions.items()]


def _target(request: Request, record: Record) -> PackageSet:
    if record.before and record.before.installed and record.aim != "previous":
        return record.before
    target = record.previous or (record.current if record.undone else None)
    if target is None:
        raise Refused(
            f"The set {request.name} has no previous state on this node; nothing was changed. Declare the wanted version instead."
        )
    return target


def _former_files(request: Request, record: Record) -> set[str]:
    former = {path for item in record.sets() for path in item.files}
    if request.state == "absent":
        former |= set(_package_files.sources(request.repositories)) | {_package_files.preferences_path(request.name)}
    return former


def _is_recorded(request: Request, record: Record, difference: Difference, files: dict[str, str]) -> bool:
    if request.state == "absent":
        return not record.sets()
    if record.before or record.current is None or (request.state == "previous" and not record.undone):
        return False
    return (record.current.closure, record.current.files) == (difference.closure, files)


def _resolve(request: Request, view: View, apt: Apt, root: str) -> tuple[AptPlan, list[str]]:
    found, options, plan = view.difference, list[str](), AptPlan()
    gone = [f"{name}-" for name in found.obsolete]
    if request.state == "absent":
        if found.obsolete:
            read_simulation(apt.run("apt-get", "purge", "-q", "--simulate", "--allow-change-held-packages", *found.obsolete), plan)
    elif found.request or found.obsolete:
        goal = _goal(request, view.record, view.node)
        names = found.request
        if request.state == "previous":
            names = [Store(request.name).file(goal.archives[package.partition("=")[0]]) for package in names]
        apt_request = AptRequest(
            [*names, *gone],
            goal.repositories,
            view.files[_package_files.preferences_path(request.name)],
            f"heterogpu-{request.name}",
            _package_files.proxy_options(request.repositories),
            change_held=True,
        )
        plan, options = resolve_in(root, apt_request, apt)
    problems = _package_plan.judge(found, plan, view.node, view.record.memory(), request.wanted.replaces)
    if problems:
        raise _refusal(request, problems)
    return plan, options


def _refusal(request: Request, problems: Sequence[str]) -> Refused:
    return Refused(f"The set {request.name} was refused and nothing was changed: {' '.join(problems)}", problems=list(problems))


def _unlike(request: Request, after: View) -> str:
    left = after.difference
    return (
        f"The set {request.name} was applied but the node still differs: to install {left.request}, to remove {left.obsolete}, "
        f"to hold {left.hold}, files {[step.path for step in after.file_steps]}. Look at /var/log/apt/term.log and run again."
    )


def _result(request: Request, view: View, plan: AptPlan, record: Record) -> dict[str, Any]:
    paths = [step.path for step in view.file_steps]
    steps = _package_plan.describe(view.difference, plan, paths, view.half_done)
    if not view.recorded and not steps:
        steps = [{"action": "record"}]
    return {
        "changed": bool(steps),
        "steps": steps,
        "disruptive": bool(plan.remove) or any(change.installed_version for change in plan.install),
        "reboot_required": _package_files.reboot_required(),
        "install": [change.as_dict() for change in plan.install],
        "remove": list(plan.remove),
        "held": sorted(name for name in view.difference.pinned if name in view.node or name in {change.name for change in plan.install}),
        "problems": [],
        "record": {"current": _summary(record.current), "previous": _summary(record.previous)},
        "diff": [*_package_files.diff(view.file_steps), *_package_plan.diff(request.name, plan, view.difference)],
    }


def _summary(item: PackageSet | None) -> dict[str, Any] | None:
    if item is None:
        return None
    packages = sorted(f"{name}={version}" for name, version in item.installed.items())
    return {"packages": packages, "kept": sorted(item.archives)}
