# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries a planned change of packages out, or returns to what was. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.heterogpu.inference.plugins.module_utils import _file_set, _package_files, _package_tools
from ansible_collections.heterogpu.inference.plugins.module_utils._apt_plan import Apt, AptPlan
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed, Refused
from ansible_collections.heterogpu.inference.plugins.module_utils._package_goal import GOES
from ansible_collections.heterogpu.inference.plugins.module_utils._package_plan import Difference, Node
from ansible_collections.heterogpu.inference.plugins.module_utils._package_store import PackageSet, Record, Store
from ansible_collections.heterogpu.inference.plugins.module_utils._package_tools import Changer


@dataclass(frozen=True)
class Change:
    state: str
    record: Record
    node: Node
    difference: Difference
    plan: AptPlan
    files: Mapping[str, str]
    file_steps: Sequence[_file_set.Step]


@dataclass(frozen=True)
class Tools:
    """`root` is the private folder in which the change was resolved, with apt's `options` for it."""

    store: Store
    apt: Apt
    changer: Changer
    root: str
    options: Sequence[str] = ()


def apply(change: Change, tools: Tools) -> Record:
    """Everything that can be refused comes first; the record of what stood before is written before the first change."""
    store, changer = tools.store, tools.changer
    archives = _fetch(change, tools)
    record = change.record
    if record.before is None:
        record.before = _before(change, archives)
    record.begun = _begun(change, archives)
    record.aim = change.state
    store.write(record)
    try:
        _carry_out(change, store, changer, archives)
    except (ApplyFailed, _file_set.FileSetError) as error:
        _return(change, tools, str(error))
    if change.state in GOES:
        store.forget()
        return Record()
    _succeed(change, record, tools.apt, archives)
    store.write(record)
    store.clean(record)
    for path in _package_files.new_sources(change.file_steps):
        # So that the node's own apt knows the repository; nothing here depends on it.
        tools.apt.run("apt-get", "update", "-q", "--no-list-cleanup", f"-oDir::Etc::sourcelist={path}", "-oDir::Etc::sourceparts=-")
    return record


def _fetch(change: Change, tools: Tools) -> dict[tuple[str, str], str]:
    """The files of the new versions, and of the old ones as far as a repository still has them."""
    store, apt, download = tools.store, tools.apt, ("apt-get", "download", "-q", *tools.options)
    record, archives = change.record, dict[tuple[str, str], str]()
    new = {(item.name, item.version) for item in change.plan.install}
    old = {(item.name, item.installed_version) for item in change.plan.install if item.installed_version}
    old |= {(name, change.node[name].version) for name in change.plan.remove if name in change.node}
    for name, version in new | old:
        kept = record.archive(name, version)
        if kept and os.path.exists(store.file(kept)):
            archives[name, version] = kept
    if change.state in GOES:
        return archives
    lacking = sorted(new - set(archives))
    if lacking:
        answer = apt.run(*download, *(f"{name}={version}" for name, version in lacking), cwd=tools.root)
        if answer.status != 0:
            raise Refused(
                f"A package could not be downloaded and nothing was changed: {answer.errors.strip()} Repair the repository and run again."
            )
    if change.state == "present":
        for name, version in sorted(old - set(archives)):
            apt.run(*download, f"{name}={version}", cwd=tools.root)
    for file in sorted(os.listdir(tools.root)):
        if file.endswith(".deb"):
            path = os.path.join(tools.root, file)
            identity = _package_tools.identify(path, apt)
            archives[identity] = store.take(path)
    return archives


