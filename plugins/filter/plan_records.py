# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: plan_records
short_description: The records that a node keeps of its part of the plan
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Returns the files that differ from what the node has, for O(heterogpu.inference.file_set#module:files). An empty list means that
    the node is up to date.
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
  before:
    description: What M(heterogpu.inference.node_record) has returned of the node.
    type: dict
    required: true
  gpus:
    description: The GPUs of the node as M(heterogpu.inference.gpu_info) returns them.
    type: list
    elements: dict
    default: []
  packages:
    description: The packages of every set, once the plan was applied and proven. What had worked before is kept then, to return to it.
    type: dict
  returned:
    description: Whether the plan is a former one. What is kept to return to stays then, so that returning twice is returning once.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Keep the node's part of the plan
  heterogpu.inference.file_set:
    files: "{{ plan.nodes[inventory_hostname] | heterogpu.inference.plan_records(generation=plan.generation, before=records) }}"
"""

RETURN = r"""
_value:
  description: Files with C(path) and C(content).
  type: list
  elements: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.heterogpu.inference.plugins.module_utils._node_record import RECORDS
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _document, _origin, _record


def plan_records(
    part: Any,
    generation: int,
    before: Mapping[str, Any],
    gpus: Sequence[Mapping[str, Any]] | None = None,
    *,
    packages: Mapping[str, Any] | None = None,
    returned: bool = False,
) -> list[dict[str, str]]:
    if not isinstance(part, Mapping) or not isinstance(part.get("replicas"), list):
        raise AnsibleFilterError("plan_records needs one node of a plan, such as plan.nodes['a100-1']; the value has no list of replicas.")
    found = _record.after(_origin.plain(part), int(generation), _origin.plain(before), _origin.plain(gpus or []), _origin.plain(packages))
    if returned:
        found.pop("previous", None)
    return [{"path": RECORDS[name], "content": _document.render(record)} for name, record in found.items()]


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"plan_records": plan_records}
