# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in the way of putting a plan into force, as findings. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

CLUSTER = "(cluster)"


def plan_findings(
    placement: Mapping[str, Any], allow_partial: bool = False, allow_disruption: bool = False, disrupted: Collection[str] = ()
) -> list[dict[str, str]]:
    """`placement` is the result of placement_plan; `disrupted` are nodes that will be drained whatever the plan says."""
    return [
        *_differences(placement),
        *_refusals(placement["plan"], allow_partial),
        *_disruption(placement, allow_disruption, disrupted),
    ]


def _differences(placement: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for difference in placement["differences"]:
        name = difference["node"]
        reason, _stop, remedy = difference["sentence"].removeprefix(f"{name}: ").partition(". ")
        yield _finding(name, "error" if difference["error"] else "warning", "declared hardware", f"{reason}.", remedy)


def _refusals(plan: Mapping[str, Any], allow_partial: bool) -> Iterator[dict[str, str]]:
    for refusal in plan["refusals"]:
        node = refusal.get("node", CLUSTER)
        reason = refusal["sentence"].removesuffix(refusal["remedy"]).strip()
        if refusal.get("node"):
            reason = reason.removeprefix(f"{node}: ")
        # A node that no rule lets into the plan is a fault of the inventory; only services may be left out on purpose.
        severe = "node" in refusal or not allow_partial
        partial = "" if "node" in refusal or allow_partial else " Or set plan_allow_partial to put into force what could be placed."
        yield _finding(node, "error" if severe else "warning", "plan", reason, refusal["remedy"] + partial)


def _disruption(placement: Mapping[str, Any], allowed: bool, disrupted: Collection[str]) -> Iterator[dict[str, str]]:
    for name in sorted({*placement["drained"], *disrupted}):
        for row in placement["running"].get(name, ()):
            if not row["enough"]:
                left = f"{row['service']} with {row['replicas_left']} replicas"
                yield _finding(
                    name,
                    "warning" if allowed else "error",
                    "min_available",
                    f"Draining it leaves {left}, fewer than its min_available of {row['min_available']}.",
                    "Lower min_available, add replicas elsewhere first, or set plan_allow_disruption.",
                )


def _finding(node: str, severity: str, check: str, reason: str, remedy: str) -> dict[str, str]:
    return {"node": node, "severity": severity, "check": check, "reason": reason, "remedy": remedy}
