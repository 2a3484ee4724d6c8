# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Turns the table data/packages.yml into the packages and the pins of one node."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

_TABLE = Path(__file__).resolve().parents[2] / "data" / "packages.yml"
# Above 1000 apt also goes back to the pinned version when a newer one is installed: what the inventory says is what stays.
_PIN_PRIORITY = 1001


class PackageTableError(ValueError):
    """A full sentence for the user."""


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    with _TABLE.open(encoding="utf-8") as stream:
        return yaml.safe_load(stream)


def driver_packages(system: str, source: str, version: str, flavour: str, nvswitch: bool) -> dict[str, Any]:
    """Return {install, closure, preferences, branch}: exact packages to install, all that must stay together, and the pin's text."""
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
        "preferences": _preferences(pinned),
    }


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


def _preferences(pinned: list[str]) -> str:
    by_version: dict[str, list[str]] = {}
    for package in pinned:
        name, _equals, version = package.partition("=")
        by_version.setdefault(version, []).append(name)
    stanzas = [
        f"Package: {' '.join(names)}\nPin: version {version}\nPin-Priority: {_PIN_PRIORITY}\n"
        for version, names in sorted(by_version.items())
    ]
    return "\n".join(stanzas)
