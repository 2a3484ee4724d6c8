# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import layout
from testinfra.host import Host

testinfra_hosts = ["ansible://a100?sudo=true"]


def test_no_instance_is_left(host: Host) -> None:
    assert layout.instances(host) == {}
    assert layout.devices(host) == 0


def test_mode_is_off_everywhere(host: Host) -> None:
    assert set(layout.modes(host)) == {"Disabled"}


def test_map_names_whole_gpus_only(host: Host) -> None:
    devices = layout.mapped(host)
    assert set(devices.values()) == layout.uuids(host)
    assert not any("@" in key for key in devices)
