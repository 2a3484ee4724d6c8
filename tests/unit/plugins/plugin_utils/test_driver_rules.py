# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import datetime
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils._driver_rules import findings

TODAY = datetime.date(2026, 12, 1)
A100, V100, UNKNOWN = "0x20b2", "0x1db6", "0xffff"


def node(*devices: str, capability: str | None = None, secure_boot: dict[str, Any] | None = None) -> dict[str, Any]:
    gpus = [
        {"pci_address": f"0000:{number:02x}:00.0", "pci_device_id": device, "compute_capability": capability}
        for number, device in enumerate(devices, 7)
    ]
    return {"gpus": gpus, "driver": {"secure_boot": secure_boot or {"enabled": False, "signing_key_enrolled": None}}}


@pytest.mark.parametrize(
    ("devices", "version", "flavour", "word"),
    [
        ([V100], "580.95.05", "open", "does not drive a V100"),
        ([A100, V100], "580.95.05", "open", "It concerns 0000:08:00.0."),
        ([V100], "595.1", "proprietary", "580 is the last one"),
        ([V100], "580.95.05", "proprietary", ""),
        ([A100], "595.1", "open", ""),
        ([UNKNOWN], "595.1", "open", ""),
    ],
)
def test_the_bus_tells_the_generation_before_a_driver_is_there(devices: list[str], version: str, flavour: str, word: str) -> None:
    errors = findings(node(*devices), version, "", flavour, TODAY)["errors"]
    assert len(errors) == bool(word)
    assert word in "".join(errors)


def test_nvml_knows_better_than_the_bus() -> None:
    assert findings(node(UNKNOWN, capability="7.0"), "580.95.05", "", "open", TODAY)["errors"]


def test_the_version_must_be_of_the_declared_branch() -> None:
    assert "not of the branch 535" in findings(node(A100), "580.95.05", "535", "open", TODAY)["errors"][0]
    assert not findings(node(A100), "580.95.05", "580", "open", TODAY)["errors"]


@pytest.mark.parametrize(
    ("enabled", "enrolled", "refused"), [(False, None, False), (True, None, True), (True, False, True), (True, True, False)]
)
def test_secure_boot_needs_an_enrolled_key(enabled: bool, enrolled: bool | None, refused: bool) -> None:
    found = findings(node(A100, secure_boot={"enabled": enabled, "signing_key_enrolled": enrolled}), "580.95.05", "", "open", TODAY)
    assert bool(found["errors"]) == refused


def test_the_end_of_a_branch_is_a_warning() -> None:
    assert "R535 had its end of life in 2026-06" in findings(node(A100), "535.309.01", "", "open", TODAY)["warnings"][0]
    assert not findings(node(A100), "580.95.05", "", "open", TODAY)["warnings"]
    assert not findings(node(A100), "535.309.01", "", "open", datetime.date(2026, 6, 30))["warnings"]
