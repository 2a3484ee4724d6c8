# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight import errors_text, findings

GPUS = [
    {"pci_address": "0000:07:00.0", "name": "NVIDIA A100-SXM4-80GB", "numa_node": 0},
    {"pci_address": "0000:bd:00.0", "name": "NVIDIA A100-SXM4-80GB", "numa_node": 1},
]


def observed(**changes: Any) -> dict[str, Any]:
    state: dict[str, Any] = {
        "unreachable": "",
        "system": "ubuntu-22.04",
        "supported_systems": ["ubuntu-22.04"],
        "python": {"version": {"major": 3, "minor": 10}},
        "gpu_info": {"gpus": GPUS},
        "devices": [{"model": "A100-SXM4-80GB", "count": 2, "numa_nodes": [0, 1]}],
        "driver": {"version": "580.95.05", "flavour": "proprietary"},
        "packages": {"problems": [], "remove": [], "space": []},
        "replicas": [],
    }
    return {**state, **changes}


def replica(name: str, port: int, address: str = "0000:07:00.0") -> dict[str, Any]:
    return {
        "name": name,
        "device": {"pci_address": address, "profile": "3g.40gb", "start": 0},
        "http_port": port,
        "grpc_port": port + 1,
        "metrics_port": port + 2,
    }


def test_good_node_has_no_finding() -> None:
    assert findings("a", observed(replicas=[replica("chat-0", 8000), replica("chat-1", 8010)])) == []


def test_unreachable_node_is_the_only_finding() -> None:
    found = findings("a", {"unreachable": "Connection refused."})
    assert [(finding["check"], finding["severity"]) for finding in found] == [("reachable", "error")]


@pytest.mark.parametrize(
    ("changes", "check", "reason"),
    [
        ({"system": "centos-7"}, "operating system", "centos-7 is not supported"),
        ({"python": {"version": {"major": 3, "minor": 8}}}, "python", "3.8 is too old"),
        ({"gpu_info": None, "gpu_message": "The driver hangs."}, "driver answers", "The driver hangs."),
        ({"gpu_info": {"gpus": GPUS, "driver": {"state": "hung", "message": "It hangs."}}}, "driver answers", "It hangs."),
        ({"gpu_info": {"gpus": [{**GPUS[0], "lost": True}, GPUS[1]]}}, "driver answers", "cannot reach GPU 0000:07:00.0"),
        ({"devices": []}, "declared hardware", "No gpu_devices"),
        ({"devices": [{"model": "A100-SXM4-80GB", "count": 3}]}, "declared hardware", "declares 3 GPUs and the node has 2"),
        (
            {"devices": [{"model": "V100-PCIE-32GB", "count": 2}]},
            "declared hardware",
            ":07:00.0, 0000:bd:00.0: found NVIDIA A100-SXM4-80GB, declared is V100",
        ),
        (
            {"devices": [{"model": "A100-SXM4-80GB", "count": 2, "numa_nodes": [0, 0]}]},
            "declared hardware",
            "0000:bd:00.0: found on NUMA node 1, declared",
        ),
        ({"packages_message": "The driver branch '9' is not known."}, "packages", "branch '9'"),
        (
            {"packages": {"problems": ["Version '580.1' for 'x' was not found."], "remove": [], "space": []}},
            "packages",
            "580.95.05 cannot be installed",
        ),
        (
            {"packages": {"problems": [], "remove": [], "space": [{"path": "/usr", "needed_mib": 900, "free_mib": 12}]}},
            "disk space",
            "12 MiB free and 900 MiB are needed",
        ),
        ({"geometry_message": "GPU 0000:07:00.0 has no profile 9g.90gb."}, "geometry", "9g.90gb"),
        ({"replicas": [replica("chat-0", 8000), replica("chat-0", 8010)]}, "replicas", "Two replicas are called chat-0"),
        ({"replicas": [replica("chat-0", 8000), replica("chat-1", 8002)]}, "replicas", "both want port 8002"),
        ({"replicas": [replica("chat-0", 8000, "0000:ff:00.0")]}, "replicas", "which the node does not have"),
    ],
)
def test_each_fault_is_named(changes: dict[str, Any], check: str, reason: str) -> None:
    found = findings("a", observed(**changes))
    assert {finding["check"] for finding in found if reason in finding["reason"]} == {check}
    assert all(finding["severity"] == "error" and finding["remedy"].endswith(".") for finding in found)


@pytest.mark.parametrize(
    ("driver", "check"),
    [
        ({"version": "580.95.05", "flavour": "open"}, "driver flavour"),
        ({"version": "595.45.04", "flavour": "proprietary"}, "driver branch"),
    ],
)
def test_volta_limits_the_driver(driver: dict[str, str], check: str) -> None:
    gpus = [{"pci_address": "0000:3b:00.0", "name": "Tesla V100-PCIE-32GB", "numa_node": 0}]
    state = observed(gpu_info={"gpus": gpus}, devices=[{"model": "V100-PCIE-32GB", "count": 1}], driver=driver)
    assert [finding["check"] for finding in findings("v", state)] == [check]
    assert findings("a", observed(driver=driver)) == []


def test_unknown_facts_are_no_difference() -> None:
    gpus = [{"pci_address": "0000:07:00.0", "name": None, "numa_node": -1}]
    assert findings("a", observed(gpu_info={"gpus": gpus}, devices=[{"model": "A100-SXM4-80GB", "numa_nodes": [1]}])) == []


def test_errors_come_before_warnings() -> None:
    state = observed(system="centos-7", packages={"problems": [], "remove": ["old"], "space": []})
    assert [finding["severity"] for finding in findings("a", state)] == ["error", "warning"]


def test_common_errors_are_said_once_and_warnings_not_at_all() -> None:
    def finding(node: str, severity: str, reason: str) -> dict[str, str]:
        return {"node": node, "severity": severity, "check": "x", "reason": reason, "remedy": "Do it."}

    all_findings = [
        finding("a", "error", "One."),
        finding("b", "error", "One."),
        finding("b", "error", "Two."),
        finding("c", "warning", "Three."),
    ]
    assert errors_text(all_findings) == "a, b: One. Do it. b: Two. Do it."


@pytest.mark.parametrize(("state", "severities"), [("absent", []), ("not_loaded", []), ("ok", []), ("mismatch", ["warning"])])
def test_driver_that_the_run_brings_is_no_error(state: str, severities: list[str]) -> None:
    info = {"gpus": GPUS, "driver": {"state": state, "message": "So it is."}}
    assert [finding["severity"] for finding in findings("a", observed(gpu_info=info))] == severities
