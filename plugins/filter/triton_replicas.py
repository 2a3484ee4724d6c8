# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: triton_replicas
short_description: Finds the device of every Triton replica
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Adds C(device_key) and C(visible_devices), the UUIDs that CUDA understands, to each replica.
    MIG UUIDs change whenever an instance is made anew, so they are looked up in every run and stored nowhere.
options:
  _input:
    description: The replicas of one node, in the form of C(triton_replicas).
    type: list
    elements: dict
    required: true
  node:
    description: Name of the node.
    type: str
    required: true
  gpus:
    description: The GPUs of the node as M(heterogpu.inference.gpu_info) returns them.
    type: list
    elements: dict
    required: true
  allow_missing:
    description: Put a placeholder where an instance does not exist yet, as in check mode.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Resolve the replicas
  ansible.builtin.set_fact:
    resolved: "{{ triton_replicas | heterogpu.inference.triton_replicas(node=inventory_hostname, gpus=read.gpu_info.gpus) }}"
"""

RETURN = r"""
_value:
  description: The replicas with C(device_key) and C(visible_devices).
  type: list
  elements: dict
"""

from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.heterogpu.inference.plugins.plugin_utils._triton_files import DeviceError, resolve


def triton_replicas(
    replicas: list[dict[str, Any]], node: str, gpus: list[dict[str, Any]], allow_missing: bool = False
) -> list[dict[str, Any]]:
    try:
        return resolve(replicas, node, gpus, allow_missing)
    except DeviceError as error:
        raise AnsibleFilterError(str(error)) from None


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"triton_replicas": triton_replicas}
