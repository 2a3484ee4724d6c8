# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: driver_packages
short_description: Names the driver packages of a system
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Looks up which packages make up a driver version on a distribution and from a source, and what has to be pinned together with them.
options:
  _input:
    description: The exact driver version.
    type: str
    required: true
  system:
    description: Distribution and version, such as C(ubuntu-22.04).
    type: str
    required: true
  source:
    description: Whose package names to use.
    type: str
    choices: [ubuntu, nvidia]
    default: ubuntu
  flavour:
    description: Which kernel module.
    type: str
    choices: [open, proprietary]
    default: proprietary
  nvswitch:
    description: Whether the node has NVSwitches and therefore needs the fabric manager.
    type: bool
    default: false
  kernels:
    description: Releases of the kernels whose headers are missing.
    type: list
    elements: str
    default: []
  explain:
    description: Return the reason in C(problem) instead of failing when the table has no such packages.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show the packages
  ansible.builtin.debug:
    msg: "{{ '580.95.05' | heterogpu.inference.driver_packages(system='ubuntu-22.04') }}"
"""

RETURN = r"""
_value:
  description:
    - A dictionary with C(branch), C(install), C(closure), C(preferences) and C(problem), and with patterns of package names.
    - C(replaces) are other branches and flavours of the source, C(conflicts) the names of other sources, C(kernel) what stays as it is.
    - C(headers) are the packages for O(kernels).
  type: dict
"""

from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.heterogpu.inference.plugins.plugin_utils._driver_packages import PackageTableError
from ansible_collections.heterogpu.inference.plugins.plugin_utils._driver_packages import driver_packages as look_up


def driver_packages(
    version: str,
    *,
    system: str,
    source: str = "ubuntu",
    flavour: str = "proprietary",
    nvswitch: bool = False,
    kernels: list[str] | None = None,
    explain: bool = False,
) -> dict[str, Any]:
    try:
        return {**look_up(system, source, version, flavour, nvswitch, kernels=kernels or []), "problem": ""}
    except PackageTableError as error:
        if explain:
            empty = {key: list[str]() for key in ("install", "closure", "replaces", "conflicts", "kernel", "headers")}
            return {**empty, "branch": "", "preferences": "", "problem": str(error)}
        raise AnsibleFilterError(str(error)) from None


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"driver_packages": driver_packages}
