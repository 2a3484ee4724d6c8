#!/usr/bin/python
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_info
short_description: Reads everything about the GPUs of a node and what surrounds them
version_added: 0.1.0
description:
  - One call returns the GPUs with their MIG instances, settings, health and processes, NVLink and PCIe topology, InfiniBand adapters,
    NUMA nodes, CPUs, memory, and the driver, CUDA and NCCL that are loaded and installed.
  - Facts come from NVML, sysfs and other files; no command is run. A fact that this GPU, driver or user does not give is null.
  - Without a driver the GPUs and NVSwitches are listed from the PCI bus, and their NVML facts are null.
  - A driver that hangs, and one that does not match its library, are told in RV(gpu_info.driver), not as a failure.
author:
  - heterogpu contributors (@heterogpu)
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.info
requirements:
  - The Python bindings of NVML are carried from the controller; the node needs none.
  - Listing MIG instances and reading the kernel's log need root.
options:
  required:
    description: Fail with one sentence when NVML cannot be used, a GPU is lost or there is none.
    type: bool
    default: false
  timeout:
    description: Seconds that one driver call may take.
    type: float
    default: 60
  _nvml_source:
    description: The controller's pynvml, set by the action plugin.
    type: str
"""

EXAMPLES = r"""
- name: Read the node
  heterogpu.inference.gpu_info:
  register: read
  become: true

- name: Stop unless every GPU can be used
  heterogpu.inference.gpu_info:
    required: true
  become: true
"""

RETURN = r"""
gpu_info:
  description: The node.
  returned: success
  type: dict
  contains:
    gpus:
      description: GPUs in the order of the PCI bus, which is NVML's.
      type: list
      elements: dict
      contains:
        index:
          description: NVML index.
          type: int
        uuid:
          description: UUID. From NVML.
          type: str
        name:
          description: Model name. From NVML.
          type: str
        pci_address:
          description: PCI address in the kernel's spelling.
          type: str
        pci_device_id:
          description: PCI device id. From sysfs.
          type: str
        lost:
          description: Whether the driver cannot reach a GPU that is on the bus.
          type: bool
        serial:
          description: Serial number. From NVML.
          type: str
        minor_number:
          description: Number of C(/dev/nvidiaN). From NVML.
          type: int
        vbios_version:
          description: Version of the video BIOS. From NVML.
          type: str
        architecture:
          description: Architecture in lower case. From NVML.
          type: str
        compute_capability:
          description: CUDA compute capability. From NVML.
          type: str
        memory_mib:
          description: Memory in MiB. From NVML.
          type: int
        memory_used_mib:
          description: Used memory with what the driver reserves in MiB. From NVML.
          type: int
        bar1_mib:
          description: BAR1 memory in MiB. From NVML.
          type: int
        utilization_percent:
          description: Share of time in which a kernel ran; null in MIG mode. From NVML.
          type: int
        numa_node:
          description: NUMA node as the firmware tells it. It is -1 where it tells none. From sysfs.
          type: int
        numa_node_effective:
          description: NUMA node of the GPU or its nearest bridge that has one, or the only node.
          type: int
        numa_cpus:
          description: List of the CPUs near the GPU. From sysfs.
          type: str
        mig:
          description: C(capable), C(mode_current), C(mode_pending) and C(instances), which are null where listing them is not permitted.
          type: dict
        nvlinks:
          description: C(link), C(active), C(version), C(remote_type) and C(remote_pci_address) of each NVLink. From NVML.
          type: list
        settings:
          description: Persistence, compute and ECC mode, power limits in W, clocks in MHz. Locked clocks have no getter in NVML.
          type: dict
        health:
          description:
            - Remapped rows, retired pages, uncorrected ECC errors, Xid errors since boot, reasons for low clocks, PCIe generation and width
              now and at most, NVLink errors, temperature in degrees Celsius.
          type: dict
        processes:
          description: Compute processes with pid, command and instance. From NVML.
          type: list
    nvswitches:
      description: NVSwitches of the PCI bus with C(pci_address), C(pci_device_id) and C(numa_node).
      type: list
    topology:
      description: Distance between any two GPUs by PCI addresses, C(NV) and a number, C(PIX), C(PXB), C(PHB), C(NODE) or C(SYS).
      type: dict
    hcas:
      description:
        - InfiniBand adapters with their ports (C(state), C(rate_gbps), C(link_layer), C(netdev)), NUMA node and distance to each GPU. From sysfs.
      type: list
    nics:
      description: Ethernet interfaces with C(speed_gbps) and NUMA node. From sysfs.
      type: list
    numa_nodes:
      description: NUMA nodes with C(cpus), C(memory_mib), C(distances) and C(hugepages). From sysfs.
      type: list
    cpus:
      description: C(online) list, C(count), C(sockets), C(cores) and C(threads_per_core). From sysfs.
      type: dict
    memory_mib:
      description: Memory of the node in MiB. From procfs.
      type: int
    hugepages:
      description: Huge pages by NUMA node and size in KiB. From sysfs.
      type: list
    driver:
      description:
        - C(state) is V(ok), V(absent), V(not_loaded), V(mismatch), V(hung), V(no_permission) or V(unusable).
        - C(message) says why where the state is not V(ok).
        - C(loaded_version) and C(flavour) are the kernel module's, C(installed_version) is the library's.
        - C(cuda_version) is the newest that the driver runs.
      type: dict
    cuda:
      description: C(toolkits) with path and version, and the C(default) folder.
      type: dict
    nccl:
      description: C(versions) of the installed libraries.
      type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils import _node_facts
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError


def main() -> None:
    module = AnsibleModule(
        {"required": {"type": "bool", "default": False}, "timeout": {"type": "float", "default": 60}, "_nvml_source": {"type": "str"}},
        supports_check_mode=True,
    )
    parameters = module.params
    try:
        facts = _node_facts.read(parameters["_nvml_source"], parameters["timeout"], parameters["required"])
    except GpuError as error:
        module.fail_json(msg=str(error), **error.facts)
    module.exit_json(changed=False, gpu_info=facts)


if __name__ == "__main__":
    main()
