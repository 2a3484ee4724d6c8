# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_checks reads of a machine that was laid down as files."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _checks_clock, _checks_iommu, _checks_owners, _node_checks
from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs
from ansible_collections.heterogpu.inference.plugins.plugin_utils._clock import skew
from recorded import RecordedTree

GPU = "0000:07:00.0"
ROOT_PORT, UPSTREAM, DOWNSTREAM = "0000:00:01.0", "0000:05:00.0", "0000:06:04.0"


@pytest.fixture
def tree(tmp_path: Path) -> RecordedTree:
    return RecordedTree(tmp_path)


@pytest.fixture
def files(tree: RecordedTree) -> Sysfs:
    return Sysfs(str(tree.root))


def configuration(*capabilities: tuple[int, int, int], end: int = 0) -> bytes:
    """Extended capabilities as (number, place, control of ACS); the last one points to `end`."""
    data = bytearray(4096)
    places = [place for _number, place, _control in capabilities]
    for (number, place, control), following in zip(capabilities, [*places[1:], end]):
        data[place : place + 4] = (number | 1 << 16 | following << 20).to_bytes(4, "little")
        data[place + 6 : place + 8] = control.to_bytes(2, "little")
    return bytes(data)


def test_nothing_there(tree: RecordedTree) -> None:
    found = _node_checks.read(str(tree.root))
    assert found["iommu"] == {"arguments": [], "gpus": []} and found["reboot"] == {"required": False, "packages": []}
    assert found["owners"]["driver"] == {"packages": [], "operator": [], "operator_driver": [], "runfile": []}
    assert found["owners"]["geometry"]["mig_manager"] == {"installed": False, "enabled": False, "active": False}
    assert found["owners"]["kubelet"] is False


@pytest.mark.parametrize(("status", "synchronised"), [(0x2001, True), (0x40, False), (0x2041, False), (None, None)])
def test_the_kernel_knows_whether_the_clock_is_right(files: Sysfs, status: int | None, synchronised: bool | None) -> None:
    assert _checks_clock.read(files, lambda: status)["synchronised"] is synchronised


def test_the_real_kernel_answers(files: Sysfs) -> None:
    assert _checks_clock.read(files)["synchronised"] in (True, False)


def test_services_that_run(tree: RecordedTree, files: Sysfs) -> None:
    # A link that leads nowhere: its target is the invocation's number.
    for name in ("chrony", "ssh"):
        tree.link(f"run/systemd/units/invocation:{name}.service", "0123abcd")
    assert _checks_clock.read(files)["services"] == ["chrony"]


@pytest.mark.parametrize(
    ("there", "difference"),
    [(100.5, 0.0), (100.0, 0.0), (101.0, 0.0), (97.5, -2.5), (160.0, 59.0)],
)
def test_skew_is_what_the_reading_cannot_explain(there: float, difference: float) -> None:
    assert skew(100.0, there, 101.0) == difference


def test_iommu_of_each_gpu(tree: RecordedTree, files: Sysfs) -> None:
    tree.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 password=secret intel_iommu=on iommu=pt quiet")
    tree.pci("pci0000:00", ROOT_PORT, GPU)
    tree.pci("pci0000:00", "0000:00:02.0", "0000:08:00.0", driver="vfio-pci")
    tree.file("sys/kernel/iommu_groups/7/type", "identity")
    tree.link(f"sys/bus/pci/devices/{GPU}/iommu_group", "sys/kernel/iommu_groups/7")
    found = _checks_iommu.read(files)
    assert found["arguments"] == ["intel_iommu=on", "iommu=pt"]
    assert [(gpu["kernel_driver"], gpu["iommu_type"]) for gpu in found["gpus"]] == [("nvidia", "identity"), ("vfio-pci", None)]


