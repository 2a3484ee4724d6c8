# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from driver_state import require_driver
from testinfra.host import Host

testinfra_hosts = ["ansible://gpu_nodes?sudo=true"]


def test_the_older_driver_is_installed_held_and_loaded(host: Host) -> None:
    require_driver(host, "580.95.05")


def test_the_newer_one_does_not_come_back(host: Host) -> None:
    assert "0 upgraded" in host.check_output("apt-get --simulate dist-upgrade")
