# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from driver_state import RECORD, record, require_driver
from testinfra.host import Host

OLD, NEW = "580.95.05", "580.173.02"
testinfra_hosts = ["ansible://gpu_nodes?sudo=true"]


def test_the_newer_driver_is_installed_held_and_loaded(host: Host) -> None:
    require_driver(host, NEW)


def test_the_way_back_stays_on_the_node(host: Host) -> None:
    previous = record(host)["previous"]
    assert all(version.startswith(OLD) for version in previous["installed"].values())
    folder = RECORD.replace("record.json", "archives")
    assert all(host.file(f"{folder}/{archive}").exists for archive in previous["archives"].values())
    assert previous["archives"].keys() == previous["installed"].keys()
