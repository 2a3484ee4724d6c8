# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every finding of preflight, provoked by what a node may tell."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight import errors_text, findings
from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight_cluster import cluster_findings

TODAY = datetime.date(2026, 12, 2)
A, B = "0000:07:00.0", "0000:bd:00.0"
GPU = {"index": 0, "pci_address": A, "numa_node": 0, "numa_node_effective": 0, "lost": False, "errors": {}}
GPUS = [GPU, {**GPU, "index": 1, "pci_address": B, "numa_node": 1, "numa_node_effective": 1}]
DRIVER = {"state": "ok", "message": None, "loaded_version": "580.95.05", "installed_version": "580.95.05"}
KERNEL = {"release": "5.15.0-100-generic", "running": True}
SERVICE = {"installed": False, "enabled": False, "active": False}
PACKAGES: dict[str, Any] = {"problems": [], "remove": []}
IOMMU_GPU: dict[str, Any] = {"pci_address": A, "kernel_driver": "nvidia", "iommu_type": None, "redirecting_bridges": []}


def info(gpus: list[dict[str, Any]] | None = None, **driver: Any) -> dict[str, Any]:
    return {"gpu_info": {"gpus": GPUS if gpus is None else gpus, "driver": {**DRIVER, **driver}, "numa_nodes": [{"id": 0}, {"id": 1}]}}


def gpu(**facts: Any) -> dict[str, Any]:
    return info([{**GPU, **facts}, GPUS[1]])


def health(**facts: Any) -> dict[str, Any]:
    return gpu(health=facts)


def checks(**changes: Any) -> dict[str, Any]:
    state = {
        "clock": {"synchronised": True, "services": ["chrony"], "skew_s": 0.0},
        "iommu": {"arguments": [], "gpus": [IOMMU_GPU]},
        "owners": {
            "driver": {"packages": ["nvidia-utils-580-server"], "operator": [], "operator_driver": [], "runfile": []},
            "geometry": {"mig_manager": SERVICE, "files": [], "pods": []},
            "kubelet": False,
        },
        "reboot": {"required": False, "packages": []},
    }
    return {"checks": {**state, **changes}}


def driver_owner(**changes: Any) -> dict[str, Any]:
    driver = {"packages": ["nvidia-utils-580-server"], "operator": [], "operator_driver": [], "runfile": [], **changes}
    return checks(owners={"driver": driver, "geometry": {"mig_manager": SERVICE, "files": [], "pods": []}, "kubelet": False})


def geometry_owner(**changes: Any) -> dict[str, Any]:
    geometry = {"mig_manager": SERVICE, "files": [], "pods": [], **changes}
    driver = {"packages": ["nvidia-utils-580-server"], "operator": [], "operator_driver": [], "runfile": []}
    return checks(owners={"driver": driver, "geometry": geometry, "kubelet": False})


def observed(**changes: Any) -> dict[str, Any]:
    state: dict[str, Any] = {
        "node_state": "active",
        "unreachable": "",
        "system": "ubuntu-22.04",
        "supported_systems": ["ubuntu-22.04"],
        "python": {"version": {"major": 3, "minor": 10}},
        **info(kernels=[KERNEL], secure_boot={"enabled": False, "signing_key_enrolled": None}),
        **checks(),
        "driver": {
            "version": "580.95.05",
            "source": "ubuntu",
            "conflicts": ["nvidia-open-*", "nvidia-utils-*"],
            "closure": ["nvidia-utils-580-server=580.95.05-0ubuntu0.22.04.1"],
        },
        "driver_settled": True,
        "packages": PACKAGES,
        "geometry_declared": True,
        "settings": [],
        "node_labels": {},
    }
    return {**state, **changes}


def test_good_node_has_no_finding() -> None:
    assert findings("a", observed(), TODAY) == []


