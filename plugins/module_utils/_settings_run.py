# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""probe, plan, apply, verify of a node's GPU settings. PRIVATE: internal to the collection, may change at any time.

One source for the module and for what restores the settings at boot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import (
    _bounded,
    _gpu_run,
    _nvml,
    _settings_apply,
    _settings_plan,
    _settings_probe,
    _settings_record,
    _settings_select,
    _settings_state,
)
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import DriverUnavailable


@dataclass
class Request:
    """What is declared for the node."""

    settings: list[dict[str, Any]]
    timeout: float = 60.0
    nvml_source: str | None = None


def run(request: Request, check_mode: bool) -> dict[str, Any]:
    """The module's result."""
    return _gpu_run.run(
        lambda report: _work(request, check_mode, report), check_mode, request.timeout, "was reading or changing the GPU settings"
    )


def _work(request: Request, check_mode: bool, report: _bounded.Report) -> dict[str, Any]:
    report({"doing": "reading the GPUs", "done": []})
    try:
        nvml = _nvml.load(request.nvml_source)
        with _nvml.Session(nvml):
            gpus = _settings_probe.read(nvml)
    except DriverUnavailable as error:
        # A virgin node in check mode: the driver that would be installed cannot be asked what its GPUs can do.
        if not (check_mode and error.state in ("absent", "not_loaded")):
            raise
        return _unknown(request)
    plans = _settings_plan.make(gpus, _settings_select.declared(request.settings, gpus))
    steps = [one for plan in plans for one in plan.steps]
    result = {
        "changed": bool(steps),
        "steps": steps,
        "disruptive": any("ecc" in plan.changes for plan in plans),
        "reboot_required": any(plan.reboot_required for plan in plans),
        "reasons": [f"Switch ECC of {plan.gpu.label} by a reboot." for plan in plans if "ecc" in plan.changes],
        "exact": [plan.exact() for plan in plans],
        "source": "nvml",
        "diff": _settings_plan.diff(plans),
    }
    if not check_mode:
        _settings_record.adopt()
    if check_mode or not steps:
        after = {plan.gpu.pci_address: plan.after() for plan in plans}
        result["gpus"] = [_settings_state.as_result(after.get(gpu.pci_address, gpu)) for gpu in gpus]
        return result
    now = _settings_apply.Executor(nvml, report).apply(plans)
    result["gpus"] = [_settings_state.as_result(now[gpu.pci_address]) for gpu in gpus if gpu.pci_address in now]
    return result


def _unknown(request: Request) -> dict[str, Any]:
    return {
        "changed": bool(request.settings),
        "steps": [],
        "disruptive": False,
        "reboot_required": False,
        "reasons": [],
        "exact": [],
        "source": "none",
        "diff": {"before": "no driver\n", "after": "".join(f"{entry}\n" for entry in request.settings)},
        "gpus": [],
    }
