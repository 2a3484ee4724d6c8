# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: plan_record
short_description: The record that a node keeps of its part of the plan
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Returns the text of the record, which M(heterogpu.inference.placement_plan) reads in the next run.
  - An unchanged part keeps the generation of the previous record, and a board stays known while its driver is away.
options:
  _input:
    description: One node of the plan, such as C(plan.nodes['a100-1']).
    type: dict
    required: true
  generation:
    description: The plan's C(generation).
    type: int
    required: true
  previous:
    description: The record that the node has now.
    type: dict
    default: {}
  gpus:
    description: The GPUs of the node as M(heterogpu.inference.gpu_info) returns them.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Keep the node's part of the plan
  heterogpu.inference.file_set:
    files:
      - path: /etc/heterogpu/plan.json
        content: "{{ plan.nodes[inventory_hostname] | heterogpu.inference.plan_record(generation=plan.generation) }}"
"""

RETURN = r"""
_value:
  description: The record as JSON.
  type: str
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _document, _origin, _record


def plan_record(
    part: Any, generation: int, previous: Mapping[str, Any] | None = None, gpus: Sequence[Mapping[str, Any]] | None = None
) -> str:
    if not isinstance(part, Mapping) or not isinstance(part.get("replicas"), list):
        raise AnsibleFilterError("plan_record needs one node of a plan, such as plan.nodes['a100-1']; the value has no list of replicas.")
    return _document.render(_origin.plain(_record.make(part, int(generation), previous or {}, gpus or [])))


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"plan_record": plan_record}
