# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a set of packages is to go: what is declared, or what the record says of before. PRIVATE: internal to the collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _package_files
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import Refused
from ansible_collections.heterogpu.inference.plugins.module_utils._package_plan import Difference, Node, Wanted
from ansible_collections.heterogpu.inference.plugins.module_utils._package_store import PackageSet, Record

# The set ends: with its packages, or without holds, pins and sources only.
GOES = ("absent", "released")


@dataclass(frozen=True)
class Request:
    name: str
    state: str
    wanted: Wanted
    repositories: Sequence[dict[str, Any]]
    lock_timeout: int
    timeout: int


@dataclass(frozen=True)
class Goal:
    wanted: Wanted
    repositories: dict[str, str]
    files: dict[str, str]
    archives: dict[str, str] = field(default_factory=dict)


def goal(request: Request, record: Record, node: Node) -> Goal:
    if request.state != "previous":
        sources = _package_files.sources(request.repositories)
        return Goal(request.wanted, {entry["name"]: entry["content"] for entry in request.repositories}, sources)
    target = _target(request, record)
    lacking = target.missing({name: package.version for name, package in node.items() if package.status == "installed"})
    if lacking:
        raise Refused(
            f"The set {request.name} cannot return to what it was: the node does not keep {', '.join(lacking)} in the former version. "
            "Nothing was changed; declare that version with a repository that has it."
        )
    # A set that was there before the first record has no closure: its part in ours is what belongs together.
    members = record.memory().members
    closure = target.closure or {name: version for name, version in target.installed.items() if name in members}
    wanted = replace(request.wanted, packages=_exact(target.installed), closure=_exact(closure))
    return Goal(wanted, {}, target.files, target.archives)


def former_files(request: Request, record: Record) -> set[str]:
    former = {path for item in record.sets() for path in item.files}
    if request.state in GOES:
        former |= set(_package_files.sources(request.repositories)) | {_package_files.preferences_path(request.name)}
    return former


def is_recorded(request: Request, record: Record, difference: Difference, files: dict[str, str]) -> bool:
    if request.state in GOES:
        return not record.sets()
    if record.before or record.current is None or (request.state == "previous" and not record.undone):
        return False
    return (record.current.closure, record.current.files) == (difference.closure, files)


def _target(request: Request, record: Record) -> PackageSet:
    """What stood before a change that was begun and not ended, else the set before the current one."""
    if record.before and record.before.installed and record.aim != "previous":
        return record.before
    target = record.previous or (record.current if record.undone else None)
    if target is None:
        raise Refused(
            f"The set {request.name} has no previous state on this node; nothing was changed. Declare the wanted version instead.",
            no_previous=True,
        )
    return target


def _exact(versions: dict[str, str]) -> list[str]:
    return [f"{name}={version}" for name, version in versions.items()]
