# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutating NVML calls, one function per step. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _mig_probe, _nvml
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Profile, Slot
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_state import Gpu, Instance

# The driver reports an instance as in use for a moment after its last process ended.
RETRIES = 5
PAUSE_S = 0.2


class Calls:
    """Calls into an open NVML session. `report` is told before each one what is being done."""

    def __init__(self, nvml: Any, report: Callable[[dict], None], reset: Callable[[str], tuple[int, str]]) -> None:
        self.nvml = nvml
        self.report = report
        self.reset = reset
        self.made: list[str] = []

    def _do(self, text: str, call: Callable[[], Any], retry: bool = False) -> Any:
        for attempt in range(RETRIES + 1):
            self.report({"doing": text, "done": self.made})
            try:
                value = call()
            except self.nvml.NVMLError as error:
                name = _nvml.error_name(self.nvml, error)
                if retry and name == "IN_USE" and attempt < RETRIES:
                    time.sleep(PAUSE_S)
                    continue
                raise ApplyFailed(f"{text} failed: NVML answered {name}") from None
            self.made.append(text)
            return value
        raise AssertionError("unreachable")

    def device(self, gpu: Gpu) -> Any:
        return self.nvml.nvmlDeviceGetHandleByPciBusId(gpu.pci_address.encode())

    def set_mode(self, gpu: Gpu, mode: bool) -> str:
        """Returns the name of the activation status, which is separate from the call's own result."""
        verb = "enable" if mode else "disable"
        # pynvml raises for the call's own error only and hands the status back.
        status = self._do(f"{verb} MIG mode on {gpu.pci_address}", lambda: self.nvml.nvmlDeviceSetMigMode(self.device(gpu), int(mode)))
        return "SUCCESS" if status == self.nvml.NVML_SUCCESS else _nvml.error_name(self.nvml, self.nvml.NVMLError(status))

    def reset_gpu(self, gpu: Gpu) -> None:
        text = f"reset the GPU {gpu.pci_address}"
        self.report({"doing": text, "done": self.made})
        code, output = self.reset(gpu.pci_address)
        if code != 0:
            raise ApplyFailed(f"{text} failed: nvidia-smi said {' '.join(output.split())!r}")
        self.made.append(text)

    def create_instance(self, gpu: Gpu, profile: Profile, slot: Slot) -> None:
        placement = self.nvml.c_nvmlGpuInstancePlacement_t(slot.start, profile.size)
        self._do(
            f"create GPU instance {slot} on {gpu.pci_address}",
            lambda: self.nvml.nvmlDeviceCreateGpuInstanceWithPlacement(self.device(gpu), profile.profile_id, ctypes.byref(placement)),
        )

    def instance(self, gpu: Gpu, profile: Profile, slot: Slot) -> Any:
        """The handle of the GPU instance that stands at this slot now."""
        for handle in _mig_probe.gpu_instances(self.nvml, self.device(gpu), profile):
            if self.nvml.nvmlGpuInstanceGetInfo(handle).placement.start == slot.start:
                return handle
        raise ApplyFailed(f"the GPU instance {slot} on {gpu.pci_address} was reported as created but does not exist")

    def create_full_compute(self, gpu: Gpu, profile: Profile, slot: Slot) -> None:
        handle = self.instance(gpu, profile, slot)
        full = [info.id for info in _mig_probe.compute_profiles(self.nvml, handle).values() if _mig_probe.is_full(info, profile)]
        if not full:
            raise ApplyFailed(f"the driver lists no compute instance profile that fills {slot} on {gpu.pci_address}")
        self._do(
            f"create the compute instance of {slot} on {gpu.pci_address}",
            lambda: self.nvml.nvmlGpuInstanceCreateComputeInstance(handle, full[0]),
        )

    def create_compute_at(self, gpu: Gpu, profile: Profile, slot: Slot, index: int, start: int) -> None:
        """A compute instance as it was before, which need not fill its GPU instance."""
        handle = self.instance(gpu, profile, slot)
        size = _mig_probe.compute_profiles(self.nvml, handle)[index].sliceCount
        placement = self.nvml.c_nvmlComputeInstancePlacement_t(start, size)
        self._do(
            f"create the compute instance of {slot} on {gpu.pci_address} again",
            lambda: self.nvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement(handle, index, ctypes.byref(placement)),
        )

    def destroy_compute(self, gpu: Gpu, instance: Instance, compute_id: int) -> None:
        handle = self.nvml.nvmlDeviceGetGpuInstanceById(self.device(gpu), instance.gpu_instance_id)
        self._do(
            f"destroy compute instance {compute_id} of {instance.slot} on {gpu.pci_address}",
            lambda: self.nvml.nvmlComputeInstanceDestroy(self.nvml.nvmlGpuInstanceGetComputeInstanceById(handle, compute_id)),
            retry=True,
        )

    def destroy_instance(self, gpu: Gpu, instance: Instance) -> None:
        self._do(
            f"destroy GPU instance {instance.slot} on {gpu.pci_address}",
            lambda: self.nvml.nvmlGpuInstanceDestroy(self.nvml.nvmlDeviceGetGpuInstanceById(self.device(gpu), instance.gpu_instance_id)),
            retry=True,
        )
