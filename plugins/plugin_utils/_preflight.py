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
# R580 is the last branch with Volta, and the open kernel modules need a GSP, which Volta lacks.
_LAST_VOLTA_BRANCH = 580
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
        found = [Finding(node, "error", "reachable", reason, "Repair SSH, the address or the key, or take the node out with --limit.")]
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
    declared = [device for entry in observed["devices"] for device in _expand(entry)]
    actual = info["gpus"]
    if not declared:
        yield (
            "error",
            "declared hardware",
            "No gpu_devices are declared for this node.",
            "Declare model, count and NUMA nodes in gpu_devices.",
        )
        return
    if len(declared) != len(actual):
        yield (
            "error",
            "declared hardware",
            f"gpu_devices declares {len(declared)} GPUs and the node has {len(actual)}.",
            "Correct gpu_devices, or look for a GPU that fell off the bus.",
        )
        return
    # GPUs that differ in the same way are named together. What is not known yet (no driver, no NUMA information) is no difference.
    models: dict[tuple[str, str], list[str]] = {}
    numa_nodes: dict[tuple[int, int], list[str]] = {}
    for (model, numa_node), gpu in zip(declared, actual, strict=True):
        if gpu.get("name") and not _same_model(model, gpu["name"]):
            models.setdefault((gpu["name"], model), []).append(gpu["pci_address"])
        if numa_node is not None and gpu.get("numa_node") not in (None, -1, numa_node):
            numa_nodes.setdefault((gpu["numa_node"], numa_node), []).append(gpu["pci_address"])
    for (name, model), where in models.items():
        yield (
            "error",
            "declared hardware",
            f"GPU {', '.join(where)}: found {name}, declared is {model}.",
            "Correct models and their order in gpu_devices.",
        )
    for (found, numa_node), where in numa_nodes.items():
        yield (
            "error",
            "declared hardware",
            f"GPU {', '.join(where)}: found on NUMA node {found}, declared is {numa_node}.",
            "Correct numa_nodes in gpu_devices.",
        )


def _expand(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    count = int(entry.get("count", 1))
    numa_nodes = list(entry.get("numa_nodes") or [None] * count)
    numa_nodes += [None] * (count - len(numa_nodes))
    for numa_node in numa_nodes[:count]:
        yield entry["model"], numa_node


def _same_model(declared: str, name: str) -> bool:
    return declared.removeprefix("NVIDIA ").casefold() in {name.casefold(), name.removeprefix("NVIDIA ").removeprefix("Tesla ").casefold()}


def _driver(observed: Observed) -> Iterator[Details]:
    driver = observed["driver"]
    volta = sorted({entry["model"] for entry in observed["devices"] if "V100" in entry["model"]})
    if volta and driver["flavour"] == "open":
        yield (
            "error",
            "driver flavour",
            f"The open kernel module does not drive {', '.join(volta)}.",
            "Set gpu_driver_flavour to proprietary for this node.",
        )
    if volta and int(driver["version"].partition(".")[0]) > _LAST_VOLTA_BRANCH:
        yield (
            "error",
            "driver branch",
            f"Driver {driver['version']} does not drive {', '.join(volta)}; {_LAST_VOLTA_BRANCH} is the last branch that does.",
            f"Set gpu_driver_version to a {_LAST_VOLTA_BRANCH} release for this node.",
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


def _replicas(observed: Observed) -> Iterator[Details]:
    ports: dict[int, str] = {}
    names: set[str] = set()
    addresses = {gpu["pci_address"] for gpu in (observed["gpu_info"] or {}).get("gpus", [])}
    for replica in observed["replicas"]:
        name = replica["name"]
        if name in names:
            yield "error", "replicas", f"Two replicas are called {name}.", "Give each entry of triton_replicas its own name."
        names.add(name)
        for kind in ("http_port", "grpc_port", "metrics_port"):
            port = replica[kind]
            if port in ports:
                yield (
                    "error",
                    "replicas",
                    f"Replicas {ports[port]} and {name} both want port {port}.",
                    "Give each port of triton_replicas once per node.",
                )
            ports[port] = name
        for address in _addresses(replica["device"]):
            if addresses and address not in addresses:
                yield (
                    "error",
                    "replicas",
                    f"Replica {name} is placed on GPU {address}, which the node does not have.",
                    "Correct triton_replicas.",
                )


def _addresses(device: Mapping[str, Any]) -> Sequence[str]:
    addresses = device["gpus"] if "gpus" in device else [device["pci_address"]]
    return [address.lower() for address in addresses]


_CHECKS = (_system, _python, _hardware, _driver, _packages, _geometry, _replicas)
