# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

from testinfra.host import Host

testinfra_hosts = ["ansible://gpu_nodes?sudo=true"]


def test_both_toolkits_are_there(host: Host) -> None:
    for version in ("12.2", "12.6"):
        assert f"release {version}" in host.check_output(f"/usr/local/cuda-{version}/bin/nvcc --version")


def test_the_declared_one_is_the_default_for_every_group(host: Host) -> None:
    for name in ("cuda", "cuda-12"):
        assert host.check_output(f"readlink -f /usr/local/{name}") == "/usr/local/cuda-12.6"
    assert "libcudart.so.12 (libc6,x86-64) => /usr/local/cuda-12.6/" in host.check_output("ldconfig -p")


def test_nccl_follows_the_default(host: Host) -> None:
    assert host.package("libnccl2").version == "2.23.4-1+cuda12.6"


def test_the_former_default_is_recorded(host: Host) -> None:
    record = json.loads(host.file("/var/lib/heterogpu/cuda_toolkit.json").content_string)
    assert (record["current"]["version"], record["previous"]["version"]) == ("12.6", "12.2")


def test_shared_packages_follow_the_newest_toolkit(host: Host) -> None:
    assert host.package("cuda-toolkit-config-common").version == "12.6.77-1"
    assert "0 upgraded, 0 newly installed" in host.check_output("apt-get --simulate dist-upgrade")
