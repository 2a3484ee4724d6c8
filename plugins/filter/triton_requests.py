# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: triton_requests
short_description: Makes a request and its right answer for Triton replicas
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - For each replica of a reference model, returns the entry of O(heterogpu.inference.triton_check#module:servers) that proves its answer.
    The expected values are computed on the controller, independently of Triton.
options:
  _input:
    description: Replicas from P(heterogpu.inference.triton_replicas#filter).
    type: list
    elements: dict
    required: true
  address:
    description: Address on which the replicas listen.
    type: str
    required: true
  ask:
    description: Whether to put a question. Without one only readiness is awaited, and the model need not be a reference model.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Ask every replica of the node
  heterogpu.inference.triton_check:
    servers: "{{ resolved | heterogpu.inference.triton_requests(address='192.0.2.11') }}"
"""

RETURN = r"""
_value:
  description: Entries for M(heterogpu.inference.triton_check).
  type: list
  elements: dict
"""

from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.heterogpu.inference.plugins.plugin_utils._reference_models import exchange


def triton_requests(replicas: list[dict[str, Any]], address: str, ask: bool = True) -> list[dict[str, Any]]:
    host = f"[{address}]" if ":" in address else address
    try:
        return [{**_server(replica, host), **(_question(replica) if ask else {})} for replica in replicas]
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from None


def _server(replica: dict[str, Any], host: str) -> dict[str, Any]:
    return {"name": replica["name"], "url": f"http://{host}:{replica['http_port']}", "model": replica["model"]}


def _question(replica: dict[str, Any]) -> dict[str, Any]:
    asked = exchange(replica["model"])
    # The reference models answer with the device that they were given: the isolation is part of the right answer.
    return {"inputs": asked["inputs"], "expected": {**asked["expected"], "device": [",".join(replica["visible_devices"])]}}


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"triton_requests": triton_requests}
