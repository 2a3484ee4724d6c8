# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: boot_files
short_description: Makes the files by which a node brings its GPUs up at boot
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Returns entries for the O(heterogpu.inference.file_set#module:files) option - the program, which is the code of the modules,
    and what it must bring about. The program writes the map of devices, when their files are made.
options:
  geometry:
    description: The C(exact) of M(heterogpu.inference.mig_geometry).
    type: list
    elements: dict
    default: []
  settings:
    description: The C(exact) of M(heterogpu.inference.gpu_settings).
    type: list
    elements: dict
    default: []
  devices:
    description: The C(devices) of M(heterogpu.inference.mig_geometry).
    type: dict
    default: {}
  paused_services:
    description: Services to stop while a GPU changes its MIG mode.
    type: list
    elements: str
    default: []
  driver_timeout:
    description: Seconds to wait for the driver.
    type: float
    default: 120
  timeout:
    description: Seconds that one call of the driver may take.
    type: float
    default: 60
  boot:
    description: With V(false) there is no program, and the map of devices is the only file.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Lay down what the node needs at boot
  heterogpu.inference.file_set:
    files: "{{ lookup('heterogpu.inference.boot_files', geometry=applied.exact, devices=applied.devices) }}"
"""

RETURN = r"""
_raw:
  description: Dictionaries with C(path) and C(content).
  type: list
  elements: dict
"""

from typing import Any

from ansible.plugins.lookup import LookupBase
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _boot_files


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **options: Any) -> list[Any]:
        self.set_options(var_options=variables, direct=options)
        chosen = self.get_options()
        if not chosen["boot"]:
            return [[_boot_files.devices(chosen["devices"])]]
        names = ("paused_services", "driver_timeout", "timeout")
        stated = _boot_files.declaration(chosen["geometry"], chosen["settings"], **{name: chosen[name] for name in names})
        return [[*_boot_files.program(), stated]]
