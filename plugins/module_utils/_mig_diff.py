# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before and after, for --diff. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._mig_steps import GpuPlan


def of(plans: list[GpuPlan]) -> dict[str, Any]:
    before, after = [], []
    for plan in plans:
        gpu = plan.gpu
        heading = f"{gpu.pci_address} {gpu.name}" + (" (declared, no driver yet)" if gpu.source == "declared" else "")
        stays = {instance.slot for instance in gpu.instances} & set(plan.slots)
        before.append(heading)
        before.append(f"  {_mode(gpu.mode, gpu.pending)}")
        for instance in sorted(gpu.instances, key=lambda one: one.slot.start):
            fate = "kept" if instance.slot in stays else "destroyed"
            state = "" if instance.complete else ", without its full compute instance"
            before.append(f"  {instance.slot} ({fate}{state})")
        if plan.waits_for_reboot:
            after += before[before.index(heading) :]
            continue
        after.append(heading)
        after.append(f"  {_mode(plan.mode, plan.mode)}")
        after += [f"  {slot} ({'kept' if slot in stays else 'created'})" for slot in plan.slots]
    return {"before": "\n".join(before) + "\n", "after": "\n".join(after) + "\n"}


def _mode(current: bool, pending: bool) -> str:
    text = "MIG enabled" if current else "MIG disabled"
    return text if current == pending else f"{text}, {'enabled' if pending else 'disabled'} pending"