def _before(change: Change, archives: Mapping[tuple[str, str], str]) -> PackageSet:
    """What stands now: the recorded set where there is one, with the versions that are really there."""
    current = change.record.current or PackageSet()
    there = {name: package for name, package in change.node.items() if package.is_there}
    names = {*current.installed, *change.difference.closure, *change.difference.obsolete, *change.plan.remove}
    names |= {item.name for item in change.plan.install}
    installed = {name: there[name].version for name in sorted(names) if name in there}
    files = {step.path: step.before.decode() for step in change.file_steps if step.before is not None}
    return PackageSet(
        closure=current.closure,
        installed=installed,
        archives=_archives(installed, change.record, archives),
        held=sorted({name for name in installed if there[name].held} | set(current.held)),
        files={**current.files, **files},
    )


def _begun(change: Change, archives: Mapping[tuple[str, str], str]) -> PackageSet:
    """So that a run after a killed one knows the members, even when something else is declared by then."""
    installed = {item.name: item.version for item in change.plan.install}
    known = _archives(installed, change.record, archives)
    return PackageSet(change.difference.closure, installed, known, change.difference.held, dict(change.files))


def _archives(installed: Mapping[str, str], record: Record, archives: Mapping[tuple[str, str], str]) -> dict[str, str]:
    found = {name: archives.get((name, version)) or record.archive(name, version) for name, version in installed.items()}
    return {name: archive for name, archive in found.items() if archive}


def _carry_out(change: Change, store: Store, changer: Changer, archives: Mapping[tuple[str, str], str]) -> None:
    found = change.difference
    if change.state in GOES:
        if found.obsolete:
            changer.purge(found.obsolete)
        changer.release(found.release)
        _package_files.apply(change.file_steps)
        return
    _package_files.apply(change.file_steps)
    if change.plan.install or change.plan.remove:
        changer.install([store.file(archives[item.name, item.version]) for item in change.plan.install], change.plan.remove)
    changer.release(found.release)
    changer.hold(found.hold + [name for name in _changed(change) if name in found.pinned and name not in found.hold])


def _changed(change: Change) -> list[str]:
    return sorted(item.name for item in change.plan.install)


def _succeed(change: Change, record: Record, apt: Apt, archives: Mapping[tuple[str, str], str]) -> None:
    now = {name: package for name, package in _package_tools.packages(apt).items() if package.is_there}
    found, before = change.difference, record.before or PackageSet()
    installed = {name: now[name].version for name in sorted(found.closure) if name in now}
    reached = PackageSet(
        closure=found.closure,
        installed=installed,
        archives=_archives(installed, record, archives),
        held=sorted(name for name in found.pinned if name in now and now[name].held),
        files=dict(change.files),
    )
    if change.state == "previous":
        record.undone, record.previous = record.current or before, None
    else:
        moved = any(now[name].version != version if name in now else True for name, version in before.installed.items())
        record.previous = before if moved else record.previous
        record.undone = None
    record.current, record.before, record.begun, record.aim = reached, None, None, ""


def _return(change: Change, tools: Tools, reason: str) -> None:
    """To the versions that stood before, where their files are here; always raises."""
    store, changer, before = tools.store, tools.changer, change.record.before or PackageSet()
    touched = [item.name for item in change.plan.install] + list(change.plan.remove)
    archives = [store.file(before.archives[name]) for name in touched if name in before.archives]
    lacking = [name for name in touched if name in before.installed and name not in before.archives]
    now = _package_tools.packages(tools.apt)
    added = [item.name for item in change.plan.install if item.name not in before.installed and item.name in now]
    try:
        _package_files.undo(change.file_steps)
        if archives or added:
            changer.install(archives, added)
        changer.hold(before.held)
    except (ApplyFailed, _file_set.FileSetError) as error:
        raise ApplyFailed(f"{reason} The way back failed too: {error} Repair what it names and run again.") from None
    if lacking:
        raise ApplyFailed(
            f"{reason} {', '.join(lacking)} could not be put back, as no repository had the former file. Repair and run again."
        )
    change.record.before, change.record.begun, change.record.aim = None, None, ""
    store.write(change.record)
    store.clean(change.record)
    raise ApplyFailed(f"{reason} The former versions are back. Remove the cause and run again.")
