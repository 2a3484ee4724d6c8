# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: plan_replicas
short_description: The replicas of a node of the plan, as the triton role takes them
version_added: 0.1.0
description: Keeps of every replica of a plan's node what the role C(triton) knows of one.
author:
  - heterogpu contributors (@heterogpu)
options:
  _input:
    description: One node of the plan, such as C(plan.nodes['a100-1']).
    type: dict
    required: true
"""

EXAMPLES = r"""
triton_replicas: "{{ placement.plan.nodes[inventory_hostname] | heterogpu.inference.plan_replicas }}"
"""

RETURN = r"""
_value:
  description: A list for C(triton_replicas).
  type: list
  elements: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

KEYS = ("name", "service", "service_class", "model", "http_port", "grpc_port", "metrics_port", "numa_node", "cpus")


def plan_replicas(node: Any) -> list[dict[str, Any]]:
    if not isinstance(node, Mapping) or not isinstance(node.get("replicas"), list):
        raise AnsibleFilterError("plan_replicas needs one node of a plan, such as plan.nodes['a100-1']; the value has no list of replicas.")
    return [{key: replica[key] for key in KEYS} | {"device": _device(replica["device"])} for replica in node["replicas"]]


def _device(device: Mapping[str, Any]) -> dict[str, Any]:
    if "profile" in device:
        return {key: device[key] for key in ("pci_address", "profile", "start")}
    whole = {"gpus": [str(gpu) for gpu in device["gpus"]]}
    return whole | {"share": device["share"]} if "share" in device else whole


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"plan_replicas": plan_replicas}
