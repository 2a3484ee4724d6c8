# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One GPU's facts from NVML; what this GPU, driver or user has not is None. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _mig_holders, _mig_probe, _nvml, _pci
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError
from ansible_collections.heterogpu.inference.plugins.module_utils._nvml import try_get

MIB = 1024 * 1024
COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
ARCHITECTURES = {2: "kepler", 3: "maxwell", 4: "pascal", 5: "volta", 6: "turing", 7: "ampere", 8: "ada", 9: "hopper", 10: "blackwell"}
# nvmlClocksEventReason*: bits that lower the clocks.
REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
MAX_LINKS = 36


def read(nvml: Any, index: int, device: Any) -> dict[str, Any]:
    pci = nvml.nvmlDeviceGetPciInfo(device)
    capability = try_get(nvml, "nvmlDeviceGetCudaComputeCapability", device)
    memory = try_get(nvml, "nvmlDeviceGetMemoryInfo", device)
    bar1 = try_get(nvml, "nvmlDeviceGetBAR1MemoryInfo", device)
    return {
        "index": index,
        "uuid": try_get(nvml, "nvmlDeviceGetUUID", device),
        "name": try_get(nvml, "nvmlDeviceGetName", device),
        "pci_address": _pci.normalise(_nvml.text(pci.busId)),
        "pci_device_id": f"0x{pci.pciDeviceId >> 16:04x}",
        "lost": False,
        "serial": try_get(nvml, "nvmlDeviceGetSerial", device),
        "minor_number": try_get(nvml, "nvmlDeviceGetMinorNumber", device),
        "vbios_version": try_get(nvml, "nvmlDeviceGetVbiosVersion", device),
        "architecture": ARCHITECTURES.get(try_get(nvml, "nvmlDeviceGetArchitecture", device)),
        "compute_capability": f"{capability[0]}.{capability[1]}" if capability else None,
        "memory_mib": memory.total // MIB if memory else None,
        "memory_used_mib": memory.used // MIB if memory else None,
        "bar1_mib": bar1.bar1Total // MIB if bar1 else None,
        "utilization_percent": getattr(try_get(nvml, "nvmlDeviceGetUtilizationRates", device), "gpu", None),
        "mig": _mig(nvml, index, device),
        "nvlinks": _nvlinks(nvml, device),
        "settings": _settings(nvml, device),
        "health": _health(nvml, device),
        "processes": [
            {
                "pid": pid,
                "description": _mig_holders.command(pid),
                "gpu_instance_id": gi if gi >= 0 else None,
                "compute_instance_id": ci if ci >= 0 else None,
            }
            for pid, gi, ci in _mig_holders.listed(nvml, device)
        ],
    }


def _mig(nvml: Any, index: int, device: Any) -> dict[str, Any]:
    mode = try_get(nvml, "nvmlDeviceGetMigMode", device)
    if mode is None:
        return {"capable": False, "mode_current": None, "mode_pending": None, "instances": []}
    try:
        instances: list[dict[str, Any]] | None = _instances(_mig_probe.read_gpu(nvml, index, device, {}, {}))
    except GpuError:
        instances = None  # listing instances needs root
    states = ["enabled" if one else "disabled" for one in mode]
    return {"capable": True, "mode_current": states[0], "mode_pending": states[1], "instances": instances}


def _instances(gpu: Any) -> list[dict[str, Any]]:
    found = []
    for instance in sorted(gpu.instances, key=lambda one: one.slot.start):
        profile = gpu.offer.by_name[instance.slot.profile]
        computes = [
            {"compute_instance_id": one.compute_instance_id, "full": one.full, "start": one.start, "uuid": one.uuid}
            for one in instance.compute_instances
        ]
        found.append(
            {
                "profile": instance.slot.profile,
                "start": instance.slot.start,
                "size": profile.size,
                "slices": profile.slices,
                "memory_mib": profile.memory_mib,
                "gpu_instance_id": instance.gpu_instance_id,
                "compute_instances": computes,
                "uuid": computes[0]["uuid"] if instance.complete else None,
            }
        )
    return found


def _nvlinks(nvml: Any, device: Any) -> list[dict[str, Any]]:
    links = []
    for link in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", MAX_LINKS)):
        state = try_get(nvml, "nvmlDeviceGetNvLinkState", device, link)
        if state is None:
            break  # links are numbered without holes
        kind = try_get(nvml, "nvmlDeviceGetNvLinkRemoteDeviceType", device, link)
        remote = try_get(nvml, "nvmlDeviceGetNvLinkRemotePciInfo", device, link)
        links.append(
            {
                "link": link,
                "active": bool(state),
                "version": try_get(nvml, "nvmlDeviceGetNvLinkVersion", device, link),
                "remote_type": {0: "gpu", 1: "npu", 2: "switch"}.get(kind) if kind is not None else None,
                "remote_pci_address": _pci.normalise(_nvml.text(remote.busId)) if remote else None,
            }
        )
    return links


