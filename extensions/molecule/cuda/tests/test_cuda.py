# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from testinfra.host import Host

testinfra_hosts = ["ansible://gpu_nodes?sudo=true"]
PACKAGES = {
    "cuda-toolkit-12-2": "12.2.2-1",
    "cuda-nvcc-12-2": "12.2.140-1",
    "libnccl2": "2.18.5-1+cuda12.2",
    "libnccl-dev": "2.18.5-1+cuda12.2",
}


@pytest.mark.parametrize("name", PACKAGES)
def test_package_has_its_version_and_is_held(host: Host, name: str) -> None:
    assert host.package(name).version == PACKAGES[name]
    assert name in host.check_output("apt-mark showhold").splitlines()


def test_nothing_moves_on_an_upgrade(host: Host) -> None:
    host.check_output("apt-get -q update")
    assert "0 upgraded, 0 newly installed" in host.check_output("apt-get --simulate dist-upgrade")


def test_no_driver_came_along(host: Host) -> None:
    shown = host.check_output("dpkg-query -W -f '${Package} ${Status}\\n'")
    installed = {line.split()[0] for line in shown.splitlines() if line.endswith(" installed")}
    assert not installed & {"cuda", "cuda-12-2", "cuda-runtime-12-2", "cuda-drivers"}
    assert host.file("/sys/module/nvidia/version").content_string.strip() == "580.95.05"


def test_every_way_leads_to_the_default_toolkit(host: Host) -> None:
    assert host.check_output("readlink -f /usr/local/cuda") == "/usr/local/cuda-12.2"
    assert "release 12.2" in host.check_output("bash --login -c 'nvcc --version'")
    assert "libcudart.so.12 (libc6,x86-64) => /usr/local/cuda-12.2/" in host.check_output("ldconfig -p")
    assert "Status: manual" in host.check_output("update-alternatives --query cuda")
