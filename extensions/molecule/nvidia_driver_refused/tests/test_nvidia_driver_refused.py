# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from driver_state import require_driver
from testinfra.host import Host

testinfra_hosts = ["ansible://gpu_nodes?sudo=true"]


def test_what_was_there_is_untouched(host: Host) -> None:
    require_driver(host, "580.95.05")
