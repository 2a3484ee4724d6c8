# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a set of packages to what is declared: probe, plan, apply, verify. PRIVATE: internal to the collection, may change."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import (
    _file_set,
    _free_space,
    _package_files,
    _package_goal,
    _package_plan,
    _package_tools,
)
from ansible_collections.heterogpu.inference.plugins.module_utils._apt_plan import Apt, AptPlan, AptRequest, read_simulation, resolve_in
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError, Refused
from ansible_collections.heterogpu.inference.plugins.module_utils._package_apply import Change, Tools, apply
from ansible_collections.heterogpu.inference.plugins.module_utils._package_goal import GOES, Request
from ansible_collections.heterogpu.inference.plugins.module_utils._package_plan import Difference, Node
from ansible_collections.heterogpu.inference.plugins.module_utils._package_store import FOLDER, PackageSet, Record, Store


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
    if check_mode and view.half_done:
        return _result(request, view, _package_plan.declared(view.difference, view.node), view.record)
    if check_mode:
        with tempfile.TemporaryDirectory(prefix="package_set-") as root:
            plan, _options = _resolve(request, view, apt, root)
        _keep(request, view, plan)
        return _result(request, view, plan, view.record)
    half_done = view.half_done
    with _package_tools.exclusive(request.lock_timeout), store.workplace() as root:
        changer = _package_tools.Changer(request.timeout)
        if half_done:
            changer.configure()
        view = _look(request, store, apt)
        plan, options = _resolve(request, view, apt, root)
        _keep(request, view, plan)
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
    if request.state in GOES:
        difference = _package_plan.compare_absent(request.wanted, node, memory, keep=request.state == "released")
        files: dict[str, str] = {}
    else:
        goal = _package_goal.goal(request, record, node)
        difference = _package_plan.compare(goal.wanted, node, memory)
        files = {**goal.files, _package_files.preferences_path(request.name): _package_plan.preferences(difference.pinned)}
    file_steps = _file_steps(request, files, record)
    recorded = _package_goal.is_recorded(request, record, difference, files)
    half_done = _package_plan.interrupted(node) or _package_tools.journal()
    return View(node, record, difference, files, file_steps, half_done, recorded)


def _file_steps(request: Request, files: dict[str, str], record: Record) -> list[_file_set.Step]:
    obsolete = _package_goal.former_files(request, record) - set(files) - Store(request.name).used_elsewhere()
    try:
        return _package_files.plan(files, obsolete)
    except _file_set.FileSetError as error:
        raise GpuError(str(error)) from None


def _keep(request: Request, view: View, plan: AptPlan) -> None:
    if request.state not in GOES:
        # The pins are known when all versions are.
        view.difference = _package_plan.with_kept(view.difference, plan, request.wanted)
        view.files[_package_files.preferences_path(request.name)] = _package_plan.preferences(view.difference.pinned)
    view.file_steps = _file_steps(request, view.files, view.record)


def _resolve(request: Request, view: View, apt: Apt, root: str) -> tuple[AptPlan, list[str]]:
    found, options, plan = view.difference, list[str](), AptPlan()
    if request.state in GOES:
        if found.obsolete:
            read_simulation(apt.run("apt-get", "purge", "-q", "--simulate", "--allow-change-held-packages", *found.obsolete), plan)
    elif found.request or found.obsolete:
        plan, options = _resolve_install(request, view, apt, root)
    problems = _package_plan.judge(found, plan, view.node, view.record.memory(), request.wanted.replaces) or _lacking_space(plan)
    if problems:
        raise _refusal(request, problems)
    return plan, options


def _lacking_space(plan: AptPlan) -> list[str]:
    """The files of the packages lie in the store, and are kept there to return to."""
    needs = [_free_space.SpaceNeed("/usr", plan.installed_mib), _free_space.SpaceNeed(FOLDER, plan.download_mib)]
    return [
        f"{system.path} has {system.free_mib} MiB free and {system.needed_mib} MiB are needed; free space there or enlarge the file system."
        for system in _free_space.compare(needs)
        if system.needed_mib > system.free_mib
    ]


def _resolve_install(request: Request, view: View, apt: Apt, root: str) -> tuple[AptPlan, list[str]]:
    found, record = view.difference, view.record
    goal = _package_goal.goal(request, record, view.node)
    options = _package_files.proxy_options(request.repositories)
    broken = bool(record.before or view.half_done)
    names = found.request
    if broken:
        # Between two versions apt resolves nothing. So it is asked what it would install if none of the set were there.
        names, left_out = _package_plan.from_nothing(goal.wanted, found, view.node, goal.archives)
        options = [*options, f"-oDir::State::status={_package_tools.status_without(root, left_out)}"]
    if request.state == "previous":
        store = Store(request.name)
        names = [store.file(goal.archives[package.partition("=")[0]]) for package in names]
    gone = [] if broken else [f"{name}-" for name in found.obsolete]
    preferences = view.files[_package_files.preferences_path(request.name)]
    apt_request = AptRequest([*names, *gone], goal.repositories, preferences, f"heterogpu-{request.name}", options, change_held=True)
    plan, apt_options = resolve_in(root, apt_request, apt)
    return (_package_plan.as_it_is(plan, found, view.node) if broken else plan), apt_options


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