@pytest.mark.parametrize(
    ("bridge", "config", "redirecting"),
    [
        (DOWNSTREAM, configuration((0x01, 0x100, 0), (0x0D, 0x148, 0x1D)), [DOWNSTREAM]),
        (DOWNSTREAM, configuration((0x0D, 0x400, 0x08), (0x01, 0x100, 0)), []),  # the list begins at 0x100
        (DOWNSTREAM, configuration((0x01, 0x100, 0), (0x0D, 0x148, 0x01)), []),
        (DOWNSTREAM, configuration((0x01, 0x100, 0), (0x0B, 0x148, 0x1D), end=0x100), []),
        (DOWNSTREAM, configuration((0x0D, 0x100, 0x04))[:64], []),
        (ROOT_PORT, configuration((0x0D, 0x100, 0x1D)), []),
    ],
)
def test_access_control_of_switches(tree: RecordedTree, files: Sysfs, bridge: str, config: bytes, redirecting: list[str]) -> None:
    tree.pci("pci0000:00", ROOT_PORT, UPSTREAM, DOWNSTREAM, GPU)
    (tree.root / f"sys/bus/pci/devices/{bridge}/config").write_bytes(config)
    assert [gpu["redirecting_bridges"] for gpu in _checks_iommu.read(files)["gpus"]] == [redirecting]


def package(name: str, status: str = "install ok installed") -> str:
    return f"Package: {name}\nStatus: {status}\nPriority: optional\nDescription: x\n Status: install ok installed\n"


def test_driver_packages_that_are_installed(tree: RecordedTree, files: Sysfs) -> None:
    stanzas = [
        package("nvidia-utils-580-server", "hold ok installed"),
        package("libnvidia-compute-580-server"),
        package("cuda-drivers"),
        package("nvidia-utils-535-server", "deinstall ok config-files"),
        package("nvtop"),
        package("cuda-toolkit-12-2"),
    ]
    tree.file("var/lib/dpkg/status", "\n".join(stanzas))
    assert _checks_owners.read(files)["driver"]["packages"] == ["cuda-drivers", "libnvidia-compute-580-server", "nvidia-utils-580-server"]


def test_driver_of_the_operator(tree: RecordedTree, files: Sysfs) -> None:
    # The operator on a node that has its own driver.
    tree.file("run/nvidia/validations/driver-ready", "IS_HOST_DRIVER=true")
    tree.file("run/nvidia/driver/usr/bin/nvidia-smi")
    owners = _checks_owners.read(files)["driver"]
    assert owners["operator"] == ["/run/nvidia/validations/driver-ready"] and owners["operator_driver"] == []
    tree.file("run/nvidia/nvidia-driver.pid", "4711")
    tree.file("var/log/pods/gpu-operator_nvidia-driver-daemonset-5x2k9_0c1d/nvidia-driver-ctr/0.log")
    assert _checks_owners.read(files)["driver"]["operator_driver"] == ["/run/nvidia/nvidia-driver.pid", "nvidia-driver-daemonset-5x2k9"]


def test_driver_of_the_installer(tree: RecordedTree, files: Sysfs) -> None:
    tree.file("usr/bin/nvidia-uninstall")
    assert _checks_owners.read(files)["driver"]["runfile"] == ["/usr/bin/nvidia-uninstall"]


def test_owners_of_the_geometry(tree: RecordedTree, files: Sysfs) -> None:
    unit = "nvidia-mig-manager.service"
    tree.file("etc/nvidia-mig-manager/config.yaml")
    tree.file("var/lib/kubelet/config.yaml")
    tree.file("var/log/pods/gpu-operator_nvidia-mig-manager-9zq_77/nvidia-mig-manager/0.log")
    tree.file(f"usr/lib/systemd/system/{unit}", "[Install]\nWantedBy=multi-user.target")
    owners = _checks_owners.read(files)
    assert owners["geometry"] == {
        "mig_manager": {"installed": True, "enabled": False, "active": False},
        "files": ["/etc/nvidia-mig-manager"],
        "pods": ["nvidia-mig-manager-9zq"],
    }
    assert owners["kubelet"] is True
    tree.link(f"etc/systemd/system/multi-user.target.wants/{unit}", f"usr/lib/systemd/system/{unit}")
    assert _checks_owners.read(files)["geometry"]["mig_manager"]["enabled"] is True


def test_reboot_that_the_distribution_asks_for(tree: RecordedTree) -> None:
    tree.file("run/reboot-required", "*** System restart required ***")
    tree.file("run/reboot-required.pkgs", "linux-image-5.15.0-105-generic\nlinux-base\nlinux-base")
    assert _node_checks.read(str(tree.root))["reboot"] == {"required": True, "packages": ["linux-base", "linux-image-5.15.0-105-generic"]}
