# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

from testinfra.host import Host

testinfra_hosts = ["ansible://gpu_nodes?sudo=true"]


def query(host: Host, field: str) -> list[str]:
    return host.check_output(f"nvidia-smi --query-gpu={field} --format=csv,noheader,nounits").splitlines()


def test_power_limit_is_that_of_the_selection(host: Host) -> None:
    limits = [float(value) for value in query(host, "power.limit")]
    assert limits[:2] == [200.0, 200.0]
    assert 200.0 not in limits[2:]


def test_compute_mode_is_that_of_the_selection(host: Host) -> None:
    assert [number for number, mode in enumerate(query(host, "compute_mode")) if mode != "Default"] == [2]


def test_what_cannot_be_read_back_is_recorded(host: Host) -> None:
    record = json.loads(host.file("/run/heterogpu/locked-clocks.json").content_string)
    assert record["boot_id"] == host.file("/proc/sys/kernel/random/boot_id").content_string.strip()
    locked = [kinds["graphics_clocks_mhz"] for kinds in record["gpus"].values() if kinds.get("graphics_clocks_mhz")]
    assert locked == [[900, 1200]] * 2


def test_settings_come_back_at_boot(host: Host) -> None:
    declared = json.loads(host.file("/etc/heterogpu/boot.json").content_string)["settings"]
    assert sorted(one.get("power_limit_w", 0) for one in declared) == [0, 200, 200]
    assert host.service("heterogpu-gpu").is_enabled
