# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Judges what the run wants to change: packages with their space, and the geometry."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight_terms import Details, Observed, error, listed, warning


def _packages(observed: Observed) -> Iterator[Details]:
    message = observed.get("packages_message")
    if message:
        yield error("packages", message, "Correct gpu_driver_version, gpu_driver_source or gpu_driver_repository.")
        return
    plan = observed["packages"]
    if plan["problems"]:
        yield error(
            "packages",
            f"Driver {observed['driver']['version']} cannot be installed: {' '.join(plan['problems'])}",
            "Correct gpu_driver_version or gpu_driver_repository, or publish the packages there.",
        )
    # What was refused tells nothing else.
    if plan.get("remove"):
        yield warning("packages", f"apt will remove {listed(plan['remove'])}.", "Read the list; stop here if one of them is still needed.")


def _space(observed: Observed) -> Iterator[Details]:
    for filesystem in (observed.get("checks") or {}).get("space") or ():
        if filesystem["needed_mib"] > filesystem["free_mib"]:
            yield error(
                "disk space",
                f"{filesystem['path']} has {filesystem['free_mib']} MiB free and {filesystem['needed_mib']} MiB are needed.",
                "Free space there, for example with apt-get clean, or enlarge the file system.",
            )


def _geometry(observed: Observed) -> Iterator[Details]:
    message = observed.get("geometry_message")
    if message:
        yield error("geometry", message, "Correct mig_geometry_selections for this node.")


CHECKS = (_packages, _space, _geometry)
