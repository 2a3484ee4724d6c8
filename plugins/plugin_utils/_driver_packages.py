# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Turns the table data/packages.yml into the packages and the pins of one node."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.heterogpu.inference.plugins.module_utils._package_plan import preferences, split

_TABLE = Path(__file__).resolve().parents[2] / "data" / "packages.yml"


class PackageTableError(ValueError):
    """A full sentence for the user."""


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    with _TABLE.open(encoding="utf-8") as stream:
        return yaml.safe_load(stream)


def driver_packages(system: str, source: str, version: str, flavour: str, nvswitch: bool, *, kernels: Iterable[str] = ()) -> dict[str, Any]:
    """Exact packages to install, all that must stay together, the pin's text, and what must go or must not be there beside them."""
    branch = version.partition(".")[0]
    names = _names(system, source, branch)
    if flavour not in names["driver"]:
        raise PackageTableError(f"The driver flavour {flavour!r} does not exist; use {' or '.join(sorted(names['driver']))}.")
    fields = {"branch": branch, "version": version}
    versions = {name.format(**fields): text.format(**fields) for name, text in names.get("package_versions", {}).items()}
    ordinary = _table()["systems"][system][source]["package_version"].format(**fields)

    def exact(name: str) -> str:
        filled = name.format(**fields)
        return f"{filled}={versions.get(filled, ordinary)}"

    install = [*names["driver"][flavour], names["persistenced"]]
    closure = [*names["closure"]["common"], *names["closure"][flavour], *install]
    if nvswitch:
        install += [names["fabric_manager"], names["nscq"]]
        closure += names["closure"]["nvswitch"]
    pinned = sorted({exact(name) for name in closure})
    return {
        "branch": branch,
        "install": sorted({exact(name) for name in install}),
        "closure": pinned,
        "preferences": preferences(split(pinned)),
        "replaces": sorted(_patterns(_table()["systems"][system][source])),
        "conflicts": sorted(_foreign(system, source)),
        "kernel": list(_table()["kernel"]["keep"]),
        "headers": [_table()["kernel"]["headers"].format(release=release) for release in kernels],
    }


def _foreign(system: str, source: str) -> set[str]:
    """Names of the other sources that this one does not have too. As patterns they may take in a name of ours, which is left to apt."""
    sources = _table()["systems"][system]
    own = _patterns(sources[source])
    others = {pattern for name, entry in sources.items() if name != source and isinstance(entry, dict) for pattern in _patterns(entry)}
    return others - own - set(_table()["common_names"])


def _patterns(source: dict[str, Any]) -> set[str]:
    return {name.format(branch=branch, version="*") for branch, names in source["branches"].items() for name in _all_names(names)}


def _all_names(names: dict[str, Any]) -> Iterable[str]:
    for group in names["closure"].values():
        yield from group
    yield from names["driver_metapackage"].values()


def _names(system: str, source: str, branch: str) -> dict[str, Any]:
    systems = _table()["systems"]
    if system not in systems:
        raise PackageTableError(f"The system {system} is not supported; supported are {', '.join(systems)}.")
    sources = {name: entry for name, entry in systems[system].items() if isinstance(entry, dict)}
    if source not in sources:
        raise PackageTableError(f"The driver source {source!r} does not exist for {system}; use {' or '.join(sources)}.")
    branches = sources[source]["branches"]
    if branch not in branches:
        raise PackageTableError(f"The driver branch {branch!r} is not known for {system} from {source}; known are {', '.join(branches)}.")
    return branches[branch]
