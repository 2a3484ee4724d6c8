#!/usr/bin/python
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_settings
short_description: Declares persistence, compute and ECC mode, power limit and locked clocks of the GPUs of a node
version_added: 0.1.0
description:
  - Sets what differs from the declaration on every selected GPU, or refuses before the first call what a GPU cannot do.
    A setting that is not declared is left alone.
  - NVML does not tell to what clocks are locked. What the module has locked is recorded under C(/run) with the boot and the load of the
    driver. Where nothing is recorded the clocks are set once. Clocks are therefore reported as not verifiable.
  - ECC changes with the next reboot; until then RV(reboot_required) is true.
  - All but ECC is lost with a reboot or a reload of the driver. The role P(heterogpu.inference.mig#role) brings it back at boot.
  - When a call fails, the former settings are restored, or the message says what could not be.
author:
  - heterogpu contributors (@heterogpu)
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.changing
requirements:
  - An NVIDIA driver on the node. The Python bindings of NVML are carried from the controller.
  - root (C(become=true)).
options:
  settings:
    description: What each group of GPUs must be set to. A GPU may be selected once.
    type: list
    elements: dict
    required: true
    suboptions:
      gpus:
        description: V(all), an index, a UUID, a PCI address, or a list of these.
        type: raw
        required: true
      persistence:
        description: Persistence mode. Without it the driver forgets power limit and clocks of a GPU that nobody uses.
        type: bool
      compute_mode:
        description: Who may use a GPU at the same time. A GPU in MIG mode has V(default) only.
        type: str
        choices: [default, exclusive_process, prohibited]
      ecc:
        description: Whether memory has error correction.
        type: bool
      power_limit_w:
        description: Watts within the limits that the GPU reports, or V(default).
        type: raw
      graphics_clocks_mhz:
        description: Lowest and highest graphics clock in MHz as a list, one number for both, or V(unlocked).
        type: raw
      memory_clocks_mhz:
        description: Lowest and highest memory clock in MHz as a list, one number for both, or V(unlocked). Since Ampere.
        type: raw
  timeout:
    description: Seconds that one driver call may take, and that the module waits for another run on the node.
    type: float
    default: 60
  _nvml_source:
    description: The controller's pynvml, set by the action plugin.
    type: str
"""

EXAMPLES = r"""
- name: Even power and clocks for reproducible latency
  heterogpu.inference.gpu_settings:
    settings:
      - gpus: all
        persistence: true
        power_limit_w: 300
        graphics_clocks_mhz: [1200, 1410]
  become: true
"""

RETURN = r"""
steps:
  description: The settings that were changed in their order, or in check mode would be.
  returned: success
  type: list
  elements: dict
  sample: [{action: set, gpu: "0000:07:00.0", setting: power_limit_w, before: 400, after: 300, verifiable: true}]
disruptive:
  description: Whether the plan needs a reboot to become effective, as ECC does.
  returned: success
  type: bool
reboot_required:
  description: Whether a declared ECC mode is pending.
  returned: success
  type: bool
reasons:
  description: What of the plan needs a reboot, a sentence each.
  returned: success
  type: list
  elements: str
source:
  description: V(nvml), or V(none) in check mode on a node without a driver, where nothing can be known of its GPUs.
  returned: success
  type: str
exact:
  description: The declaration with one entry per GPU, by PCI address.
  returned: success
  type: list
  elements: dict
gpus:
  description: All GPUs of the node as they are now, in check mode as they would be.
  returned: success
  type: list
  elements: dict
  contains:
    index:
      description: NVML index.
      type: int
    pci_address:
      description: PCI address in the kernel's spelling.
      type: str
    name:
      description: Model name that NVML gives.
      type: str
    uuid:
      description: UUID of the GPU.
      type: str
    persistence:
      description: Persistence mode.
      type: bool
    compute_mode:
      description: Compute mode.
      type: str
    ecc:
      description: Whether ECC is on, null where the GPU has none.
      type: bool
    ecc_pending:
      description: Whether ECC will be on after the next reboot.
      type: bool
    power_limit_w:
      description: Power limit in watts.
      type: float
    power_limit_default_w:
      description: Power limit after a load of the driver.
      type: float
    power_limit_range_w:
      description: Lowest and highest power limit.
      type: list
      elements: float
    graphics_clock_max_mhz:
      description: Highest graphics clock.
      type: int
    memory_clocks_supported_mhz:
      description: Clocks that the memory can have.
      type: list
      elements: int
    graphics_clocks_mhz:
      description:
        - In C(value) to what the graphics clocks were locked, V(unlocked), or null where that is unknown.
        - C(verifiable) is false, because NVML has no getter.
      type: dict
    memory_clocks_mhz:
      description: The same of the memory clocks.
      type: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError
from ansible_collections.heterogpu.inference.plugins.module_utils._settings_run import Request, run


def argument_spec() -> dict[str, Any]:
    return {
        "settings": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "gpus": {"type": "raw", "required": True},
                "persistence": {"type": "bool"},
                "compute_mode": {"type": "str", "choices": ["default", "exclusive_process", "prohibited"]},
                "ecc": {"type": "bool"},
                "power_limit_w": {"type": "raw"},
                "graphics_clocks_mhz": {"type": "raw"},
                "memory_clocks_mhz": {"type": "raw"},
            },
        },
        "timeout": {"type": "float", "default": 60},
        "_nvml_source": {"type": "str", "no_log": True},
    }


def main() -> None:
    module = AnsibleModule(argument_spec(), supports_check_mode=True)
    request = Request(module.params["settings"], module.params["timeout"], module.params["_nvml_source"])
    try:
        module.exit_json(**run(request, module.check_mode))
    except GpuError as error:
        module.fail_json(msg=str(error), **error.facts)


if __name__ == "__main__":
    main()