def _watts(milliwatts: Any) -> Any:
    return None if milliwatts is None else milliwatts / 1000


def _settings(nvml: Any, device: Any) -> dict[str, Any]:
    ecc = try_get(nvml, "nvmlDeviceGetEccMode", device) or (None, None)
    constraints = try_get(nvml, "nvmlDeviceGetPowerManagementLimitConstraints", device) or (None, None)
    persistence = try_get(nvml, "nvmlDeviceGetPersistenceMode", device)
    return {
        "persistence_mode": None if persistence is None else bool(persistence),
        "compute_mode": COMPUTE_MODES.get(try_get(nvml, "nvmlDeviceGetComputeMode", device)),
        "ecc_mode_current": None if ecc[0] is None else bool(ecc[0]),
        "ecc_mode_pending": None if ecc[1] is None else bool(ecc[1]),
        "power_limit_w": _watts(try_get(nvml, "nvmlDeviceGetPowerManagementLimit", device)),
        "power_limit_default_w": _watts(try_get(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", device)),
        "power_limit_min_w": _watts(constraints[0]),
        "power_limit_max_w": _watts(constraints[1]),
        "graphics_clock_mhz": try_get(nvml, "nvmlDeviceGetClockInfo", device, nvml.NVML_CLOCK_GRAPHICS),
        "graphics_clock_max_mhz": try_get(nvml, "nvmlDeviceGetMaxClockInfo", device, nvml.NVML_CLOCK_GRAPHICS),
        "memory_clock_mhz": try_get(nvml, "nvmlDeviceGetClockInfo", device, nvml.NVML_CLOCK_MEM),
        "memory_clock_max_mhz": try_get(nvml, "nvmlDeviceGetMaxClockInfo", device, nvml.NVML_CLOCK_MEM),
    }


def _health(nvml: Any, device: Any) -> dict[str, Any]:
    rows = try_get(nvml, "nvmlDeviceGetRemappedRows", device) or (None,) * 4
    retired = [
        try_get(nvml, "nvmlDeviceGetRetiredPages", device, cause)
        for cause in (nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS, nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)
    ]
    pending = try_get(nvml, "nvmlDeviceGetRetiredPagesPendingStatus", device)
    reasons = try_get(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", device)
    return {
        "remapped_rows_correctable": rows[0],
        "remapped_rows_uncorrectable": rows[1],
        "remapped_rows_pending": None if rows[2] is None else bool(rows[2]),
        "remapped_rows_failed": None if rows[3] is None else bool(rows[3]),
        "retired_pages_single_bit": None if retired[0] is None else len(retired[0]),
        "retired_pages_double_bit": None if retired[1] is None else len(retired[1]),
        "retired_pages_pending": None if pending is None else bool(pending),
        "ecc_uncorrected": try_get(
            nvml, "nvmlDeviceGetTotalEccErrors", device, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        ),
        "ecc_uncorrected_lifetime": try_get(
            nvml, "nvmlDeviceGetTotalEccErrors", device, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_AGGREGATE_ECC
        ),
        "throttle_reasons": None if reasons is None else [name for bit, name in REASONS.items() if reasons & bit],
        "pcie_generation_current": try_get(nvml, "nvmlDeviceGetCurrPcieLinkGeneration", device),
        "pcie_generation_max": try_get(nvml, "nvmlDeviceGetMaxPcieLinkGeneration", device),
        "pcie_width_current": try_get(nvml, "nvmlDeviceGetCurrPcieLinkWidth", device),
        "pcie_width_max": try_get(nvml, "nvmlDeviceGetMaxPcieLinkWidth", device),
        "nvlink_errors": _link_errors(nvml, device),
        "temperature_c": try_get(nvml, "nvmlDeviceGetTemperature", device, nvml.NVML_TEMPERATURE_GPU),
    }


def _link_errors(nvml: Any, device: Any) -> int | None:
    total: int | None = None
    for link in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", MAX_LINKS)):
        if try_get(nvml, "nvmlDeviceGetNvLinkState", device, link) is None:
            break
        for counter in range(nvml.NVML_NVLINK_ERROR_COUNT):
            count = try_get(nvml, "nvmlDeviceGetNvLinkErrorCounter", device, link, counter)
            if count is not None:
                total = (total or 0) + count
    return total
