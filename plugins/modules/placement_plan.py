# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: placement_plan
short_description: Computes geometry and placement of a whole inventory
version_added: 0.1.0
description:
  - Reads the hardware, models and services that the inventory declares for the nodes, checks them, and computes the plan,
    which says what MIG geometry every GPU has, which replica of which service runs on which device with which CPUs and ports,
    and what the gateway's pools are.
  - Runs on the controller and needs no node to be reachable. Once the nodes' facts are at hand they are compared with what is declared.
  - What runs stays where it is. What cannot be placed is refused with the figures and the nearest change that would work.
  - The variables are described in C(docs/inventory.md).
author:
  - heterogpu contributors (@heterogpu)
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.changing
options:
  hosts:
    description: The nodes with GPUs. By default the hosts of the group C(gpu_nodes).
    type: list
    elements: str
  directory:
    description:
      - Folder on the controller for C(plan.json) and C(plan.html), which are written when they change.
      - The C(plan.json) that lies there is the plan in force, unless O(plan_in_force) is given. Without a folder nothing is written.
    type: path
  plan_in_force:
    description: The plan in force.
    type: dict
  records:
    description: Each node's own record of its part of the plan in force, by node. It counts more than the plan of the controller.
    type: dict
    default: {}
  gpu_info:
    description: What M(heterogpu.inference.gpu_info) returned, by node.
    type: dict
    default: {}
  limit:
    description: The only nodes that may change. The plan still covers the whole inventory.
    type: list
    elements: str
  unreachable:
    description: Nodes that do not answer. They are planned like nodes in maintenance.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Compute the plan
  heterogpu.inference.placement_plan:
    directory: "{{ inventory_dir }}/plan"
  run_once: true
  delegate_to: localhost
  register: placement
"""

RETURN = r"""
plan:
  description: The plan, as in C(plan.json).
  returned: always
  type: dict
complete:
  description: Whether nothing was refused.
  returned: always
  type: bool
text:
  description: The plan in words.
  returned: always
  type: str
moves:
  description: Running replicas that change their device, with the reason.
  returned: always
  type: list
  elements: dict
started:
  description: Names of the replicas that the plan in force does not have.
  returned: always
  type: list
  elements: str
stopped:
  description: Replicas that the plan no longer has, with the reason.
  returned: always
  type: list
  elements: dict
geometry_changes:
  description: GPUs whose geometry differs from the plan in force.
  returned: always
  type: list
  elements: dict
drained:
  description: Nodes that hold running replicas and are changed in a way that stops some.
  returned: always
  type: list
  elements: str
blocked:
  description: Services that would have fewer replicas than their C(min_available) while one of RV(drained) is drained.
  returned: always
  type: list
  elements: dict
running:
  description: What draining each node would leave of the services that run now, by node.
  returned: always
  type: dict
differences:
  description: Where the nodes differ from what is declared.
  returned: always
  type: list
  elements: dict
files:
  description: The files that hold the plan.
  returned: when O(directory) is given
  type: list
  elements: str
"""
