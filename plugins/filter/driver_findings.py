# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: driver_findings
short_description: Judges a driver against the hardware of a node
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Compares the declared driver with the GPUs, which without a driver the PCI bus tells, with Secure Boot and with the life of its branch.
options:
  _input:
    description: What M(heterogpu.inference.gpu_info) returns.
    type: dict
    required: true
  version:
    description: The exact driver version.
    type: str
    required: true
  flavour:
    description: Which kernel module.
    type: str
    choices: [open, proprietary]
    required: true
  branch:
    description: The branch that the version must be of. Empty means any.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show what stands against the driver
  ansible.builtin.debug:
    msg: "{{ result.gpu_info | heterogpu.inference.driver_findings(version='580.95.05', flavour='open') }}"
"""

RETURN = r"""
_value:
  description: A dictionary with the lists C(errors) and C(warnings) of sentences.
  type: dict
"""

from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils._driver_rules import findings


def driver_findings(gpu_info: dict[str, Any], *, version: str, flavour: str, branch: str = "") -> dict[str, list[str]]:
    return findings(gpu_info, version, branch, flavour)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"driver_findings": driver_findings}
