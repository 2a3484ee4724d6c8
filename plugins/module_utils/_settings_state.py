# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be set on one GPU and what is declared for it, as plain data. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

COMPUTE_MODES = ("default", "prohibited", "exclusive_process")
CLOCKS = ("graphics_clocks_mhz", "memory_clocks_mhz")
# The order of the calls: the driver forgets limits and clocks of a GPU that nobody uses unless persistence mode is on.
ORDER = ("persistence", *CLOCKS, "power_limit_w", "compute_mode", "ecc")

UNLOCKED: tuple[int, ...] = ()
Clocks = tuple[int, ...]  # two numbers, or none for clocks that are not locked


@dataclass(frozen=True)
class Gpu:
    """One GPU. None means that it has no such setting, or that NVML does not tell."""

    index: int
    pci_address: str
    name: str
    uuid: str | None = None
    mig: bool = False
    persistence: bool | None = None
    compute_mode: str | None = None
    ecc: bool | None = None
    ecc_pending: bool | None = None
    power_limit_mw: int | None = None
    power_default_mw: int | None = None
    power_range_mw: tuple[int, int] | None = None
    graphics_max_mhz: int | None = None
    memory_mhz: tuple[int, ...] = ()
    locked: dict[str, Clocks] = field(default_factory=dict)
    """What was set by the collection since the driver was loaded; a kind that is missing here is unknown."""

    @property
    def label(self) -> str:
        return f"GPU {self.index} ({self.pci_address}, {self.name})"

    def now(self, setting: str) -> Any:
        if setting in CLOCKS:
            return self.locked.get(setting)
        return {
            "persistence": self.persistence,
            "compute_mode": self.compute_mode,
            "ecc": self.ecc_pending,
            "power_limit_w": self.power_limit_mw,
        }[setting]


@dataclass(frozen=True)
class Declared:
    """What is declared for one GPU; a setting that is missing in `values` is left alone."""

    where: str
    values: dict[str, Any]


def shown(setting: str, value: Any) -> Any:
    """The form in which a value is declared and returned."""
    if value is None:
        return None
    if setting == "power_limit_w":
        return value // 1000 if value % 1000 == 0 else value / 1000
    if setting in CLOCKS:
        return list(value) if value else "unlocked"
    return value


def as_result(gpu: Gpu) -> dict[str, Any]:
    limits = gpu.power_range_mw
    return {
        "index": gpu.index,
        "pci_address": gpu.pci_address,
        "name": gpu.name,
        "uuid": gpu.uuid,
        "persistence": gpu.persistence,
        "compute_mode": gpu.compute_mode,
        "ecc": gpu.ecc,
        "ecc_pending": gpu.ecc_pending,
        "power_limit_w": shown("power_limit_w", gpu.power_limit_mw),
        "power_limit_default_w": shown("power_limit_w", gpu.power_default_mw),
        "power_limit_range_w": [shown("power_limit_w", one) for one in limits] if limits else None,
        "graphics_clock_max_mhz": gpu.graphics_max_mhz,
        "memory_clocks_supported_mhz": list(gpu.memory_mhz),
        **{kind: {"value": shown(kind, gpu.locked.get(kind)), "verifiable": False} for kind in CLOCKS},
    }
