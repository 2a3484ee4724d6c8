# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's rules between toolkit, driver and GPUs, with the collection's own table."""

from __future__ import annotations

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_rules import Verdict, judge
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import Refused
from ansible_collections.heterogpu.inference.plugins.plugin_utils._cuda_rules import capabilities, rules

A100, V100 = "8.0", "7.0"


def verdict(release: str, driver: str, *gpus: str, compat: bool = False) -> Verdict:
    return judge(release, driver, gpus or (A100,), compat, rules())


@pytest.mark.parametrize(
    ("release", "driver", "level"),
    [
        ("12.2.2", "535.86.09", "full"),
        ("12.2.2", "535.54.03", "minor_version"),  # 12.2.1 and later need 535.86.09
        ("12.2.0", "535.54.03", "full"),
        ("12.6.3", "580.95.05", "full"),
        ("12.6.3", "535.309.01", "minor_version"),
        ("12.6.3", "525.60.13", "minor_version"),
        ("13.1.1", "580.95.05", "minor_version"),
    ],
)
def test_level(release: str, driver: str, level: str) -> None:
    assert verdict(release, driver).level == level


@pytest.mark.parametrize(
    ("driver", "level"),
    [
        ("535.309.01", "forward"),
        ("470.57.02", "forward"),
        ("535.54.03", "minor_version"),
        ("545.29.06", "minor_version"),
        ("560.35.05", "full"),
    ],
)
def test_forward_compatibility_works_over_listed_branches_only(driver: str, level: str) -> None:
    assert verdict("12.6.3", driver, compat=True).level == level


def test_an_old_driver_is_refused_with_a_way_out() -> None:
    with pytest.raises(
        Refused, match=r"CUDA 12\.2\.2 does not work with driver 470\.82\.01, it needs 535\.86\.09 or later;.*cuda-compat-12-2"
    ):
        verdict("12.2.2", "470.82.01")
    with pytest.raises(Refused, match=r"CUDA 13\.0\.2 does not work with driver 535\.309\.01"):
        verdict("13.0.2", "535.309.01", compat=True)


def test_what_a_gpu_cannot_run_is_refused_whatever_the_driver() -> None:
    with pytest.raises(Refused, match=r"CUDA 13\.0 has no code for the GPUs of this node with compute capability 7\.0"):
        verdict("13.0.2", "580.95.05", A100, V100)


def test_notes_say_what_works_with_limits() -> None:
    assert "compute capability 7.0" in verdict("12.8.1", "580.95.05", V100).notes[0]
    assert "compiled at run time" in verdict("12.6.3", "535.309.01").notes[0]
    assert "not in the collection's table" in verdict("12.7.0", "580.95.05").notes[0]


def test_nothing_is_guessed_about_an_unknown_major_version() -> None:
    with pytest.raises(Refused, match=r"Nothing is known about CUDA 14\.0\.0"):
        verdict("14.0.0", "700.10.01")


def test_gpus_are_known_by_their_pci_ids() -> None:
    known = capabilities()
    assert (known["0x20b2"], known["0x1db6"], known["0x2330"]) == ("8.0", "7.0", "9.0")
