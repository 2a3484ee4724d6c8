# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Turns the table data/packages.yml into the packages of CUDA toolkits, NCCL and the container toolkit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils._catalog import version as numbers
from ansible_collections.heterogpu.inference.plugins.plugin_utils._driver_packages import PackageTableError, _table


def cuda_packages(default: str, versions: Sequence[str], nccl: str, forward: bool) -> dict[str, Any]:
    """Return {version, releases, nccl, packages, closure, conflicts} for a default toolkit and its neighbours."""
    table = _table()["cuda"]["toolkits"]
    wanted = sorted({default, *versions}, key=numbers)
    packages: dict[str, str] = {}
    closure: dict[str, str] = {}
    for one in wanted:
        entry = _toolkit(table, one)
        packages[entry["toolkit"]] = entry["version"]
        closure.update(entry["closure"])
        if forward:
            packages[entry["compat"]] = entry["compat_version"]
    newest = wanted[-1]
    shared = table[newest]["closure"][f"cuda-toolkit-{newest.replace('.', '-')}-config-common"]
    closure.update(dict.fromkeys(_table()["cuda"]["shared"], shared))
    library = _nccl(default, nccl)
    packages.update(dict.fromkeys(_table()["nccl"]["packages"], library))
    return {
        "version": default,
        "releases": {one: table[one]["release"] for one in wanted},
        "nccl": library.partition("-")[0],
        "packages": _exact(packages),
        "closure": _exact({**closure, **packages}),
        # What brings a driver along would replace the pinned one.
        "conflicts": list(_table()["cuda"]["never_install"]),
    }


def container_toolkit_packages(version: str) -> dict[str, Any]:
    """Return {version, packages, closure}; an empty version is the one that the collection was tested with."""
    entry = _table()["container_toolkit"]
    full = version or entry["version"]
    if "-" not in full:
        full += "-1"
    closure = dict.fromkeys(entry["packages"], full)
    return {"version": full.rpartition("-")[0], "packages": [f"{entry['packages'][0]}={full}"], "closure": _exact(closure)}


def _toolkit(table: dict[str, Any], version: str) -> dict[str, Any]:
    if version not in table:
        raise PackageTableError(
            f"The CUDA toolkit {version!r} is not in the table of packages; known are {', '.join(table)}. "
            "Declare one of them in cuda_version or cuda_toolkit_versions."
        )
    return table[version]


def _nccl(cuda: str, wanted: str) -> str:
    """The Debian version: of the named NCCL, or of the one that was built for this toolkit."""
    known = _table()["nccl"]["versions"]
    if "+cuda" in wanted:
        version = wanted if "-" in wanted else wanted.replace("+", "-1+", 1)
    elif wanted:
        matches = [one["version"] for name, one in known.items() if wanted in (name, one["version"].partition("-")[0])]
        if not matches:
            raise PackageTableError(
                f"NCCL {wanted!r} is not in the table of packages; known are {', '.join(known)}. "
                "Declare one of them in nccl_version, or a whole Debian version such as 2.18.5-1+cuda12.2."
            )
        version = matches[0]
    else:
        matches = [one["version"] for one in known.values() if one["cuda"] == cuda]
        if not matches:
            raise PackageTableError(f"No NCCL is known for CUDA {cuda}; declare a Debian version in nccl_version.")
        version = matches[0]
    built = version.partition("+cuda")[2]
    if numbers(built)[:1] != numbers(cuda)[:1]:
        raise PackageTableError(
            f"NCCL {version} is built for CUDA {built}, but the default toolkit is {cuda}; declare an nccl_version that is built for it."
        )
    return version


def _exact(packages: dict[str, str]) -> list[str]:
    return [f"{name}={version}" for name, version in sorted(packages.items())]
