# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import layout
from testinfra.host import Host

testinfra_hosts = ["ansible://a100?sudo=true"]


def test_declared_geometry_stands_at_its_places(host: Host) -> None:
    assert layout.instances(host) == {
        0: ["3g.40gb@4", "4g.40gb@0"],
        1: [f"1g.10gb@{start}" for start in range(7)],
    }


def test_every_instance_is_usable(host: Host) -> None:
    assert layout.devices(host) == 9


def test_gpus_that_no_selection_names_stay_as_they_were(host: Host) -> None:
    modes = layout.modes(host)
    assert modes[:2] == ["Enabled", "Enabled"]
    assert set(modes[2:]) == {"Disabled"}


def test_persistenced_runs_again(host: Host) -> None:
    assert host.service("nvidia-persistenced").is_running


def test_map_names_every_device_and_nothing_else(host: Host) -> None:
    devices = layout.mapped(host)
    assert set(devices.values()) == layout.uuids(host)
    assert {key for key in devices if key.startswith("0000:07:00.0")} == {"0000:07:00.0/3g.40gb@4", "0000:07:00.0/4g.40gb@0"}


def test_unit_is_there_for_the_next_boot(host: Host) -> None:
    unit = host.service("heterogpu-gpu")
    assert unit.is_enabled
    assert unit.is_running, host.run("journalctl -u heterogpu-gpu").stdout
    declared = json.loads(host.file("/etc/heterogpu/boot.json").content_string)["geometry"]
    assert {one["gpus"]: sorted(one["profiles"]) for one in declared} == {
        "0000:07:00.0": ["3g.40gb@4", "4g.40gb@0"],
        "0000:0f:00.0": [f"1g.10gb@{start}" for start in range(7)],
    }


def test_program_runs_by_itself_and_changes_nothing(host: Host) -> None:
    log = "/var/lib/gpu-sandbox/mutations.jsonl"
    before = host.file(log).size
    host.check_output("systemctl restart heterogpu-gpu")
    assert host.file(log).size == before


def test_every_instance_has_its_device_files(host: Host) -> None:
    # Two for the first two instances, and for each of the seven: one of the GPU instance, one of its compute instance.
    assert len(host.file("/dev/nvidia-caps").listdir()) >= 2 + 2 * 9
