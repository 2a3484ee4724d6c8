# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_cluster
short_description: Judges the nodes together before anything is changed
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Lists what no node can tell alone, such as that none of them answers or that they are declared with several driver branches.
options:
  _input:
    description: One dictionary per node with C(node), C(state), C(reached) and C(driver_version).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Judge the nodes together
  ansible.builtin.debug:
    msg: "{{ nodes | heterogpu.inference.preflight_cluster }}"
  vars:
    nodes:
      - {node: a100-1, state: active, reached: true, driver_version: 595.45.04}
      - {node: v100-1, state: active, reached: true, driver_version: 580.95.05}
"""

RETURN = r"""
_value:
  description: Findings as those of P(heterogpu.inference.preflight_findings#filter), with V((cluster\)) for the node.
  type: list
  elements: dict
"""

from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight_cluster import cluster_findings


def preflight_cluster(nodes: list[dict[str, Any]]) -> list[dict[str, str]]:
    return cluster_findings(nodes)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"preflight_cluster": preflight_cluster}
