# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: triton_rows
short_description: Makes table rows of replicas and their answers
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Joins replicas with what M(heterogpu.inference.triton_check) returned for them, for P(heterogpu.inference.text_table#filter).
options:
  _input:
    description: Replicas from P(heterogpu.inference.triton_replicas#filter).
    type: list
    elements: dict
    required: true
  node:
    description: Name of the node.
    type: str
    required: true
  address:
    description: Address on which the replicas listen.
    type: str
    required: true
  answers:
    description: The C(servers) of M(heterogpu.inference.triton_check), in the same order.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the answers of one node
  ansible.builtin.debug:
    msg: >-
      {{ resolved | heterogpu.inference.triton_rows(node=inventory_hostname, address='192.0.2.11', answers=check.servers)
        | heterogpu.inference.text_table(['node', 'service', 'answer']) }}
"""

RETURN = r"""
_value:
  description: Rows with C(node), C(gpu), C(instance), C(service), C(endpoint), C(numa_node) and C(answer).
  type: list
  elements: dict
"""

from typing import Any

_SHOWN_VALUES = 4


def triton_rows(replicas: list[dict[str, Any]], node: str, address: str, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "node": node,
            "gpu": device.get("gpus") or device["pci_address"],
            "instance": f"{device['profile']}@{device['start']}" if "profile" in device else "whole GPU",
            "service": replica["service"],
            "endpoint": f"{address}:{replica['http_port']}",
            "numa_node": replica.get("numa_node"),
            "answer": _answer(answer["outputs"]),
        }
        for replica, answer in zip(replicas, answers, strict=True)
        for device in [replica["device"]]
    ]


def _answer(outputs: dict[str, list[Any]]) -> str:
    """The first output stands for all; the comparison has already looked at every value."""
    for name, values in outputs.items():
        shown = " ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values[:_SHOWN_VALUES])
        return f"{name} {shown}{' ...' if len(values) > _SHOWN_VALUES else ''}"
    return "none"


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"triton_rows": triton_rows}
