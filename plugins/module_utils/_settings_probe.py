# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the settings of every GPU, changes nothing. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _gpu_settings, _nvml, _settings_record
from ansible_collections.heterogpu.inference.plugins.module_utils._settings_state import Gpu


def read(nvml: Any) -> list[Gpu]:
    recorded = _settings_record.read()
    return _nvml.each_device(nvml, lambda index, device: _read_gpu(nvml, index, device, recorded))


def _read_gpu(nvml: Any, index: int, device: Any, recorded: dict[str, Any]) -> Gpu:
    def get(function: str, *arguments: Any) -> Any:
        return _nvml.try_get(nvml, function, device, *arguments)

    address = _nvml.pci_address(nvml, device)
    ecc = get("nvmlDeviceGetEccMode") or (None, None)
    mig = get("nvmlDeviceGetMigMode")
    limits = get("nvmlDeviceGetPowerManagementLimitConstraints")
    persistence = _switch(get("nvmlDeviceGetPersistenceMode"))
    return Gpu(
        index=index,
        pci_address=address,
        name=_nvml.text(nvml.nvmlDeviceGetName(device)),
        uuid=get("nvmlDeviceGetUUID"),
        mig=bool(mig and mig[0]),
        persistence=persistence,
        compute_mode=_gpu_settings.COMPUTE_MODES.get(get("nvmlDeviceGetComputeMode")),
        ecc=_switch(ecc[0]),
        ecc_pending=_switch(ecc[1]),
        power_limit_mw=get("nvmlDeviceGetPowerManagementLimit"),
        power_default_mw=get("nvmlDeviceGetPowerManagementDefaultLimit"),
        power_range_mw=(limits[0], limits[1]) if limits else None,
        graphics_max_mhz=get("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_GRAPHICS),
        memory_mhz=tuple(sorted(get("nvmlDeviceGetSupportedMemoryClocks") or ())),
        # Without persistence mode the driver forgets clocks as soon as nobody uses the GPU.
        locked={} if persistence is False else recorded.get(address, {}),
    )


def _switch(state: int | None) -> bool | None:
    return None if state is None else bool(state)
