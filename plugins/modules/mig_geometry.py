#!/usr/bin/python
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: mig_geometry
short_description: Declares the MIG mode and geometry of all GPUs of a node
version_added: 0.1.0
description:
  - Brings every selected GPU into the declared MIG mode and geometry with the fewest driver calls, or refuses before the first one.
  - Instances that are already there stay where they are. An instance in use is never destroyed.
  - Profiles are resolved by name against what the driver reports for this very GPU, because profile numbers and sizes differ between
    models and driver versions. Placements are chosen by the module, not left to the driver's default.
  - GPU instances without a compute instance, and with partial compute instances, are seen and repaired.
  - When a call fails, the former geometry and MIG mode are restored, or the message says what stands.
author:
  - heterogpu contributors (@heterogpu)
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.changing
requirements:
  - An NVIDIA driver on the node. The Python bindings of NVML are carried from the controller.
  - root (C(become=true)); enabling MIG mode and creating instances are privileged.
options:
  geometry:
    description: What each group of GPUs must look like. A GPU may be selected once.
    type: list
    elements: dict
    required: true
    suboptions:
      gpus:
        description:
          - V(all), an index, a UUID, a PCI address, or a list of these. V(all) means all MIG-capable GPUs of the node.
        type: raw
        required: true
      profiles:
        description:
          - A list of profile names, or a map from name to count. V(3c.3g.40gb) is V(3g.40gb), V(1g.10gb+me) is a profile of its own.
          - A name may end with the memory slice at which the instance must start, such as V(3g.40gb@4).
        type: raw
      mig:
        description: Whether MIG mode is on. V(false) destroys all idle instances of the GPU and excludes O(geometry[].profiles).
        type: bool
        default: true
  unlisted:
    description: What happens to MIG-capable GPUs that no selection names.
    type: str
    choices: [keep, disable]
    default: keep
  allow_empty:
    description: Accept GPUs in MIG mode without instances.
    type: bool
    default: false
  declared_models:
    description:
      - The declared GPUs of the node, used in check mode while no driver is loaded. RV(source) is then V(declared).
      - Each entry has C(model), a name that NVML gives or its short form, and C(count).
    type: list
    elements: dict
    default: []
  paused_services:
    description:
      - Services that keep GPUs open. Those that run are stopped while a GPU changes its MIG mode, and started again in any case,
        by the next run if this one is killed.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds that one driver call may take, and that the module waits for another run on the node.
    type: float
    default: 60
  _nvml_source:
    description: The controller's pynvml, set by the action plugin.
    type: str
  _profile_tables:
    description: MIG profiles by GPU model, set by the action plugin.
    type: dict
    default: {}
  _model_names:
    description: GPU models by each of their names, set by the action plugin.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Two chat instances on each of two GPUs, the others whole
  heterogpu.inference.mig_geometry:
    geometry:
      - gpus: [0, 1]
        profiles: [4g.40gb, 3g.40gb]
    unlisted: disable
  become: true

- name: Seven small instances on one GPU, given by its PCI address
  heterogpu.inference.mig_geometry:
    geometry:
      - gpus: "0000:47:00.0"
        profiles: {1g.10gb: 7}
  become: true
"""

RETURN = r"""
steps:
  description: The calls of the plan in their order, made or in check mode planned.
  returned: success
  type: list
  elements: dict
  sample: [{action: create_gpu_instance, gpu: "0000:07:00.0", device: "3g.40gb@4"}]
disruptive:
  description: Whether the plan destroys an instance or changes a MIG mode.
  returned: success
  type: bool
reboot_required:
  description: Whether a MIG mode becomes current only with a reboot, as in a virtual machine with passed-through GPUs. Run again after it.
  returned: success
  type: bool
mode_changes:
  description: PCI addresses of the GPUs whose MIG mode the plan changes.
  returned: success
  type: list
  elements: str
holders:
  description: By PCI address, who keeps a GPU open whose MIG mode is to change.
  returned: success
  type: dict
reasons:
  description: What of the plan stops work, a sentence each.
  returned: success
  type: list
  elements: str
exact:
  description: The declaration with one entry per declared GPU, by PCI address and with the start of every instance.
  returned: success
  type: list
  elements: dict
devices:
  description: UUID by PCI address and device, such as C(0000:07:00.0/3g.40gb@4), or by PCI address for a GPU without MIG.
  returned: success
  type: dict
devices_known:
  description: Whether C(/run/heterogpu/devices.json), by which services find their device, says the same as RV(devices).
  returned: success
  type: bool
source:
  description: V(nvml), or V(declared) when check mode planned from the declared hardware.
  returned: success
  type: str
gpus:
  description: All GPUs of the node as they are now, in check mode as they would be. From NVML; the NUMA node from sysfs.
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
    numa_node:
      description: NUMA node of the GPU, null if the firmware tells none.
      type: int
    mig_capable:
      description: Whether the GPU has MIG.
      type: bool
    mig_mode:
      description: Current MIG mode, V(enabled) or V(disabled).
      type: str
    mig_mode_pending:
      description: MIG mode after the next reset.
      type: str
    instances:
      description: The instances by their start.
      type: list
      elements: dict
      contains:
        device:
          description: Profile and start, such as V(3g.40gb@4).
          type: str
        profile:
          description: Name of the profile.
          type: str
        start:
          description: First memory slice.
          type: int
        size:
          description: Memory slices.
          type: int
        slices:
          description: Compute slices.
          type: int
        memory_mib:
          description: Memory in MiB.
          type: int
        gpu_instance_id:
          description: Id of the GPU instance, null before it exists.
          type: int
        compute_instance_id:
          description: Id of the compute instance, null before it exists.
          type: int
        uuid:
          description: MIG UUID, new each time the instance is created.
          type: str
        numa_node:
          description: NUMA node of the GPU.
          type: int
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_run import Request, run


def argument_spec() -> dict[str, Any]:
    return {
        "geometry": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "gpus": {"type": "raw", "required": True},
                "profiles": {"type": "raw"},
                "mig": {"type": "bool", "default": True},
            },
        },
        "unlisted": {"type": "str", "choices": ["keep", "disable"], "default": "keep"},
        "allow_empty": {"type": "bool", "default": False},
        "declared_models": {"type": "list", "elements": "dict", "default": []},
        "paused_services": {"type": "list", "elements": "str", "default": []},
        "timeout": {"type": "float", "default": 60},
        "_nvml_source": {"type": "str", "no_log": True},
        "_profile_tables": {"type": "dict", "default": {}},
        "_model_names": {"type": "dict", "default": {}},
    }


def main() -> None:
    module = AnsibleModule(argument_spec(), supports_check_mode=True)

    def reset(pci_address: str) -> tuple[int, str]:
        # NVML has no call that resets a GPU.
        try:
            code, out, err = module.run_command(["nvidia-smi", "--gpu-reset", "-i", pci_address], handle_exceptions=False)
        except OSError as error:
            return 127, f"nvidia-smi cannot be started: {error.strerror}"
        return code, out + err

    parameters = module.params
    request = Request(
        geometry=parameters["geometry"],
        unlisted=parameters["unlisted"],
        allow_empty=parameters["allow_empty"],
        timeout=parameters["timeout"],
        paused_services=parameters["paused_services"],
        nvml_source=parameters["_nvml_source"],
        declared_models=parameters["declared_models"],
        tables=parameters["_profile_tables"],
        model_names=parameters["_model_names"],
    )
    try:
        module.exit_json(**run(request, module.check_mode, reset))
    except GpuError as error:
        module.fail_json(msg=str(error), **error.facts)


if __name__ == "__main__":
    main()
