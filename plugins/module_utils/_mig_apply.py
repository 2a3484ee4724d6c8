# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Executes a plan, and takes it back where it fails. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import (
    _mig_calls,
    _mig_holders,
    _mig_plan,
    _mig_probe,
    _nvml,
    _settings_record,
)
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed, GpuError
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Offer, Slot
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_state import Gpu, Instance
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_steps import GpuPlan

Reset = Callable[[str], tuple[int, str]]


class Executor:
    """One run over one node."""

    def __init__(self, nvml: Any, tables: dict[str, Offer], report: Callable[[dict], None], reset: Reset) -> None:
        self.nvml = nvml
        self.tables = tables
        self.report = report
        self.reset = reset
        self.made: list[str] = []
        self.waiting: list[str] = []
        """PCI addresses of GPUs whose mode becomes current only with a reboot."""

    def read(self) -> dict[str, Gpu]:
        """Everything anew: handles and lists of an NVML session go stale when instances or modes change."""
        with _nvml.Session(self.nvml):
            return {gpu.pci_address: gpu for gpu in _mig_probe.read(self.nvml, self.tables)}

    def apply(self, plans: list[GpuPlan]) -> dict[str, Gpu]:
        touched: list[Gpu] = []
        try:
            for plan in plans:
                if plan.steps:
                    touched.append(plan.gpu)
                    self._apply_one(plan)
            now = self.read()
            self._verify(plans, now)
            return now
        except (GpuError, self.nvml.NVMLError) as error:
            reason = str(error) if isinstance(error, GpuError) else f"NVML answered {_nvml.error_name(self.nvml, error)}"
            raise ApplyFailed(f"{reason}. {self._roll_back(touched)}") from None

    def _calls(self) -> _mig_calls.Calls:
        calls = _mig_calls.Calls(self.nvml, self.report, self.reset)
        calls.made = self.made
        return calls

    def _apply_one(self, plan: GpuPlan) -> None:
        gpu = plan.gpu
        if plan.mode and not (gpu.mode and gpu.pending):
            self._change_mode(gpu, True)
            if gpu.pci_address in self.waiting:
                return
            gpu = self.read()[gpu.pci_address]
            if gpu.offer is None:
                raise ApplyFailed(f"the driver lists no MIG profile of {gpu.label} although MIG mode is on")
            # The table was taken from the collection's data while the driver listed nothing: now the driver decides.
            for slot in plan.slots:
                if slot.profile not in gpu.offer.by_name:
                    raise ApplyFailed(
                        f"{gpu.label} has no MIG profile {slot.profile} with this driver; it offers {', '.join(gpu.offer.names)}"
                    )
        self._set_instances(gpu, plan.slots)
        if not plan.mode and (gpu.mode or gpu.pending):
            self._change_mode(gpu, False)

    def _set_instances(self, gpu: Gpu, slots: list[Slot]) -> None:
        steps = _mig_plan.instance_steps(gpu, slots)
        if not steps:
            return
        by_id = {instance.gpu_instance_id: instance for instance in gpu.instances}
        with _nvml.Session(self.nvml):
            calls = self._calls()
            for one in steps:
                slot = _slot(one["device"])
                profile = gpu.offer.by_name[slot.profile]  # type: ignore[union-attr]
                if one["action"] == "destroy_compute_instance":
                    calls.destroy_compute(gpu, by_id[one["gpu_instance_id"]], one["compute_instance_id"])
                elif one["action"] == "destroy_gpu_instance":
                    calls.destroy_instance(gpu, by_id[one["gpu_instance_id"]])
                elif one["action"] == "create_gpu_instance":
                    calls.create_instance(gpu, profile, slot)
                else:
                    calls.create_full_compute(gpu, profile, slot)

    def _change_mode(self, gpu: Gpu, mode: bool) -> None:
        """The call's status is a hint: some hypervisors report a success that did not happen, so only what is read back counts."""
        _settings_record.forget()
        status = self._set_mode(gpu, mode)
        if self._has_mode(gpu, mode):
            return
        if status not in ("SUCCESS", "RESET_REQUIRED"):
            raise ApplyFailed(f"MIG mode of {gpu.label} stays pending: NVML answered {status}{self._held_by(gpu)}")
        if gpu.passthrough:
            self.waiting.append(gpu.pci_address)
            return
        # Outside of a session: the driver refuses to reset a GPU that anybody has open, this process included.
        self._calls().reset_gpu(gpu)
        if not self._has_mode(gpu, mode):
            raise ApplyFailed(
                f"MIG mode of {gpu.label} is still {'disabled' if mode else 'enabled'} after its GPU reset{self._held_by(gpu)}"
            )

    def _set_mode(self, gpu: Gpu, mode: bool) -> str:
        status = "IN_USE"
        for attempt in range(_mig_calls.RETRIES + 1):
            with _nvml.Session(self.nvml):
                status = self._calls().set_mode(gpu, mode)
            if status != "IN_USE" or attempt == _mig_calls.RETRIES or self._current(gpu).holders:
                break
            time.sleep(_mig_calls.PAUSE_S)
        return status

    def _current(self, gpu: Gpu) -> Gpu:
        now = self.read().get(gpu.pci_address)
        if now is None:
            raise ApplyFailed(f"{gpu.label} is lost; see `journalctl -k` for its Xid and reboot the node")
        return now

    def _has_mode(self, gpu: Gpu, mode: bool) -> bool:
        now = self._current(gpu)
        return now.mode == mode and now.pending == mode

    def _held_by(self, gpu: Gpu) -> str:
        holders = [*self._current(gpu).holders, *_mig_holders.display_module()]
        return f"; it is held by {', '.join(holders)}" if holders else ""

    def _verify(self, plans: list[GpuPlan], now: dict[str, Gpu]) -> None:
        for plan in plans:
            if plan.gpu.pci_address in self.waiting or plan.waits_for_reboot:
                continue
            gpu = now.get(plan.gpu.pci_address)
            if gpu is None:
                raise ApplyFailed(f"{plan.gpu.label} is lost; see `journalctl -k` for its Xid and reboot the node")
            complete = {instance.slot for instance in gpu.instances if instance.complete}
            if gpu.mode != plan.mode or gpu.pending != plan.mode or complete != set(plan.slots) or len(gpu.instances) != len(plan.slots):
                raise ApplyFailed(f"{gpu.label} does not have the declared geometry after all calls succeeded: it has {layout_text(gpu)}")

    # --- back to what was ---
    def _roll_back(self, touched: list[Gpu]) -> str:
        failures = []
        for former in reversed(touched):
            try:
                self._restore(former)
            except (GpuError, self.nvml.NVMLError) as error:
                failures.append(str(error) if isinstance(error, GpuError) else f"NVML answered {_nvml.error_name(self.nvml, error)}")
        if not touched:
            return "Nothing was changed."
        if not failures:
            return (
                "The former geometry and MIG modes were restored (re-created instances have new MIG UUIDs); "
                "correct the cause and run again."
            )
        try:
            now = self.read()
            stands = "; ".join(f"{gpu.pci_address}: {layout_text(now[gpu.pci_address])}" for gpu in touched if gpu.pci_address in now)
        except (GpuError, self.nvml.NVMLError):
            stands = "unknown, the driver does not answer"
        return (
            f"Restoring the former geometry failed too ({'; '.join(failures)}). What stands now: {stands}. "
            "Keep the node drained, correct the cause and run again."
        )

    def _restore(self, former: Gpu) -> None:
        gpu = self._current(former)
        if former.mode and not (gpu.mode and gpu.pending):
            self._change_mode(gpu, True)
            gpu = self._current(former)
        if gpu.mode:
            self._restore_instances(gpu, former)
        gpu = self._current(former)
        if gpu.mode != former.mode or (gpu.pending != former.pending and former.pending == former.mode):
            self._change_mode(gpu, former.mode)

    def _restore_instances(self, gpu: Gpu, former: Gpu) -> None:
        """Exactly what stood: empty GPU instances and partial compute instances too."""
        wanted = {instance.slot: instance for instance in former.instances} if former.mode else {}
        with _nvml.Session(self.nvml):
            calls = self._calls()
            for instance in gpu.instances:
                keep = _compute_keys(wanted[instance.slot]) if instance.slot in wanted else set()
                for compute in instance.compute_instances:
                    if (compute.profile_index, compute.start) not in keep:
                        calls.destroy_compute(gpu, instance, compute.compute_instance_id)
                if instance.slot not in wanted:
                    calls.destroy_instance(gpu, instance)
            standing = {instance.slot: instance for instance in gpu.instances}
            for slot, instance in sorted(wanted.items(), key=lambda item: item[0].start):
                profile = gpu.offer.by_name[slot.profile]  # type: ignore[union-attr]
                if slot not in standing:
                    calls.create_instance(gpu, profile, slot)
                have = _compute_keys(standing[slot]) if slot in standing else set()
                for index, start in sorted(_compute_keys(instance) - have):
                    calls.create_compute_at(gpu, profile, slot, index, start)


def _compute_keys(instance: Instance) -> set[tuple[int, int]]:
    return {(compute.profile_index, compute.start) for compute in instance.compute_instances}


def _slot(device: str) -> Slot:
    profile, _at, start = device.rpartition("@")
    return Slot(profile, int(start))


def layout_text(gpu: Gpu) -> str:
    """MIG mode and instances of a GPU on one line."""
    mode = ("MIG enabled" if gpu.mode else "MIG disabled") + (
        "" if gpu.mode == gpu.pending else f" ({'enabled' if gpu.pending else 'disabled'} pending)"
    )
    parts = []
    for instance in sorted(gpu.instances, key=lambda one: one.slot.start):
        note = "" if instance.complete else " (no compute instance)" if not instance.compute_instances else " (partial compute instances)"
        parts.append(f"{instance.slot}{note}")
    return f"{mode}, {', '.join(parts) or 'no instances'}" if gpu.mode or parts else mode
