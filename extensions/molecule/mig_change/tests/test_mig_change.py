# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import layout
from testinfra.host import Host

testinfra_hosts = ["ansible://a100?sudo=true"]


def profiles(entries: list[str]) -> list[str]:
    return [entry.partition("@")[0] for entry in entries]


def test_new_geometry_stands(host: Host) -> None:
    instances = layout.instances(host)
    assert profiles(instances[0]) == ["1g.10gb", "2g.20gb", "3g.40gb"]
    assert sorted(profiles(instances[1])) == ["1g.10gb"] * 5 + ["2g.20gb"]
    assert layout.devices(host) == 9


def test_what_could_stay_has_stayed(host: Host) -> None:
    assert "3g.40gb@4" in layout.instances(host)[0]


def test_map_follows(host: Host) -> None:
    assert set(layout.mapped(host).values()) == layout.uuids(host)
