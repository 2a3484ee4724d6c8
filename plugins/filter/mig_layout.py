# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: mig_layout
short_description: Says which GPUs a change of geometry concerns, and what stands on them after it
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Shortens the result of M(heterogpu.inference.mig_geometry) to one text per GPU that has steps.
options:
  _input:
    description: The result of the module, from a real run or from check mode.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the GPUs that have changed
  ansible.builtin.debug:
    msg: "{{ geometry | heterogpu.inference.mig_layout }}"
"""

RETURN = r"""
_value:
  description: Text such as C(4g.40gb@0 + 3g.40gb@4) or C(MIG off) by PCI address.
  type: dict
"""

from typing import Any


def mig_layout(result: dict[str, Any]) -> dict[str, str]:
    concerned = {step["gpu"] for step in result["steps"]}
    return {gpu["pci_address"]: _text(gpu) for gpu in result["gpus"] if gpu["pci_address"] in concerned}


def _text(gpu: dict[str, Any]) -> str:
    if gpu["mig_mode"] != "enabled":
        return "MIG off"
    return " + ".join(instance["device"] for instance in gpu["instances"]) or "MIG on, no instance"


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"mig_layout": mig_layout}
