# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signs of a failing GPU. PRIVATE: internal to the collection, may change at any time.

Ampere and later GPUs remap rows of bad memory, older ones retire pages: of the two groups a GPU has one.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._nvml import Reader

# nvmlClocksEventReason*: bits that say why clocks are below their maximum.
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
KEYS = (
    "remapped_rows_correctable", "remapped_rows_uncorrectable", "remapped_rows_pending", "remapped_rows_failed",
    "retired_pages_single_bit", "retired_pages_double_bit", "retired_pages_pending",
    "ecc_uncorrected", "ecc_uncorrected_lifetime", "xid_since_boot", "throttle_reasons",
    "pcie_generation_current", "pcie_generation_max", "pcie_width_current", "pcie_width_max", "nvlink_errors", "temperature_c",
)  # fmt: skip


def blank() -> dict[str, Any]:
    return dict.fromkeys(KEYS)


def read(reader: Reader, nvlinks: list[dict[str, Any]]) -> dict[str, Any]:
    """Xid errors are the kernel log's and added by the caller."""
    nvml = reader.nvml
    rows = reader.get("nvmlDeviceGetRemappedRows") or (None,) * 4
    pending = reader.get("nvmlDeviceGetRetiredPagesPendingStatus")
    reasons = reader.get("nvmlDeviceGetCurrentClocksThrottleReasons")
    link_errors = [link["errors"] for link in nvlinks if link["errors"] is not None]
    return {
        **blank(),
        "remapped_rows_correctable": rows[0],
        "remapped_rows_uncorrectable": rows[1],
        "remapped_rows_pending": None if rows[2] is None else bool(rows[2]),
        "remapped_rows_failed": None if rows[3] is None else bool(rows[3]),
        "retired_pages_single_bit": _pages(reader, nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS),
        "retired_pages_double_bit": _pages(reader, nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR),
        "retired_pages_pending": None if pending is None else bool(pending),
        "ecc_uncorrected": _uncorrected(reader, nvml.NVML_VOLATILE_ECC),
        "ecc_uncorrected_lifetime": _uncorrected(reader, nvml.NVML_AGGREGATE_ECC),
        "throttle_reasons": None if reasons is None else [name for bit, name in REASONS.items() if reasons & bit],
        "pcie_generation_current": reader.get("nvmlDeviceGetCurrPcieLinkGeneration"),
        "pcie_generation_max": reader.get("nvmlDeviceGetMaxPcieLinkGeneration"),
        "pcie_width_current": reader.get("nvmlDeviceGetCurrPcieLinkWidth"),
        "pcie_width_max": reader.get("nvmlDeviceGetMaxPcieLinkWidth"),
        "nvlink_errors": sum(link_errors) if link_errors else None,
        "temperature_c": reader.get("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
    }


def _pages(reader: Reader, cause: int) -> int | None:
    pages = reader.get("nvmlDeviceGetRetiredPages", cause)
    return None if pages is None else len(pages)


def _uncorrected(reader: Reader, counter: int) -> int | None:
    return reader.get("nvmlDeviceGetTotalEccErrors", reader.nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, counter)
