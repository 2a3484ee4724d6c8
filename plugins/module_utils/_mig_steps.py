# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All steps for all GPUs of the node, decided before the first of them. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _mig_plan
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import Refused
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Slot
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_select import Declared
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_state import ComputeInstance, Gpu, Instance, step


@dataclass
class GpuPlan:
    """What happens to one GPU."""

    gpu: Gpu
    mode: bool
    slots: list[Slot] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def waits_for_reboot(self) -> bool:
        """The declared mode is pending already and only a reboot can make it current: there is nothing left to call."""
        return self.gpu.passthrough and self.gpu.mode != self.mode and self.gpu.pending == self.mode

    @property
    def changes_mode(self) -> bool:
        return any(one["action"] in ("enable_mig", "disable_mig") for one in self.steps)

    @property
    def disruptive(self) -> bool:
        return self.changes_mode or any(one["action"].startswith("destroy") for one in self.steps)

    def exact(self) -> dict[str, Any]:
        """The declaration of this very GPU, with the place of every instance."""
        return {"gpus": self.gpu.pci_address, "mig": self.mode, "profiles": [str(slot) for slot in self.slots]}

    def after(self) -> Gpu:
        """The GPU as it will be, in check mode."""
        if self.waits_for_reboot:
            return self.gpu
        by_slot = {instance.slot: instance for instance in self.gpu.instances if instance.complete}
        fresh = [Instance(-1, slot, (ComputeInstance(-1, -1, 0, True),)) for slot in self.slots]
        kept = tuple(by_slot.get(one.slot, one) for one in fresh)
        return replace(self.gpu, mode=self.mode, pending=self.mode, instances=kept)


def make(gpus: list[Gpu], declarations: dict[str, Declared]) -> list[GpuPlan]:
    return [_for_gpu(gpu, declarations[gpu.pci_address]) for gpu in gpus if gpu.pci_address in declarations]


def _for_gpu(gpu: Gpu, declared: Declared) -> GpuPlan:
    if not declared.mig:
        return _disable(gpu, declared)
    if gpu.offer is None:
        raise Refused(
            f"{declared.where}: the driver lists no MIG profile of {gpu.label} while MIG mode is off, "
            "and the collection has no table for this model; "
            "install a driver of branch 550 or later, or enable MIG mode once by hand."
        )
    wanted = list(declared.wanted)
    _mig_plan.check(gpu, gpu.offer, wanted, declared.where)
    plan = GpuPlan(gpu, mode=True, slots=_mig_plan.resolve(gpu, gpu.offer, wanted, declared.where))
    if plan.waits_for_reboot:
        return plan
    if not (gpu.mode and gpu.pending):
        plan.steps.append(step("enable_mig", gpu))
    plan.steps += _mig_plan.instance_steps(gpu, plan.slots)
    return plan


def _disable(gpu: Gpu, declared: Declared) -> GpuPlan:
    plan = GpuPlan(gpu, mode=False)
    if plan.waits_for_reboot or not (gpu.mode or gpu.pending):
        return plan
    if gpu.mode and gpu.offer:
        _mig_plan.resolve(gpu, gpu.offer, [], declared.where)  # refuses what is in use
        plan.steps += _mig_plan.instance_steps(gpu, [])
    plan.steps.append(step("disable_mig", gpu))
    return plan


def describe(step_: dict[str, Any]) -> str:
    """A step in words: create GPU instance 3g.40gb@4 on 0000:07:00.0."""
    words = {
        "enable_mig": "enable MIG mode",
        "disable_mig": "disable MIG mode",
        "reset_gpu": "reset the GPU",
        "create_gpu_instance": "create GPU instance",
        "create_compute_instance": "create the compute instance of",
        "destroy_gpu_instance": "destroy GPU instance",
        "destroy_compute_instance": "destroy the compute instance of",
    }
    device = f" {step_['device']}" if "device" in step_ else ""
    return f"{words[step_['action']]}{device} on {step_['gpu']}"
