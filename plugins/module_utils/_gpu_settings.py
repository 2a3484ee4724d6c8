# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be set on a GPU, as it is. PRIVATE: internal to the collection, may change at any time.

NVML tells what clocks are, not to what they are locked: there is no getter.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._nvml import Reader

COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
KEYS = (
    "persistence_mode", "compute_mode", "ecc_mode_current", "ecc_mode_pending",
    "power_limit_w", "power_limit_default_w", "power_limit_min_w",
    "power_limit_max_w", "graphics_clock_mhz", "graphics_clock_max_mhz", "memory_clock_mhz", "memory_clock_max_mhz",
)  # fmt: skip


def blank() -> dict[str, Any]:
    return dict.fromkeys(KEYS)


def read(reader: Reader) -> dict[str, Any]:
    nvml = reader.nvml
    ecc = reader.get("nvmlDeviceGetEccMode") or (None, None)
    constraints = reader.get("nvmlDeviceGetPowerManagementLimitConstraints") or (None, None)
    return {
        "persistence_mode": _switch(reader.get("nvmlDeviceGetPersistenceMode")),
        "compute_mode": COMPUTE_MODES.get(reader.get("nvmlDeviceGetComputeMode")),
        "ecc_mode_current": _switch(ecc[0]),
        "ecc_mode_pending": _switch(ecc[1]),
        "power_limit_w": _watts(reader.get("nvmlDeviceGetPowerManagementLimit")),
        "power_limit_default_w": _watts(reader.get("nvmlDeviceGetPowerManagementDefaultLimit")),
        "power_limit_min_w": _watts(constraints[0]),
        "power_limit_max_w": _watts(constraints[1]),
        "graphics_clock_mhz": reader.get("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_GRAPHICS),
        "graphics_clock_max_mhz": reader.get("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_GRAPHICS),
        "memory_clock_mhz": reader.get("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        "memory_clock_max_mhz": reader.get("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_MEM),
    }


def _switch(state: int | None) -> bool | None:
    return None if state is None else bool(state)


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
