#!/usr/bin/python
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: triton_check
short_description: Waits for Triton models and compares their answers
version_added: 0.1.0
description:
  - Waits until every declared model is ready in its server, sends the declared request and compares the answer with the expected one.
  - All servers share one deadline, so that the module ends after O(timeout) seconds and a few requests, however many servers there are.
  - Changes nothing.
author:
  - heterogpu contributors (@heterogpu)
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.info
options:
  servers:
    description: The servers to ask.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the replica, for messages.
        type: str
        required: true
      url:
        description: Base address of the HTTP service.
        type: str
        required: true
      model:
        description: Name of the model.
        type: str
        required: true
      inputs:
        description: Input tensors in the form of the KServe v2 protocol. Without them only readiness is awaited.
        type: list
        elements: dict
        default: []
      expected:
        description: Flat list of values per output tensor. Outputs that are not named here are not compared.
        type: dict
        default: {}
      tolerance:
        description: Largest relative difference between two numbers that still counts as equal.
        type: float
        default: 1.0e-9
  timeout:
    description: Seconds to wait for readiness of all models together.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Wait for one replica
  heterogpu.inference.triton_check:
    servers:
      - name: chat-0
        url: http://192.0.2.11:8000
        model: token_scorer
"""

RETURN = r"""
servers:
  description: One entry per server, in the order of the option.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name of the replica.
      type: str
    ready:
      description: Whether the model answered on its ready URL.
      type: bool
    outputs:
      description: Flat values per output tensor; empty when nothing was asked.
      type: dict
    problem:
      description: What is wrong, as a sentence, or null.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils._triton_client import Request, check

_SERVER = {
    "name": {"type": "str", "required": True},
    "url": {"type": "str", "required": True},
    "model": {"type": "str", "required": True},
    "inputs": {"type": "list", "elements": "dict", "default": []},
    "expected": {"type": "dict", "default": {}},
    "tolerance": {"type": "float", "default": 1.0e-9},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "servers": {"type": "list", "elements": "dict", "options": _SERVER, "required": True},
            "timeout": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    answers = check([Request(**entry) for entry in module.params["servers"]], module.params["timeout"])
    result = {"changed": False, "servers": [answer.as_dict() for answer in answers]}
    problems = [answer.problem for answer in answers if answer.problem]
    if problems:
        module.fail_json(msg=" ".join(problems), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
