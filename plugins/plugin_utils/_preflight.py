# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Judges what was read of one node before anything is changed on any node. Pure: no connection, no file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

_MINIMUM_PYTHON = (3, 9)
# A driver that is absent or not loaded yet is what the run is going to change; these states it cannot change.
_UNUSABLE_DRIVER = ("hung", "no_permission", "unusable")

Observed = Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    node: str
    severity: str
    check: str
    reason: str
    remedy: str


def findings(node: str, observed: Observed) -> list[dict[str, str]]:
    """One entry per finding, errors first."""
    unreachable = observed.get("unreachable")
    if unreachable:
        reason = unreachable.removeprefix("Task failed: ").rstrip(".") + "."
        found = [Finding(node, "warning", "reachable", f"{reason} It is left alone, as in maintenance.", "Repair SSH, the address or the key, or set node_state.")]
    else:
        found = [Finding(node, *details) for check in _CHECKS for details in check(observed)]
    return [asdict(finding) for finding in sorted(found, key=lambda finding: finding.severity != "error")]


def errors_text(all_findings: Sequence[Mapping[str, str]]) -> str:
    """All errors in one text; what several nodes have in common is said once."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for finding in all_findings:
        if finding["severity"] == "error":
            nodes.setdefault((finding["reason"], finding["remedy"]), []).append(finding["node"])
    return " ".join(f"{', '.join(dict.fromkeys(names))}: {reason} {remedy}" for (reason, remedy), names in nodes.items())


Details = tuple[str, str, str, str]


def _system(observed: Observed) -> Iterator[Details]:
    system, supported = observed["system"], observed["supported_systems"]
    if system not in supported:
        yield (
            "error",
            "operating system",
            f"The system {system} is not supported.",
            f"Use one of {', '.join(supported)}.",
        )


def _python(observed: Observed) -> Iterator[Details]:
    version = observed["python"]["version"]
    if (version["major"], version["minor"]) < _MINIMUM_PYTHON:
        yield (
            "error",
            "python",
            f"Python {version['major']}.{version['minor']} is too old.",
            "Install Python 3.9 or newer and set ansible_python_interpreter.",
        )


def _hardware(observed: Observed) -> Iterator[Details]:
    info = observed["gpu_info"]
    if info is None:
        message = observed.get("gpu_message") or "The GPUs could not be read."
        yield "error", "driver answers", message, "Look at dmesg for Xid messages and reboot the node if the driver hangs."
        return
    driver = info.get("driver", {})
    if driver.get("state") in _UNUSABLE_DRIVER:
        yield "error", "driver answers", driver["message"], "Look at dmesg for Xid messages and reboot the node if the driver hangs."
    if driver.get("state") == "mismatch":
        yield "warning", "driver answers", driver["message"], "Drain the node and allow the reboot with nvidia_driver_reboot_allowed."
    lost = [gpu["pci_address"] for gpu in info["gpus"] if gpu.get("lost")]
    if lost:
        yield (
            "error",
            "driver answers",
            f"The driver cannot reach GPU {', '.join(lost)}.",
            "Reset the GPU or reboot the node; replace it if it stays lost.",
        )


def _packages(observed: Observed) -> Iterator[Details]:
    message = observed.get("packages_message")
    if message:
        yield "error", "packages", message, "Correct gpu_driver_version, gpu_driver_source or gpu_driver_repository."
        return
    plan = observed["packages"]
    if plan["problems"]:
        yield (
            "error",
            "packages",
            f"Driver {observed['driver']['version']} cannot be installed: {' '.join(plan['problems'])}",
            "Correct gpu_driver_version or gpu_driver_repository, or publish the packages there.",
        )
    if plan["remove"]:
        yield (
            "warning",
            "packages",
            f"apt will remove {', '.join(plan['remove'])}.",
            "Read the list; stop here if one of them is still needed.",
        )
    for filesystem in plan["space"]:
        if filesystem["needed_mib"] > filesystem["free_mib"]:
            yield (
                "error",
                "disk space",
                f"{filesystem['path']} has {filesystem['free_mib']} MiB free and {filesystem['needed_mib']} MiB are needed.",
                "Free space there, for example with apt-get clean, or enlarge the file system.",
            )


def _geometry(observed: Observed) -> Iterator[Details]:
    message = observed.get("geometry_message")
    if message:
        yield "error", "geometry", message, "Correct mig_geometry_selections for this node."


_CHECKS = (_system, _python, _hardware, _packages, _geometry)
