# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets what the plan names, and takes it back where a call fails. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _gpu_settings, _nvml, _settings_probe, _settings_record
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed, GpuError
from ansible_collections.heterogpu.inference.plugins.module_utils._settings_plan import WORDS, GpuPlan
from ansible_collections.heterogpu.inference.plugins.module_utils._settings_state import CLOCKS, Gpu, shown

_COMPUTE_MODES = {name: number for number, name in _gpu_settings.COMPUTE_MODES.items()}


class Executor:
    """One run over one node."""

    def __init__(self, nvml: Any, report: Callable[[dict], None]) -> None:
        self.nvml = nvml
        self.report = report
        self.made: list[str] = []
        self.done: list[tuple[Gpu, str]] = []

    def apply(self, plans: list[GpuPlan]) -> dict[str, Gpu]:
        try:
            with _nvml.Session(self.nvml):
                for plan in plans:
                    for name in plan.changes:
                        self._set(plan.gpu, name, plan.values[name])
                        self.done.append((plan.gpu, name))
            now = self.read()
            self._verify(plans, now)
            return now
        except (GpuError, self.nvml.NVMLError) as error:
            reason = str(error) if isinstance(error, GpuError) else f"NVML answered {_nvml.error_name(self.nvml, error)}"
            raise ApplyFailed(f"{reason}. {self._roll_back()}") from None

    def read(self) -> dict[str, Gpu]:
        """By a new session: only what the driver answers then counts."""
        with _nvml.Session(self.nvml):
            return {gpu.pci_address: gpu for gpu in _settings_probe.read(self.nvml)}

    def _set(self, gpu: Gpu, name: str, value: Any) -> None:
        text = f"set {WORDS[name]} of {gpu.label} to {_text(name, value)}"
        self.report({"doing": text, "done": self.made})
        if name in CLOCKS:
            # A call that fails may still have changed something: nothing is known until it has succeeded.
            _settings_record.note(gpu.pci_address, name, None)
        try:
            self._call(self.nvml.nvmlDeviceGetHandleByPciBusId(gpu.pci_address.encode()), name, value)
        except self.nvml.NVMLError as error:
            answer = _nvml.error_name(self.nvml, error)
            if answer == "NOT_SUPPORTED":
                raise ApplyFailed(f"{gpu.label} does not support {WORDS[name]}: NVML answered NOT_SUPPORTED; remove {name}") from None
            if answer == "NO_PERMISSION":
                raise ApplyFailed(f"{text} needs root; run the task with `become: true`") from None
            raise ApplyFailed(f"{text} failed: NVML answered {answer}") from None
        if name in CLOCKS:
            _settings_record.note(gpu.pci_address, name, value)
        self.made.append(text)

    def _call(self, device: Any, name: str, value: Any) -> None:
        nvml = self.nvml
        if name == "persistence":
            nvml.nvmlDeviceSetPersistenceMode(device, int(value))
        elif name == "compute_mode":
            nvml.nvmlDeviceSetComputeMode(device, _COMPUTE_MODES[value])
        elif name == "ecc":
            nvml.nvmlDeviceSetEccMode(device, int(value))
        elif name == "power_limit_w":
            nvml.nvmlDeviceSetPowerManagementLimit(device, value)
        elif name == "graphics_clocks_mhz":
            nvml.nvmlDeviceSetGpuLockedClocks(device, *value) if value else nvml.nvmlDeviceResetGpuLockedClocks(device)
        else:
            nvml.nvmlDeviceSetMemoryLockedClocks(device, *value) if value else nvml.nvmlDeviceResetMemoryLockedClocks(device)

    def _verify(self, plans: list[GpuPlan], now: dict[str, Gpu]) -> None:
        for plan in plans:
            gpu = now.get(plan.gpu.pci_address)
            if gpu is None:
                raise ApplyFailed(f"{plan.gpu.label} is lost; see `journalctl -k` for its Xid and reboot the node")
            for name, value in plan.values.items():
                if gpu.now(name) != value:
                    stands = _text(name, gpu.now(name))
                    raise ApplyFailed(f"{WORDS[name]} of {gpu.label} is {stands} after it was set to {_text(name, value)} without an error")

    def _roll_back(self) -> str:
        """The last change first. Clocks that were locked by somebody else are unknown, so that they can only be unlocked."""
        if not self.done:
            return "Nothing was changed."
        failures, unknown = [], []
        for gpu, name in reversed(self.done):
            former = gpu.now(name)
            try:
                with _nvml.Session(self.nvml):
                    self._set(gpu, name, () if former is None else former)
                if former is None:
                    _settings_record.note(gpu.pci_address, name, None)
                    unknown.append(gpu.label)
            except (GpuError, self.nvml.NVMLError) as error:
                failures.append(str(error))
        if failures:
            return f"Restoring the former settings failed too ({'; '.join(failures)}); correct the cause and run again."
        note = f" (clocks of {', '.join(dict.fromkeys(unknown))} are unlocked, what they were before is unknown)" if unknown else ""
        return f"The former settings were restored{note}; correct the cause and run again."


def _text(name: str, value: Any) -> str:
    unit = {"power_limit_w": " W", "graphics_clocks_mhz": " MHz", "memory_clocks_mhz": " MHz"}.get(name, "")
    text = shown(name, value)
    if isinstance(text, list):
        text = "-".join(map(str, text))
    if isinstance(text, bool):
        text = "on" if text else "off"
    return f"{text}{unit}" if text not in ("unlocked", None) else str(text or "unknown")