def test_node_that_tells_little_has_no_finding() -> None:
    """Before the driver, and of older facts: what is not known is no finding."""
    bare = {"index": None, "pci_address": A, "numa_node": 0, "lost": None, "health": {"xid_since_boot": None}, "nvlinks": None}
    state = observed(gpu_info={"gpus": [bare], "driver": {"state": "absent", "loaded_version": None}}, checks={})
    assert findings("a", state, TODAY) == []


ERRORS = [
    ({"system": "centos-7"}, "operating system", "centos-7 is not supported"),
    ({"python": {"version": {"major": 3, "minor": 8}}}, "python", "3.8 is too old"),
    ({"checks_message": "No space left."}, "node", "No space left"),
    (info(secure_boot={"enabled": True, "signing_key_enrolled": None}), "secure boot", "no enrolled key"),
    ({"gpu_info": None, "gpu_message": "The driver hangs."}, "driver answers", "The driver hangs."),
    (info(state="hung", message="It hangs."), "driver answers", "It hangs."),
    (gpu(lost=True), "driver answers", f"cannot reach GPU {A}"),
    (driver_owner(operator_driver=["/run/nvidia/nvidia-driver.pid"]), "driver owner", "driver container"),
    (driver_owner(runfile=["/usr/bin/nvidia-uninstall"]), "driver owner", "outside of packages"),
    (
        driver_owner(packages=["nvidia-utils-580-server", "nvidia-open-580"]),
        "driver owner",
        "than ubuntu are installed: nvidia-open-580.",
    ),
    (geometry_owner(mig_manager={"installed": True, "enabled": True, "active": False}), "geometry owner", "nvidia-mig-manager is enabled"),
    ({"node_labels": {"nvidia.com/mig.config": "all-1g.10gb"}}, "geometry owner", "mig.config=all-1g.10gb"),
    (health(remapped_rows_failed=True), "gpu memory", f"memory of GPU {A} could not be remapped"),
    ({"packages_message": "The driver branch '9' is not known."}, "packages", "branch '9'"),
    ({"packages": {**PACKAGES, "problems": ["Version '580.1' for 'x' was not found."]}}, "packages", "580.95.05 cannot be installed"),
    (
        checks(space=[{"path": "/opt", "needed_mib": 900, "free_mib": 12}]),
        "disk space",
        "12 MiB free and 900 MiB are needed",
    ),
    ({"geometry_message": f"GPU {A} has no profile 9g.90gb."}, "geometry", "9g.90gb"),
]
WARNINGS = [
    (info(kernels=[KERNEL, {"release": "5.15.0-99-generic", "running": False}]), "", ""),
    (info(kernels=[KERNEL, {"release": "5.15.0-105-generic", "running": False}]), "kernel", "will boot 5.15.0-105-generic next"),
    (checks(reboot={"required": True, "packages": ["libc6"]}), "kernel", "asks for a reboot because of libc6"),
    (info(secure_boot={"enabled": True, "signing_key_enrolled": True}), "", ""),
    (checks(clock={"synchronised": False, "services": [], "skew_s": 0.4}), "clock", "no time service runs"),
    (checks(clock={"synchronised": False, "services": ["chrony"], "skew_s": 0.0}), "clock", "chrony runs, but has no time"),
    (checks(clock={"synchronised": True, "services": ["chrony"], "skew_s": -7.5}), "clock", "7.5 s behind the controller's"),
    (checks(clock={"synchronised": None, "services": [], "skew_s": 0.0}), "", ""),
    (checks(iommu={"arguments": ["intel_iommu=on"], "gpus": [{**IOMMU_GPU, "iommu_type": "DMA-FQ"}]}), "iommu", "intel_iommu=on"),
    (checks(iommu={"arguments": [], "gpus": [{**IOMMU_GPU, "iommu_type": "identity"}]}), "", ""),
    (checks(iommu={"arguments": [], "gpus": [{**IOMMU_GPU, "redirecting_bridges": ["0000:05:04.0"]}]}), "acs", "0000:05:04.0"),
    (
        checks(
            iommu={
                "arguments": [],
                "gpus": [{**IOMMU_GPU, "kernel_driver": "vfio-pci", "iommu_type": "DMA", "redirecting_bridges": ["0000:05:04.0"]}],
            }
        ),
        "",
        "",
    ),
    ({**info(state="mismatch", message="So it is."), "driver_settled": False}, "driver answers", "So it is."),
    (
        {**info(installed_version="580.173.02"), "driver_settled": False},
        "driver answers",
        "580.95.05 is loaded and 580.173.02 is installed",
    ),
    (info(state="absent"), "", ""),
    ({"driver": {"version": "535.183.06", "source": "ubuntu"}}, "driver branch", "R535 had its end of life in 2026-06"),
    ({"driver": {"version": "595.45.04", "source": "ubuntu"}}, "driver branch", "R595 has its end of life in 2027-03"),
    ({"driver": {"version": "570.1.1", "source": "ubuntu"}}, "", ""),
    (driver_owner(packages=[]), "driver owner", "no package of a driver is installed"),
    (
        {**geometry_owner(mig_manager={"installed": True, "enabled": True, "active": True}), "geometry_declared": False},
        "geometry owner",
        "is enabled",
    ),
    (geometry_owner(files=["/etc/nvidia-mig-manager"]), "geometry owner", "/etc/nvidia-mig-manager), but not enabled"),
    (geometry_owner(pods=["nvidia-mig-manager-x7"]), "geometry owner", "nvidia-mig-manager-x7"),
    (health(remapped_rows_pending=True), "gpu memory", "wait for a reset"),
    (health(retired_pages_pending=True), "gpu memory", "wait for a reboot"),
    (health(retired_pages_double_bit=3, retired_pages_single_bit=56), "", ""),
    (health(retired_pages_double_bit=4, retired_pages_single_bit=56), "gpu memory", "retired 60 pages"),
    (health(ecc_uncorrected=1), "gpu memory", "uncorrectable ECC errors"),
    (health(xid_since_boot=[{"xid": 79, "count": 1}, {"xid": 13, "count": 9}]), "xid", "Xid 79, the GPU fell off the bus"),
    (health(xid_since_boot=[{"xid": 13, "count": 9}, {"xid": 63, "count": 1}]), "", ""),
    (health(throttle_reasons=["gpu_idle", "sw_power_cap"]), "", ""),
    (health(throttle_reasons=["hw_slowdown", "hw_thermal_slowdown"]), "gpu clocks", f"GPU {A} is slowed down by heat"),
    (gpu(settings={"power_limit_w": 300.0, "power_limit_default_w": 400.0}), "gpu power", "below its default"),
    ({**gpu(settings={"power_limit_w": 300.0, "power_limit_default_w": 400.0}), "settings": [{"power_limit_w": 300}]}, "", ""),
    (health(pcie_width_current=8, pcie_width_max=16), "pcie", "fewer PCIe lanes"),
    (gpu(nvlinks=[{"link": 0, "active": True, "errors": 0}, {"link": 3, "active": False, "errors": 0}]), "nvlink", f"NVLink 3 of GPU {A}"),
    (gpu(nvlinks=[{"link": 3, "active": False, "errors": None}], mig={"mode_current": "enabled"}), "", ""),
    (gpu(nvlinks=[{"link": 0, "active": True, "errors": 4}]), "nvlink", "had 4 errors"),
    (gpu(numa_node=-1), "numa", "that of the bridge above it"),
    (gpu(numa_node=-1, numa_node_effective=None), "numa", "nothing above it does"),
    (gpu(errors={"nvmlDeviceGetSerial": "UNKNOWN"}), "gpu", "nvmlDeviceGetSerial UNKNOWN"),
    ({"packages": {**PACKAGES, "remove": ["old"]}}, "packages", "apt will remove old"),
]


