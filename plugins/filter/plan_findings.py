# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: plan_findings
short_description: What stands in the way of putting a plan into force
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Turns differences from the hardware, refusals, and services that a drain would leave too small into findings,
    in the form of P(heterogpu.inference.preflight_findings#filter).
options:
  _input:
    description: The result of M(heterogpu.inference.placement_plan).
    type: dict
    required: true
  allow_partial:
    description: Whether services that could not be placed are only warned of.
    type: bool
    default: false
  allow_disruption:
    description: Whether services below their C(min_available) are only warned of.
    type: bool
    default: false
  disrupted:
    description: Nodes that will be drained for other reasons than the plan.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Stop on what the plan refuses
  ansible.builtin.assert:
    that: placement | heterogpu.inference.plan_findings | selectattr('severity', 'eq', 'error') | length == 0
"""

RETURN = r"""
_value:
  description: One dictionary per finding with C(node), C(severity), C(check), C(reason) and C(remedy).
  type: list
  elements: dict
"""

from collections.abc import Callable, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _plan_findings


def plan_findings(
    placement: Any, allow_partial: bool = False, allow_disruption: bool = False, disrupted: Sequence[str] = ()
) -> list[dict[str, str]]:
    try:
        return _plan_findings.plan_findings(placement, allow_partial, allow_disruption, disrupted)
    except (KeyError, TypeError):
        raise AnsibleFilterError("plan_findings needs the result of heterogpu.inference.placement_plan.") from None


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"plan_findings": plan_findings}
