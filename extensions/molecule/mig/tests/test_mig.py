# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

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