@pytest.mark.parametrize(("changes", "check", "reason"), ERRORS)
def test_each_error_is_named(changes: dict[str, Any], check: str, reason: str) -> None:
    (found,) = findings("a", observed(**changes), TODAY)
    assert (found["node"], found["severity"], found["check"]) == ("a", "error", check)
    assert reason in found["reason"] and found["remedy"].endswith(".")


@pytest.mark.parametrize(("changes", "check", "reason"), WARNINGS)
def test_each_warning_is_named(changes: dict[str, Any], check: str, reason: str) -> None:
    found = findings("a", observed(**changes), TODAY)
    assert [(finding["severity"], finding["check"]) for finding in found] == ([("warning", check)] if check else [])
    assert all(reason in finding["reason"] and finding["remedy"].endswith(".") for finding in found)


@pytest.mark.parametrize(("changes", "check", "reason"), ERRORS)
@pytest.mark.parametrize("state", ["maintenance", "absent"])
def test_errors_of_idle_nodes_are_warnings(changes: dict[str, Any], check: str, reason: str, state: str) -> None:
    found = findings("a", observed(node_state=state, **changes), TODAY)
    assert [(finding["severity"], finding["check"]) for finding in found] == [("warning", check)]


@pytest.mark.parametrize(("state", "severities"), [("active", ["warning"]), ("maintenance", ["warning"]), ("absent", [])])
def test_silent_node_is_left_alone(state: str, severities: list[str]) -> None:
    found = findings("a", {"unreachable": "Task failed: Connection refused", "node_state": state}, TODAY)
    assert [finding["severity"] for finding in found] == severities
    assert all(finding["reason"] == "Connection refused. It is left alone, as in maintenance." for finding in found)


