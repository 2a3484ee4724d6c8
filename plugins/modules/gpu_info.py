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
  - A driver that hangs, one that does not match its library, a lost GPU and a node without GPUs are told in the result, not as a failure,
    unless O(required=true).
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
    description: Seconds that reading one GPU may take. A driver that takes longer is reported as V(hung).
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
      description:
        - GPUs in the order of the PCI bus, which is NVML's. Those that only the bus shows are among them, with null for what NVML tells.
      type: list
      elements: dict
      contains:
        index:
          description: Index. From NVML; null for a GPU that NVML does not list.
          type: int
        uuid:
          description: UUID. From NVML.
          type: str
        name:
          description: Model name. From NVML.
          type: str
        pci_address:
          description: PCI address in the kernel's spelling, such as V(0000:07:00.0). Null for a lost GPU that has left the bus.
          type: str
        pci_device_id:
          description: PCI device id, such as V(0x20b2). From NVML or sysfs.
          type: str
        kernel_driver:
          description: Kernel driver that the device is bound to, such as V(nvidia) or V(vfio-pci). From sysfs.
          type: str
        lost:
          description:
            - Whether the driver has lost the GPU. Null while NVML cannot be used, false for a GPU that is bound to another kernel driver.
          type: bool
        errors:
          description: NVML functions that failed for another reason than not being supported or permitted, with the name of the error.
          type: dict
        serial:
          description: Serial number of the board. From NVML.
          type: str
        minor_number:
          description: Number in C(/dev/nvidiaN). From NVML.
          type: int
        vbios_version:
          description: Version of the video BIOS. From NVML.
          type: str
        architecture:
          description: Architecture, such as V(volta) or V(ampere). From NVML.
          type: str
        compute_capability:
          description: CUDA compute capability, such as V(8.0). From NVML.
          type: str
        virtualization:
          description: V(none), V(passthrough), V(vgpu), V(host_vgpu) or V(host_vsga). From NVML.
          type: str
        memory_mib:
          description: Memory in MiB, with what the driver keeps for itself. From NVML.
          type: int
        memory_used_mib:
          description: Used memory in MiB, with what the driver keeps for itself. From NVML.
          type: int
        bar1_mib:
          description: Size of the BAR1 window in MiB. From NVML.
          type: int
        utilization_percent:
          description: Share of the last sample period in which a kernel ran, in percent. Null in MIG mode. From NVML.
          type: int
        numa_node:
          description: NUMA node as the firmware tells it, which is -1 where it tells none. From sysfs.
          type: int
        numa_node_effective:
          description:
            - RV(gpu_info.gpus[].numa_node), or where that is -1 the one of the nearest PCI bridge that has one, or the only node of the
              machine. Null where neither helps.
          type: int
        numa_cpus:
          description: CPUs near the GPU as a list with ranges, such as V(0-31,64-95). From sysfs.
          type: str
        mig:
          description: MIG state. From NVML.
          type: dict
          contains:
            capable:
              description: Whether the GPU has MIG.
              type: bool
            mode_current:
              description: V(enabled) or V(disabled).
              type: str
            mode_pending:
              description: Mode after the next reset, V(enabled) or V(disabled).
              type: str
            instances:
              description:
                - GPU instances by their start, those without a compute instance among them. Null where listing them is not permitted,
                  which takes root.
              type: list
              elements: dict
              contains:
                profile:
                  description: Name of the profile, such as V(3g.40gb).
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
                  description: Id of the GPU instance.
                  type: int
                uuid:
                  description: MIG UUID of the compute instance that fills the GPU instance; null where there is none or several.
                  type: str
                compute_instances:
                  description: Compute instances. Empty for a GPU instance that nothing can run on.
                  type: list
                  elements: dict
                  contains:
                    compute_instance_id:
                      description: Id within the GPU instance.
                      type: int
                    profile:
                      description: Name of the profile, such as V(3g.40gb) or V(1c.3g.40gb).
                      type: str
                    full:
                      description: Whether it fills the GPU instance.
                      type: bool
                    start:
                      description: First compute slice within the GPU instance.
                      type: int
                    uuid:
                      description: MIG UUID.
                      type: str
        nvlinks:
          description: NVLinks. Empty for a GPU without. From NVML.
          type: list
          elements: dict
          contains:
            link:
              description: Number of the link.
              type: int
            active:
              description: Whether the link is up.
              type: bool
            version:
              description: Version of NVLink as NVML counts it.
              type: int
            remote_type:
              description: V(gpu), V(npu) or V(switch).
              type: str
            remote_pci_address:
              description: PCI address of the other end.
              type: str
            errors:
              description: Replays, recoveries, CRC and ECC errors since the driver was loaded, together.
              type: int
        settings:
          description: What can be set, as it is. From NVML, which has no getter for locked clocks.
          type: dict
          contains:
            persistence_mode:
              description: Persistence mode.
              type: bool
            compute_mode:
              description: V(default), V(exclusive_process), V(exclusive_thread) or V(prohibited).
              type: str
            ecc_mode_current:
              description: ECC now.
              type: bool
            ecc_mode_pending:
              description: ECC after the next reboot or reset.
              type: bool
            power_limit_w:
              description: Power limit in W.
              type: float
            power_limit_default_w:
              description: Power limit that the board comes with in W.
              type: float
            power_limit_min_w:
              description: Lowest power limit that can be set in W.
              type: float
            power_limit_max_w:
              description: Highest power limit that can be set in W.
              type: float
            graphics_clock_mhz:
              description: Graphics clock now in MHz.
              type: int
            graphics_clock_max_mhz:
              description: Highest graphics clock in MHz.
              type: int
            memory_clock_mhz:
              description: Memory clock now in MHz.
              type: int
            memory_clock_max_mhz:
              description: Highest memory clock in MHz.
              type: int
        health:
          description:
            - Signs of a failing GPU. From NVML where nothing else is said. GPUs since Ampere remap rows, older ones retire pages; what
              does not apply is null.
          type: dict
          contains:
            remapped_rows_correctable:
              description: Rows remapped for correctable errors.
              type: int
            remapped_rows_uncorrectable:
              description: Rows remapped for uncorrectable errors.
              type: int
            remapped_rows_pending:
              description: Whether rows will be remapped at the next reset.
              type: bool
            remapped_rows_failed:
              description: Whether a row could not be remapped, so that the board has to be replaced.
              type: bool
            retired_pages_single_bit:
              description: Pages retired for several single bit errors.
              type: int
            retired_pages_double_bit:
              description: Pages retired for a double bit error.
              type: int
            retired_pages_pending:
              description: Whether pages will be retired at the next reboot.
              type: bool
            ecc_uncorrected:
              description: Uncorrectable ECC errors since the driver was loaded.
              type: int
            ecc_uncorrected_lifetime:
              description: Uncorrectable ECC errors in the life of the board.
              type: int
            xid_since_boot:
              description:
                - Xid errors in the kernel's log, in the order of their first appearance. From C(/dev/kmsg), a ring that reaches back to
                  the boot unless it overflowed; null where it cannot be read.
              type: list
              elements: dict
              contains:
                xid:
                  description: Number of the error.
                  type: int
                count:
                  description: How often it was logged.
                  type: int
            throttle_reasons:
              description:
                - Why clocks are below their maximum, such as V(sw_power_cap), V(hw_slowdown), V(hw_thermal_slowdown) or
                  V(sw_thermal_slowdown). V(gpu_idle) and V(applications_clocks_setting) are no faults.
              type: list
              elements: str
            pcie_generation_current:
              description: PCIe generation now. An idle GPU lowers it.
              type: int
            pcie_generation_max:
              description: Highest PCIe generation of GPU and slot together.
              type: int
            pcie_width_current:
              description: PCIe lanes now.
              type: int
            pcie_width_max:
              description: PCIe lanes of GPU and slot together. More than now is a fault.
              type: int
            nvlink_errors:
              description: Errors of all NVLinks together.
              type: int
            temperature_c:
              description: Temperature in degrees Celsius.
              type: int
        processes:
          description: Compute processes. Empty where there are none. From NVML.
          type: list
          elements: dict
          contains:
            pid:
              description: Process id.
              type: int
            command:
              description: Name of the program. From procfs; null for a process of another container.
              type: str
            used_memory_mib:
              description: GPU memory in MiB.
              type: int
            gpu_instance_id:
              description: GPU instance; null outside of MIG.
              type: int
            compute_instance_id:
              description: Compute instance; null outside of MIG.
              type: int
    nvswitches:
      description: NVSwitches of the PCI bus. From sysfs.
      type: list
      elements: dict
      contains:
        pci_address:
          description: PCI address.
          type: str
        pci_device_id:
          description: PCI device id.
          type: str
        numa_node:
          description: NUMA node as the firmware tells it.
          type: int
        numa_node_effective:
          description: NUMA node as for GPUs.
          type: int
    topology:
      description: Distances between GPUs. In each matrix the keys of rows and columns are PCI addresses.
      type: dict
      contains:
        levels:
          description:
            - The shorter way, as C(nvidia-smi topo -m) writes it. V(NV12) is a number of NVLinks; the others are those of
              RV(gpu_info.topology.pcie).
          type: dict
        pcie:
          description:
            - PCIe distance. V(X) the GPU itself, V(PIX) one PCIe switch, V(PXB) several, V(PHB) one host bridge, V(NODE) one NUMA node,
              V(SYS) across NUMA nodes. From the device tree in sysfs.
          type: dict
        nvlinks:
          description: Number of active NVLinks, direct or through NVSwitches. Null where NVML cannot be used.
          type: dict
    hcas:
      description: InfiniBand and RoCE adapters. From sysfs.
      type: list
      elements: dict
      contains:
        device:
          description: Name, such as V(mlx5_0).
          type: str
        pci_address:
          description: PCI address.
          type: str
        pci_device_id:
          description: PCI device id.
          type: str
        firmware_version:
          description: Version of the firmware.
          type: str
        virtual_function:
          description: Whether it is a virtual function of another adapter.
          type: bool
        numa_node:
          description: NUMA node as the firmware tells it.
          type: int
        numa_node_effective:
          description: NUMA node as for GPUs.
          type: int
        distance_to_gpus:
          description: PCIe distance by PCI address of the GPU, in the words of RV(gpu_info.topology.pcie).
          type: dict
        ports:
          description: Ports.
          type: list
          elements: dict
          contains:
            port:
              description: Number of the port.
              type: int
            state:
              description: Logical state, such as V(ACTIVE) or V(DOWN).
              type: str
            physical_state:
              description: Physical state, such as V(LinkUp) or V(Polling).
              type: str
            rate_gbps:
              description: Rate in Gbit/s.
              type: float
            link_layer:
              description: V(InfiniBand) or V(Ethernet).
              type: str
            netdev:
              description: Network interface.
              type: str
    nics:
      description: Ethernet interfaces of PCI devices. From sysfs.
      type: list
      elements: dict
      contains:
        netdev:
          description: Network interface.
          type: str
        pci_address:
          description: PCI address.
          type: str
        numa_node:
          description: NUMA node as the firmware tells it.
          type: int
        numa_node_effective:
          description: NUMA node as for GPUs.
          type: int
        speed_gbps:
          description: Speed in Gbit/s; null while the link is down.
          type: float
        state:
          description: Operational state, such as V(up) or V(down).
          type: str
    numa_nodes:
      description: NUMA nodes. From sysfs.
      type: list
      elements: dict
      contains:
        id:
          description: Number of the node.
          type: int
        cpus:
          description: CPUs as a list with ranges.
          type: str
        cores:
          description: CPUs of each core, such as V(0,64); what stands together are SMT siblings.
          type: list
          elements: str
        memory_mib:
          description: Memory in MiB.
          type: int
        distances:
          description: Distances to all nodes in their order.
          type: list
          elements: int
        hugepages:
          description: Huge pages.
          type: list
          elements: dict
          contains:
            size_kib:
              description: Size of a page in KiB.
              type: int
            total:
              description: Reserved pages.
              type: int
            free:
              description: Pages that nobody uses.
              type: int
    cpus:
      description: CPUs of the node. From sysfs.
      type: dict
      contains:
        online:
          description: Online CPUs as a list with ranges.
          type: str
        count:
          description: Number of online CPUs.
          type: int
        sockets:
          description: Number of sockets.
          type: int
        cores:
          description: Number of cores.
          type: int
        threads_per_core:
          description: CPUs of a core.
          type: int
    memory_mib:
      description: Memory of all NUMA nodes in MiB. From sysfs, or procfs on a kernel without NUMA.
      type: int
    hugepages:
      description: Huge pages of all NUMA nodes. From sysfs.
      type: list
      elements: dict
      contains:
        numa_node:
          description: NUMA node.
          type: int
        size_kib:
          description: Size of a page in KiB.
          type: int
        total:
          description: Reserved pages.
          type: int
        free:
          description: Pages that nobody uses.
          type: int
    driver:
      description: The NVIDIA driver.
      type: dict
      contains:
        state:
          description:
            - V(ok), V(absent), V(not_loaded), V(mismatch) of module and library, V(hung), V(no_permission) or V(unusable). From NVML's
              answer.
          type: str
        message:
          description: What is wrong and what to do, in a sentence; null for V(ok).
          type: str
        loaded_version:
          description: Version of the loaded kernel module. From NVML or procfs.
          type: str
        installed_version:
          description:
            - Version of the installed library, which the next boot's module must have. From the name of C(libnvidia-ml.so.1)'s file.
          type: str
        flavour:
          description: V(open) or V(proprietary) for the loaded kernel module. From procfs.
          type: str
        modules:
          description: Loaded kernel modules of the driver, such as V(nvidia_uvm) and V(nvidia_peermem). From sysfs.
          type: list
          elements: str
        nvml_version:
          description: Version of NVML. From NVML.
          type: str
        cuda_version:
          description: Newest CUDA version that the driver runs. From NVML.
          type: str
        kernels:
          description: The running kernel and those that may boot next. From C(/lib/modules) and C(/boot).
          type: list
          elements: dict
          contains:
            release:
              description: Release of the kernel.
              type: str
            running:
              description: Whether it runs now.
              type: bool
            module_version:
              description: Version of the driver's module for it; null if there is none. From DKMS, else from the module.
              type: str
            headers:
              description: Whether modules can be built for it.
              type: bool
            packaged:
              description: Whether it came with a package C(linux-image-…) of this release.
              type: bool
        nouveau_loaded:
          description: Whether the kernel's own driver for NVIDIA GPUs is loaded. From sysfs.
          type: bool
        secure_boot:
          description: Secure Boot. From EFI variables.
          type: dict
          contains:
            enabled:
              description: Whether the firmware enforces it.
              type: bool
            signing_key_enrolled:
              description: Whether a key with which DKMS signs modules is enrolled; null while there is no such key.
              type: bool
        services:
          description: The services C(nvidia-persistenced) and C(nvidia-fabricmanager). From systemd's files.
          type: dict
          contains:
            installed:
              description: Whether there is a unit.
              type: bool
            enabled:
              description: Whether it starts at boot, or needs no enabling.
              type: bool
            active:
              description: Whether it runs.
              type: bool
    cuda:
      description: Installed CUDA toolkits.
      type: dict
      contains:
        toolkits:
          description: Toolkits below C(/usr/local).
          type: list
          elements: dict
          contains:
            path:
              description: Folder.
              type: str
            version:
              description: Version. From C(version.json), else from the name of the folder.
              type: str
        default:
          description: Folder that C(/usr/local/cuda) leads to.
          type: str
    nccl:
      description: Installed NCCL libraries.
      type: dict
      contains:
        versions:
          description: Versions. From the names of the libraries' files.
          type: list
          elements: str
        default:
          description: Version that the loader takes by C(libnccl.so.2).
          type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils import _node_facts
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError


def main() -> None:
    module = AnsibleModule(
        {
            "required": {"type": "bool", "default": False},
            "timeout": {"type": "float", "default": 60},
            "_nvml_source": {"type": "str", "no_log": True},
        },
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
