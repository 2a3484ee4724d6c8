# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from driver_state import built, require_driver
from testinfra.host import Host

VERSION = "580.95.05"
testinfra_hosts = ["ansible://gpu_nodes?sudo=true"]


def test_every_kernel_that_may_boot_has_the_module(host: Host) -> None:
    assert built(host)["9.9.9-test"] == VERSION
    require_driver(host, VERSION)
