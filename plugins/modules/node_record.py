#!/usr/bin/python
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_record
short_description: Keeps on a node who changes it, whether it is drained, and its part of the plan
version_added: 0.1.0
description:
  - Takes and gives back the lease that keeps a second run off the node. A run on the same controller that has ended without giving
    its lease back (because it was killed) loses it at once, any other run when the lease expires.
  - Marks the node as drained or active. A node that an administrator has drained stays so until an administrator puts it back.
  - Returns the node's records of the plan, which M(heterogpu.inference.placement_plan) reads.
  - Neither drains nor starts anything itself; the playbooks do.
author:
  - heterogpu contributors (@heterogpu)
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.changing
options:
  lease:
    description:
      - V(take) it, V(release) it, or V(keep) things as they are. The lease itself is no change of the node.
      - In check mode V(take) only looks whether another run has the node.
    type: str
    choices: [keep, take, release]
    default: keep
  lease_minutes:
    description: Minutes after which the lease ends by itself.
    type: int
    default: 240
  lease_break:
    description: Take the lease from a run that is gone.
    type: bool
    default: false
  drain:
    description: What the node is to be marked as.
    type: str
    choices: [keep, drained, active]
    default: keep
  drain_by:
    description: Whether the run of a playbook or an administrator asks.
    type: str
    choices: [site, administrator]
    default: site
  reason:
    description: Why the node is drained, for people who look.
    type: str
    default: ""
  services:
    description: Services that were stopped for the drain and have to be started again.
    type: list
    elements: str
    default: []
  _owner:
    description: The run that asks, set by the action plugin.
    type: dict
    default: {id: unknown}
  _dead:
    description: Runs that have ended without giving their lease back, set by the action plugin.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Take the node
  heterogpu.inference.node_record:
    lease: take

- name: Mark the node as drained
  heterogpu.inference.node_record:
    drain: drained
    reason: driver 580.95.05 to 580.173.02
"""

RETURN = r"""
lease:
  description: The lease now, with C(user), C(host), C(pid), C(id) and C(expires) (seconds since 1970); empty when there is none.
  returned: success
  type: dict
drain:
  description: The drain now.
  returned: success
  type: dict
  contains:
    state:
      description: C(drained) or C(active).
      type: str
    by:
      description: C(site), C(administrator) or null.
      type: str
    reason:
      description: Why.
      type: str
    services:
      description: Services to be started again.
      type: list
      elements: str
record:
  description: The node's part of the plan in force; empty when there is none.
  returned: success
  type: dict
verified:
  description: The record of the last run that ended well.
  returned: success
  type: dict
previous:
  description: The record before RV(verified).
  returned: success
  type: dict
holder:
  description: The lease of the other run.
  returned: when another run holds the node
  type: dict
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils import _node_record
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError

LEASE = f"{_node_record.FOLDER}/lease.json"
DRAIN = f"{_node_record.FOLDER}/drain.json"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "lease": {"type": "str", "choices": ["keep", "take", "release"], "default": "keep"},
            "lease_minutes": {"type": "int", "default": 240},
            "lease_break": {"type": "bool", "default": False},
            "drain": {"type": "str", "choices": ["keep", "drained", "active"], "default": "keep"},
            "drain_by": {"type": "str", "choices": ["site", "administrator"], "default": "site"},
            "reason": {"type": "str", "default": ""},
            "services": {"type": "list", "elements": "str", "default": []},
            # The action plugin of the same name fills these in.
            "_owner": {"type": "dict", "default": {"id": "unknown"}},
            "_dead": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**run(module.params, module.check_mode))
    except GpuError as error:
        module.fail_json(msg=str(error), **error.facts)
    except OSError as error:
        module.fail_json(msg=f"The state below {_node_record.FOLDER} cannot be written: {error}; repair the file system and run again.")


def run(params: dict, check_mode: bool) -> dict:
    records = {name: _node_record.read(path) for name, path in _node_record.RECORDS.items()}
    if check_mode:
        lease, drain, before = _after(params)
        lease = _node_record.read(LEASE)
    else:
        with _node_record.locked():
            lease, drain, before = _after(params)
            if lease != _node_record.read(LEASE):
                _node_record.write(LEASE, lease or None)
            if drain != before:
                _node_record.write(DRAIN, drain if drain["state"] == "drained" else None)
    return {
        "changed": drain != before,
        "lease": lease,
        "drain": drain,
        "diff": {"before": _line(before), "after": _line(drain)},
        **records,
    }


def _after(params: dict) -> tuple:
    lease, before = _node_record.read(LEASE), {**_node_record.ACTIVE, **_node_record.read(DRAIN)}
    drain = before
    if params["drain"] != "keep":
        drain = _node_record.drain_after(before, params["drain"], params["drain_by"], params["reason"], params["services"])
    if params["lease"] == "take":
        owner = params["_owner"]
        lease = _node_record.lease_after_take(
            lease, owner, params["lease_minutes"], time.time(), dead=params["_dead"], by_force=params["lease_break"]
        )
    elif params["lease"] == "release":
        lease = _node_record.lease_after_release(lease, params["_owner"])
    return lease, drain, before


def _line(drain: dict) -> str:
    if drain["state"] == "active":
        return "active\n"
    return f"drained by {drain['by']}: {drain['reason']}\n"


if __name__ == "__main__":
    main()
