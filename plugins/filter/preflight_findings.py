# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_findings
short_description: Judges a node before anything is changed
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Compares what was read of a node with what the inventory declares and lists everything that stands in the way.
options:
  _input:
    description: What the preflight role has read of the node.
    type: dict
    required: true
  node:
    description: Name of the node.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Judge the node
  ansible.builtin.set_fact:
    findings: "{{ observed | heterogpu.inference.preflight_findings(node=inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: One dictionary per finding with C(node), C(severity), C(check), C(reason) and C(remedy); errors first.
  type: list
  elements: dict
"""

from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight import findings


def preflight_findings(observed: dict[str, Any], node: str) -> list[dict[str, str]]:
    try:
        return findings(node, observed)
    except (KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"The inventory of {node} is malformed: {type(error).__name__} {error}; compare it with docs/inventory.md."
        ) from None


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"preflight_findings": preflight_findings}
