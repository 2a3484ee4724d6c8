# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of gpu_settings is pure: data in, steps or a refusal out."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _settings_plan, _settings_select
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput
from ansible_collections.heterogpu.inference.plugins.module_utils._settings_state import ORDER, Gpu

A100 = Gpu(
    0, "0000:07:00.0", "NVIDIA A100-SXM4-80GB", "GPU-a", persistence=True, compute_mode="default", ecc=True, ecc_pending=True,
    power_limit_mw=400000, power_default_mw=400000, power_range_mw=(100000, 400000), graphics_max_mhz=1410, memory_mhz=(1593,),
)  # fmt: skip
VALUES: dict[str, tuple[Any, ...]] = {
    "persistence": (None, True),
    "compute_mode": (None, "default", "prohibited"),
    "ecc": (None, True, False),
    "power_limit_w": (None, 400, "default", 250, "150.5"),
    "graphics_clocks_mhz": (None, "unlocked", 1410, [210, 1410]),
    "memory_clocks_mhz": (None, "unlocked", 1593),
}


def plans(gpu: Gpu, *settings: dict[str, Any]) -> list[_settings_plan.GpuPlan]:
    return _settings_plan.make([gpu], _settings_select.declared(list(settings), [gpu]))


@pytest.mark.parametrize("persistence", [True, False])
def test_every_combination_is_reached_by_its_steps_and_then_has_none(persistence: bool) -> None:
    gpu = replace(A100, persistence=persistence)
    for values in product(*VALUES.values()):
        entry = {"gpus": "all", **{name: value for name, value in zip(VALUES, values) if value is not None}}
        if len(entry) == 1:
            continue
        try:
            [plan] = plans(gpu, entry)
        except InvalidInput as error:
            assert not persistence and values[0] is None and "persistence: true" in str(error)
            continue
        assert plan.changes == [name for name in ORDER if name in plan.changes]
        assert set(plan.changes) <= set(entry)
        reached = plan.after()
        [again] = plans(reached, entry)
        assert again.steps == []
        [exact] = plans(gpu, plan.exact())
        assert exact.steps == plan.steps and exact.exact() == plan.exact()


@pytest.mark.parametrize("name", ["persistence", "compute_mode", "ecc", "power_limit_w"])
def test_what_nvml_does_not_tell_cannot_be_declared(name: str) -> None:
    missing: dict[str, dict[str, Any]] = {
        "ecc": {"ecc": None, "ecc_pending": None},
        "power_limit_w": {"power_limit_mw": None, "power_default_mw": None},
    }
    absent: dict[str, Any] = missing.get(name, {name: None})
    gpu = replace(A100, **absent)
    for value in [value for value in VALUES[name] if value is not None]:
        with pytest.raises(InvalidInput, match=rf"GPU 0 .* NVML does not support it there; remove {name}"):
            plans(gpu, {"gpus": 0, name: value})


def test_the_difference_shows_unknown_clocks() -> None:
    text = _settings_plan.diff(plans(A100, {"gpus": 0, "graphics_clocks_mhz": 1410, "power_limit_w": 300}))
    assert "graphics_clocks_mhz: unknown\n  power_limit_w: 400\n" in text["before"]
    assert "graphics_clocks_mhz: [1410, 1410]\n  power_limit_w: 300\n" in text["after"]
