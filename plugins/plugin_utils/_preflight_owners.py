# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Finds who else keeps the driver or the geometry of a node: two owners undo each other's work."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight_terms import (
    Details,
    Observed,
    checks,
    driver,
    error,
    listed,
    warning,
)

_LABEL = "nvidia.com/mig.config"


def _driver_owners(observed: Observed) -> Iterator[Details]:
    owners = (checks(observed).get("owners") or {}).get("driver")
    if not owners:
        return
    if owners["operator_driver"]:
        yield error(
            "driver owner",
            f"The GPU Operator's driver container keeps the driver of this node ({listed(owners['operator_driver'])}).",
            "Give the operator driver.enabled=false and let its driver pods go, or take the node out of gpu_nodes.",
        )
    if owners["runfile"]:
        yield error(
            "driver owner",
            f"A driver was installed outside of packages ({listed(owners['runfile'])}).",
            "Drain the node and remove that driver with nvidia-uninstall.",
        )
    declared = observed["driver"]
    own = {entry.partition("=")[0] for entry in declared.get("closure", ())}
    foreign = [
        name
        for name in owners["packages"]
        if name not in own and any(fnmatchcase(name, pattern) for pattern in declared.get("conflicts", ()))
    ]
    if foreign:
        yield error(
            "driver owner",
            f"Packages of another source than {declared['source']} are installed: {listed(foreign)}.",
            "Drain the node and purge them, or set gpu_driver_source to their source.",
        )
    loaded = driver(observed).get("loaded_version")
    if loaded and not any(owners[owner] for owner in ("packages", "operator_driver", "runfile")):
        yield warning(
            "driver owner",
            f"Driver {loaded} is loaded and no package of a driver is installed.",
            "Find out who has loaded it, for example with modinfo nvidia; the run installs packages beside it.",
        )


def _geometry_owners(observed: Observed) -> Iterator[Details]:
    """Of a geometry that is declared here a second owner is an error, otherwise it is the only one and only told."""
    declared = bool(observed.get("geometry_declared"))
    severe = error if declared else warning
    label = (observed.get("node_labels") or {}).get(_LABEL)
    if label:
        yield severe(
            "geometry owner",
            f"The node has the label {_LABEL}={label}, by which the GPU Operator's MIG manager keeps a geometry of its own.",
            f"Remove the label {_LABEL}, or declare no geometry here.",
        )
    owners = (checks(observed).get("owners") or {}).get("geometry")
    if not owners:
        return
    manager = owners["mig_manager"]
    if manager["active"] or (manager["installed"] and manager["enabled"]):
        yield severe(
            "geometry owner",
            "The service nvidia-mig-manager is enabled and sets a geometry of its own at every boot.",
            "Disable it (systemctl disable --now nvidia-mig-manager), or declare no geometry here.",
        )
    elif manager["installed"] or owners["files"]:
        yield warning(
            "geometry owner",
            f"NVIDIA's MIG manager is on the node ({listed(owners['files']) or 'nvidia-mig-manager.service'}), but not enabled.",
            "Remove the package nvidia-mig-manager, so that nobody enables it.",
        )
    if owners["pods"] and not label:
        yield warning(
            "geometry owner",
            f"The GPU Operator's MIG manager runs here ({listed(owners['pods'])}); it acts as soon as somebody sets {_LABEL}.",
            "Give the operator migManager.enabled=false.",
        )


CHECKS = (_driver_owners, _geometry_owners)
