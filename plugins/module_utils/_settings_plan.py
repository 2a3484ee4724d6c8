# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the settings that stand to the declared ones. PRIVATE: internal to the collection, may change at any time.

Pure: what a GPU cannot do is refused here, from NVML's own answers, before anything is touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput
from ansible_collections.heterogpu.inference.plugins.module_utils._settings_select import DEFAULT
from ansible_collections.heterogpu.inference.plugins.module_utils._settings_state import CLOCKS, ORDER, UNLOCKED, Declared, Gpu, shown

FORGOTTEN = ("power_limit_w", *CLOCKS)
WORDS = {
    "persistence": "persistence mode",
    "compute_mode": "compute mode",
    "ecc": "ECC",
    "power_limit_w": "power limit",
    "graphics_clocks_mhz": "locked graphics clocks",
    "memory_clocks_mhz": "locked memory clocks",
}


@dataclass
class GpuPlan:
    """What happens to one GPU: settings to values, and those of them that have to be set."""

    gpu: Gpu
    where: str
    values: dict[str, Any]
    changes: list[str] = field(default_factory=list)

    @property
    def reboot_required(self) -> bool:
        """ECC is switched by the next reboot."""
        return "ecc" in self.values and self.gpu.ecc != self.values["ecc"]

    @property
    def steps(self) -> list[dict[str, Any]]:
        return [
            {
                "action": "set",
                "gpu": self.gpu.pci_address,
                "setting": name,
                "before": shown(name, self.gpu.now(name)),
                "after": shown(name, self.values[name]),
                "verifiable": name not in CLOCKS,
            }
            for name in self.changes
        ]

    def after(self) -> Gpu:
        """The GPU as it will be, in check mode."""
        values = {name: self.values[name] for name in self.changes}
        return replace(
            self.gpu,
            persistence=values.get("persistence", self.gpu.persistence),
            compute_mode=values.get("compute_mode", self.gpu.compute_mode),
            ecc_pending=values.get("ecc", self.gpu.ecc_pending),
            power_limit_mw=values.get("power_limit_w", self.gpu.power_limit_mw),
            locked={**self.gpu.locked, **{kind: values[kind] for kind in CLOCKS if kind in values}},
        )

    def exact(self) -> dict[str, Any]:
        """The declaration of this very GPU."""
        return {"gpus": self.gpu.pci_address, **{name: shown(name, value) for name, value in self.values.items()}}


def make(gpus: list[Gpu], declarations: dict[str, Declared]) -> list[GpuPlan]:
    return [_for_gpu(gpu, declarations[gpu.pci_address]) for gpu in gpus if gpu.pci_address in declarations]


def _for_gpu(gpu: Gpu, declared: Declared) -> GpuPlan:
    values = dict(declared.values)
    if values.get("power_limit_w") == DEFAULT and gpu.power_default_mw is not None:
        values["power_limit_w"] = gpu.power_default_mw
    for name, value in values.items():
        _check(gpu, name, value, declared.where)
    _check_persistence(gpu, values, declared.where)
    return GpuPlan(gpu, declared.where, values, [name for name in ORDER if name in values and gpu.now(name) != values[name]])


def _check(gpu: Gpu, name: str, value: Any, where: str) -> None:
    if (name not in CLOCKS and gpu.now(name) is None) or (name == "power_limit_w" and value == DEFAULT):
        raise InvalidInput(
            f"{where}: {gpu.label} has no {WORDS[name]} that can be set, NVML does not support it there; remove {name} for this GPU."
        )
    if name == "power_limit_w" and gpu.power_range_mw and not gpu.power_range_mw[0] <= value <= gpu.power_range_mw[1]:
        least, most = (shown(name, limit) for limit in gpu.power_range_mw)
        raise InvalidInput(
            f"{where}: a power limit of {shown(name, value)} W is not possible on {gpu.label}; write a number from {least} to {most}."
        )
    if name == "compute_mode" and gpu.mig and value != gpu.compute_mode:
        raise InvalidInput(
            f"{where}: the compute mode of {gpu.label} cannot become {value} while the GPU is in MIG mode; "
            "remove compute_mode for this GPU, or declare `mig: false` for it."
        )
    if name == "graphics_clocks_mhz" and value != UNLOCKED and gpu.graphics_max_mhz and value[1] > gpu.graphics_max_mhz:
        raise InvalidInput(
            f"{where}: graphics clocks of {value[1]} MHz are not possible on {gpu.label}; its highest clock is {gpu.graphics_max_mhz} MHz."
        )
    if name == "memory_clocks_mhz" and value != UNLOCKED and gpu.memory_mhz and not set(value) <= set(gpu.memory_mhz):
        clocks = ", ".join(map(str, gpu.memory_mhz))
        raise InvalidInput(
            f"{where}: memory clocks of {'-'.join(map(str, value))} MHz are not possible on {gpu.label}; it has {clocks} MHz."
        )


def _check_persistence(gpu: Gpu, values: dict[str, Any], where: str) -> None:
    kept = values.get("persistence", gpu.persistence)
    default = {"power_limit_w": gpu.power_default_mw, **dict.fromkeys(CLOCKS, UNLOCKED)}
    lost = [WORDS[name] for name in FORGOTTEN if name in values and values[name] != default[name]]
    if kept is False and lost:
        raise InvalidInput(
            f"{where}: without persistence mode {gpu.label} forgets its {lost[0]} as soon as nobody uses it; "
            "declare `persistence: true` too."
        )


def diff(plans: list[GpuPlan]) -> dict[str, str]:
    before: list[str] = []
    after: list[str] = []
    for plan in plans:
        for text, values in ((before, {}), (after, plan.values)):
            text.append(f"{plan.gpu.pci_address} {plan.gpu.name}")
            for name in (name for name in ORDER if name in plan.values):
                value = shown(name, values.get(name, plan.gpu.now(name)))
                text.append(f"  {name}: {'unknown' if value is None else value}")
    return {"before": "\n".join(before) + "\n", "after": "\n".join(after) + "\n"}
