# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a set of packages needs on a node: pure. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._apt_plan import AptPlan, PackageChange
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput

# Above 1000 apt also goes back to the pinned version when a newer one is installed: what the inventory says is what stays.
PRIORITY = 1001
# What dpkg says of a package whose installation was begun and not ended.
HALF_DONE = ("half-installed", "unpacked", "half-configured", "triggers-awaited", "triggers-pending")


@dataclass(frozen=True)
class Package:
    """A package as dpkg knows it."""

    version: str
    status: str = "installed"
    held: bool = False

    @property
    def is_there(self) -> bool:
        return self.status == "installed" or self.status in HALF_DONE


Node = Mapping[str, Package]


@dataclass(frozen=True)
class Wanted:
    packages: Sequence[str]
    closure: Sequence[str] = ()
    keep: Sequence[str] = ()
    replaces: Sequence[str] = ()
    conflicts: Sequence[str] = ()


@dataclass(frozen=True)
class Memory:
    """What the last successes left on the node: the names that ever belonged to the set, and what it held."""

    members: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()


@dataclass
class Difference:
    """What stands between the node and the set; `request` is what apt is asked for."""

    closure: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    request: list[str] = field(default_factory=list)
    obsolete: list[str] = field(default_factory=list)
    hold: list[str] = field(default_factory=list)
    release: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def pinned(self) -> dict[str, str]:
        return {**self.closure, **self.kept}

    @property
    def held(self) -> list[str]:
        return sorted(self.pinned)


def split(packages: Iterable[str]) -> dict[str, str]:
    """Versions by name; a package without a version has an empty one."""
    versions: dict[str, str] = {}
    for package in packages:
        name, _equals, version = package.partition("=")
        if versions.setdefault(name, version) != version:
            raise InvalidInput(f"The package {name} is declared with the versions {versions[name]} and {version}; declare one.")
    return versions


def interrupted(node: Node) -> list[str]:
    return sorted(name for name, package in node.items() if package.status in HALF_DONE)


def preferences(pinned: Mapping[str, str]) -> str:
    by_version: dict[str, list[str]] = {}
    for name, version in sorted(pinned.items()):
        by_version.setdefault(version, []).append(name)
    stanzas = [
        f"Package: {' '.join(names)}\nPin: version {version}\nPin-Priority: {PRIORITY}\n" for version, names in sorted(by_version.items())
    ]
    return "\n".join(stanzas)


def compare(wanted: Wanted, node: Node, memory: Memory) -> Difference:
    packages = split(wanted.packages)
    closure = {name: version for name, version in split(wanted.closure or wanted.packages).items() if version}
    there = {name: package for name, package in node.items() if package.is_there}
    kept = {name: package.version for name, package in there.items() if name not in closure and _matches(name, wanted.keep)}
    found = Difference(closure, kept)
    found.obsolete = sorted(
        name
        for name in there
        if name not in closure and name not in packages and name not in kept and (name in memory.members or _matches(name, wanted.replaces))
    )
    for name, version in {**closure, **packages}.items():
        have = there.get(name)
        # Half installed means that the files of both versions are mixed.
        if name in packages if have is None else version not in ("", have.version) or have.status == "half-installed":
            found.request.append(_exact(name, version))
    found.request.sort()
    installed = {name for name in found.pinned if name in there} | set(_names(found.request))
    found.hold = sorted(name for name in installed if name in found.pinned and not (name in there and there[name].held))
    found.release = sorted(
        name for name in memory.held if name in there and there[name].held and name not in found.pinned and name not in found.obsolete
    )
    strangers = sorted(name for name in there if name not in closure and _matches(name, wanted.conflicts))
    if strangers:
        found.problems.append(
            f"{', '.join(strangers)} {_are(strangers)} installed and must not be beside the set: sources are never mixed. "
            "Remove it first, or declare the source that it is from."
        )
    return found


def declared(difference: Difference, node: Node) -> AptPlan:
    """The plan without apt, which cannot resolve anything while an installation is interrupted."""
    changes = []
    for name, version in split(difference.request).items():
        have = node.get(name)
        changes.append(PackageChange(name, version, have.version if have and have.is_there else None))
    return AptPlan(install=changes, remove=list(difference.obsolete))