def test_numa_node_is_not_missed_where_there_is_one() -> None:
    state = gpu(numa_node=-1)
    state["gpu_info"]["numa_nodes"] = [{"id": 0}]
    assert findings("a", observed(**state), TODAY) == []


def test_gpus_with_the_same_fault_are_one_finding() -> None:
    both = [{**one, "health": {"remapped_rows_pending": True, "xid_since_boot": [{"xid": 95, "count": 2}]}} for one in GPUS]
    found = findings("a", observed(**info(both)), TODAY)
    assert [finding["check"] for finding in found] == ["gpu memory", "xid"]
    assert f"{A}, {B}" in found[0]["reason"] and f"{A} (2), {B} (2)" in found[1]["reason"]


def test_errors_come_before_warnings() -> None:
    state = observed(system="centos-7", packages={**PACKAGES, "remove": ["old"]}, **checks(reboot={"required": True, "packages": []}))
    assert [finding["severity"] for finding in findings("a", state, TODAY)] == ["error", "warning", "warning"]


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


def node(name: str, **facts: Any) -> dict[str, Any]:
    return {"node": name, "state": "active", "reached": True, "driver_version": "580.95.05", **facts}


@pytest.mark.parametrize(
    ("nodes", "severities", "reason"),
    [
        ([], [], ""),
        ([node("a"), node("v", reached=False)], [], ""),
        ([node("a", reached=False), node("v", reached=False)], ["error"], "None of the nodes answers: a, v."),
        ([node("a", reached=False), node("v", state="absent", reached=False)], ["error"], "answers: a."),
        ([node("a", state="absent", reached=False)], [], ""),
        ([node("a", driver_version="595.45.04"), node("v")], ["warning"], "R580 on v; R595 on a"),
        ([node("a", driver_version="595.45.04", state="maintenance"), node("v")], [], ""),
        ([node("a", driver_version="580.173.02"), node("v")], [], ""),
    ],
)
def test_nodes_are_judged_together(nodes: list[dict[str, Any]], severities: list[str], reason: str) -> None:
    found = cluster_findings(nodes)
    assert [finding["severity"] for finding in found] == severities
    assert all(finding["node"] == "(cluster)" and reason in finding["reason"] for finding in found)
