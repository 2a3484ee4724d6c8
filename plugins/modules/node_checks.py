#!/usr/bin/python
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_checks
short_description: Reads what may stand in the way on a GPU node
version_added: 0.1.0
description:
  - One call returns the state of the clock, what turns peer-to-peer traffic of the GPUs aside, who else keeps a driver or a MIG geometry
    on the node, and whether the node asks for a reboot.
  - Reads files, and the kernel's state of the clock; no command is run. Facts of GPUs, kernels and Secure Boot are those of
    M(heterogpu.inference.gpu_info).
author:
  - heterogpu contributors (@heterogpu)
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.info
options:
  space:
    description: What is going to fill file systems.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: A path on the file system; it need not exist yet.
        type: path
        required: true
      mib:
        description: Space that is needed there, in MiB.
        type: int
        required: true
"""

EXAMPLES = r"""
- name: Read the node
  heterogpu.inference.node_checks:
  register: read
  become: true
"""

RETURN = r"""
node_checks:
  description: The node.
  returned: success
  type: dict
  contains:
    space:
      description: The file systems that O(space) names.
      type: list
      elements: dict
      contains:
        path:
          description: Mount point.
          type: str
        needed_mib:
          description: Sum of all needs there.
          type: int
        free_mib:
          description: Space that is free.
          type: int
    clock:
      description: The clock.
      type: dict
      contains:
        synchronised:
          description: Whether the kernel's clock is disciplined, by whichever service; null where the kernel does not tell.
          type: bool
        services:
          description: Services that run and set the clock.
          type: list
          elements: str
        skew_s:
          description:
            - Seconds by which the node is ahead of the controller, at least; negative when it is behind. 0 as long as the difference
              cannot be told from the time that the reading took.
          type: float
    iommu:
      description: IOMMU and PCIe access control services (ACS).
      type: dict
      contains:
        arguments:
          description: Arguments of the running kernel about them.
          type: list
          elements: str
        gpus:
          description: GPUs of the PCI bus.
          type: list
          elements: dict
          contains:
            pci_address:
              description: PCI address.
              type: str
            kernel_driver:
              description: Kernel driver that the device is bound to.
              type: str
            iommu_type:
              description: How the IOMMU treats it, such as V(identity) or V(DMA-FQ); null without an IOMMU.
              type: str
            redirecting_bridges:
              description: Bridges of PCIe switches above it that send requests between GPUs to the root complex. Reading them takes root.
              type: list
              elements: str
    owners:
      description: Who keeps driver and geometry.
      type: dict
      contains:
        driver:
          description: Owners of a driver.
          type: dict
          contains:
            packages:
              description: Installed packages by which a driver comes.
              type: list
              elements: str
            operator:
              description: Files of the GPU Operator, with a driver of its own or without.
              type: list
              elements: str
            operator_driver:
              description: Files and pods of the GPU Operator's driver container.
              type: list
              elements: str
            runfile:
              description: Files of NVIDIA's installer outside of packages.
              type: list
              elements: str
        geometry:
          description: Owners of the MIG geometry.
          type: dict
          contains:
            mig_manager:
              description: The service C(nvidia-mig-manager) with C(installed), C(enabled) and C(active).
              type: dict
            files:
              description: Folders of it.
              type: list
              elements: str
            pods:
              description: Pods of the GPU Operator's MIG manager.
              type: list
              elements: str
        kubelet:
          description: Whether the node is set up for Kubernetes.
          type: bool
    reboot:
      description: Whether the distribution asks for a reboot.
      type: dict
      contains:
        required:
          description: Whether it does.
          type: bool
        packages:
          description: Packages that asked.
          type: list
          elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils import _free_space, _node_checks


def main() -> None:
    need = {"path": {"type": "path", "required": True}, "mib": {"type": "int", "required": True}}
    module = AnsibleModule({"space": {"type": "list", "elements": "dict", "options": need, "default": []}}, supports_check_mode=True)
    needs = [_free_space.SpaceNeed(entry["path"], entry["mib"]) for entry in module.params["space"]]
    space = [filesystem.as_dict() for filesystem in _free_space.compare(needs)]
    module.exit_json(changed=False, node_checks={**_node_checks.read(), "space": space})


if __name__ == "__main__":
    main()
