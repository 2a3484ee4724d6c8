# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""probe, plan, apply, verify of a node's MIG geometry. PRIVATE: internal to the collection, may change at any time.

One source for the module and for whatever else brings a node into its declared geometry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import (
    _bounded,
    _devices,
    _gpu_run,
    _mig_apply,
    _mig_declared,
    _mig_diff,
    _mig_holders,
    _mig_probe,
    _mig_select,
    _mig_state,
    _mig_steps,
    _nvml,
    _services,
)
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import DriverUnavailable, Refused
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_state import Gpu


@dataclass
class Request:
    """What is declared for the node, and what the controller knows of GPU models."""

    geometry: list[dict[str, Any]]
    unlisted: str = "keep"
    allow_empty: bool = False
    timeout: float = 60.0
    nvml_source: str | None = None
    declared_models: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    model_names: dict[str, str] = field(default_factory=dict)
    paused_services: list[str] = field(default_factory=list)
    awaited_services: tuple[str, ...] | None = None


Reset = Callable[[str], tuple[int, str]]


def run(request: Request, check_mode: bool, reset: Reset) -> dict[str, Any]:
    """The module's result."""

    def attempt(paused: bool) -> dict[str, Any]:
        return _gpu_run.run(
            lambda report: _work(request, check_mode, report, reset, paused=paused),
            check_mode,
            request.timeout,
            "was reading or changing the MIG geometry",
        )

    services = _services.Services(request.paused_services, request.awaited_services)
    if not check_mode:
        services.resume()
    result = attempt(paused=check_mode or not request.paused_services)
    if not result.pop("pause_first"):
        return result
    with services.paused():
        result = attempt(paused=True)
    result.pop("pause_first")
    return result


def _work(request: Request, check_mode: bool, report: _bounded.Report, reset: Reset, *, paused: bool) -> dict[str, Any]:
    tables = _mig_declared.offers(request.tables)
    report({"doing": "reading the GPUs", "done": []})
    try:
        nvml = _nvml.load(request.nvml_source)
        with _nvml.Session(nvml):
            gpus = _mig_probe.read(nvml, tables)
    except DriverUnavailable as error:
        if not (check_mode and (request.declared_models or not request.geometry) and error.state in ("absent", "not_loaded")):
            raise
        gpus = _mig_declared.gpus(request.declared_models, tables, request.model_names)
    declarations = _mig_select.declared(request.geometry, gpus, request.unlisted, request.allow_empty)
    plans = _mig_steps.make(gpus, declarations)
    result = _describe(plans, gpus)
    result["pause_first"] = not paused and bool(result["mode_changes"])
    if check_mode or not result["changed"] or result["pause_first"]:
        return _with_gpus(result, [_after(plans, gpu) for gpu in gpus])
    _refuse_held(plans)
    executor = _mig_apply.Executor(nvml, tables, report, reset)
    now = executor.apply(plans)
    result["reboot_required"] = bool(executor.waiting) or any(plan.waits_for_reboot for plan in plans)
    return _with_gpus(result, [now[gpu.pci_address] for gpu in gpus if gpu.pci_address in now])


def _with_gpus(result: dict[str, Any], gpus: list[Gpu]) -> dict[str, Any]:
    result["gpus"] = [_mig_state.as_result(gpu) for gpu in gpus]
    result["devices"] = _devices.of(result["gpus"])
    result["devices_known"] = _devices.is_current(result["devices"])
    return result


def _describe(plans: list[_mig_steps.GpuPlan], gpus: list[Gpu]) -> dict[str, Any]:
    steps = [one for plan in plans for one in plan.steps]
    changing = [plan for plan in plans if plan.changes_mode]
    display = _mig_holders.display_module()
    return {
        "changed": bool(steps),
        "steps": steps,
        "disruptive": any(plan.disruptive for plan in plans),
        "reboot_required": any(plan.waits_for_reboot or (plan.gpu.passthrough and plan.changes_mode) for plan in plans),
        "mode_changes": [plan.gpu.pci_address for plan in changing],
        "holders": {plan.gpu.pci_address: holders for plan in changing for holders in [[*plan.gpu.holders, *display]] if holders},
        "reasons": [reason for plan in plans for reason in _reasons(plan.steps)],
        "exact": [plan.exact() for plan in plans],
        "source": "declared" if any(gpu.source == "declared" for gpu in gpus) else "nvml",
        "diff": _mig_diff.of(plans),
    }


def _reasons(steps: list[dict[str, Any]]) -> list[str]:
    """What stops work, a sentence each; a compute instance that goes with its GPU instance is not worth one of its own."""
    going = {step["device"] for step in steps if step["action"] == "destroy_gpu_instance"}
    found = [step for step in steps if step["action"] in ("enable_mig", "disable_mig", "destroy_gpu_instance")]
    found += [step for step in steps if step["action"] == "destroy_compute_instance" and step["device"] not in going]
    words = [_mig_steps.describe(step) for step in found]
    return [f"{word[0].upper()}{word[1:]}." for word in words]


def _after(plans: list[_mig_steps.GpuPlan], gpu: Gpu) -> Gpu:
    return next((plan.after() for plan in plans if plan.gpu is gpu), gpu)


def _refuse_held(plans: list[_mig_steps.GpuPlan]) -> None:
    """A GPU that somebody has open cannot change its mode: say so before the first call."""
    display = _mig_holders.display_holds()
    holders = {plan.gpu.label: [*plan.gpu.holders, *display] for plan in plans if plan.changes_mode}
    held = [f"{label} is held by {', '.join(names)}" for label, names in holders.items() if names]
    if held:
        raise Refused(
            f"MIG mode cannot change while a GPU is open: {'; '.join(held)}. "
            "Stop these processes (or drain the node) and run again. Nothing was changed."
        )