def with_kept(found: Difference, plan: AptPlan, wanted: Wanted) -> Difference:
    """What the change itself brings of the packages that stay, such as headers of a kernel, stays too."""
    brought = {item.name: item.version for item in plan.install if item.name not in found.closure and _matches(item.name, wanted.keep)}
    return replace(found, kept={**found.kept, **brought}) if brought else found


def from_nothing(wanted: Wanted, found: Difference, node: Node, archives: Mapping[str, str]) -> tuple[list[str], set[str]]:
    """What to ask for, and what to leave out of the package database for it: all of the set that can be installed again."""
    packages = {name: version for name, version in split(wanted.packages).items() if not archives or name in archives}
    left_out = {*packages, *found.obsolete}
    if not archives:
        left_out |= set(found.closure)
    return [_exact(name, version) for name, version in packages.items()], left_out


def as_it_is(plan: AptPlan, found: Difference, node: Node) -> AptPlan:
    """A plan from nothing, seen from the node: what is there already needs nothing."""
    changes = []
    for change in plan.install:
        have = node.get(change.name)
        if have is None or have.status != "installed" or have.version != change.version:
            changes.append(replace(change, installed_version=have.version if have and have.is_there else None))
    return replace(plan, install=changes, remove=[*plan.remove, *found.obsolete])


def compare_absent(wanted: Wanted, node: Node, memory: Memory, keep: bool = False) -> Difference:
    """Versions do not matter for what goes."""
    members = memory.members | set(split([*wanted.closure, *wanted.packages]))
    known = {name for name, package in node.items() if package.is_there or package.status == "config-files"}
    gone = [] if keep else sorted(name for name in known if name in members or _matches(name, wanted.replaces))
    release = sorted(name for name in memory.held if name not in gone and name in node and node[name].held)
    return Difference(obsolete=gone, release=release)


def judge(difference: Difference, plan: AptPlan, node: Node, memory: Memory, replaces: Sequence[str]) -> list[str]:
    """What apt must not do on the way. A hold that is not ours is an administrator's word."""
    problems = list(difference.problems) + list(plan.problems)
    mine = set(difference.pinned) | set(difference.obsolete) | memory.members
    foreign = [name for name in plan.remove if name not in mine and not _matches(name, replaces)]
    if foreign:
        problems.append(f"apt would remove {', '.join(foreign)}, which {_are(foreign)} no part of the set; remove or adapt them first.")
    touched = [change.name for change in plan.install if change.installed_version] + list(plan.remove)
    held = sorted({name for name in touched if name in node and node[name].held and name not in memory.held})
    if held:
        problems.append(
            f"{', '.join(held)} {_are(held)} held in another version by somebody else; "
            f"release with `apt-mark unhold {' '.join(held)}` if that is right."
        )
    return problems


def describe(difference: Difference, plan: AptPlan, files: Sequence[str], half_done: Sequence[str]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    if half_done:
        steps.append({"action": "repair", "packages": list(half_done)})
    steps += [{"action": "write", "path": path} for path in files]
    for change in plan.install:
        steps.append({"action": "install", "package": change.name, "from": change.installed_version, "to": change.version})
    steps += [{"action": "remove", "package": name} for name in plan.remove]
    if difference.hold:
        steps.append({"action": "hold", "packages": difference.hold})
    if difference.release:
        steps.append({"action": "release", "packages": difference.release})
    return steps


def diff(name: str, plan: AptPlan, difference: Difference) -> list[dict[str, str]]:
    """Packages as a text that --diff compares line by line."""
    before = {change.name: change.installed_version for change in plan.install if change.installed_version}
    after = {change.name: change.version for change in plan.install}
    before.update(dict.fromkeys(plan.remove, "installed"))
    old, new = _lines(before, difference.release), _lines(after, difference.hold)
    header = f"packages of {name}"
    return [{"before_header": header, "after_header": header, "before": old, "after": new}] if old or new else []


def _lines(versions: Mapping[str, str], held: Iterable[str]) -> str:
    lines = [f"{name} {version}\n" for name, version in versions.items()] + [f"{name} held\n" for name in held]
    return "".join(sorted(lines))


def _names(packages: Iterable[str]) -> list[str]:
    return [package.partition("=")[0] for package in packages]


def _exact(name: str, version: str) -> str:
    return f"{name}={version}" if version else name


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
