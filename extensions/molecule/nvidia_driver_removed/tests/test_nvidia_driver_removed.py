# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from driver_state import held, loaded, versions
from testinfra.host import Host

testinfra_hosts = ["ansible://gpu_nodes?sudo=true"]


def test_no_package_and_no_hold_is_left(host: Host) -> None:
    assert not versions(host)
    assert not [name for name in held(host) if "nvidia" in name and "container" not in name]


def test_no_file_of_the_role_is_left(host: Host) -> None:
    names = "-name 'heterogpu-nvidia-*' -o -name 'heterogpu-nouveau*' -o -path '*/packages/nvidia-driver*'"
    assert not host.check_output(f"find /etc /var/lib/heterogpu/packages {names}")


def test_the_module_is_unloaded(host: Host) -> None:
    assert loaded(host) is None
