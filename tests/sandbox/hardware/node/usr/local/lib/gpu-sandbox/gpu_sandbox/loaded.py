# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What exists only while the nvidia kernel module is loaded: /proc/driver/nvidia, /dev/nvidia*, /sys/module/nvidia*."""

from __future__ import annotations

import os
import shutil
from typing import Any

from . import device_files, pci
from .tree import Tree

CAPABILITIES = "driver/nvidia/capabilities"
# The driver's table has room for this many GPUs, whatever the node has.
GPUS, GPU_INSTANCES, COMPUTE_INSTANCES = 32, 15, 8


def load(proc: Tree, dev: str, sys: Tree, hardware: dict[str, Any], found: dict[str, str]) -> None:
    """`sys` is the tree below /sys/bus/pci and /sys/devices."""
    version, flavour = found["version"], found["flavour"]
    kind = "Open Kernel Module for x86_64" if flavour == "open" else "x86_64 Kernel Module"
    # Whole lines of the real file; tools look for the version behind "Module".
    proc.file(
        "driver/nvidia/version",
        f"NVRM version: NVIDIA UNIX {kind}  {version}  Release Build  (sandbox)\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)",
    )
    proc.file(
        "driver/nvidia/params",
        "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438",
    )
    proc.file("driver/nvidia/registry", 'Binary: ""')
    device_files.make(f"{dev}/nvidiactl")
    for gpu in hardware["gpus"]:
        proc.file(f"driver/nvidia/gpus/{gpu['pci_address']}/information", _information(gpu, version, flavour))
        proc.folder(f"{CAPABILITIES}/gpu{gpu['minor_number']}/mig")
        device_files.make(f"{dev}/nvidia{gpu['minor_number']}")
        pci.bind_driver(sys, "nvidia", gpu["pci_address"])
    for name, minor in (("config", 1), ("monitor", 2)):
        proc.file(
            f"{CAPABILITIES}/mig/{name}",
            f"DeviceFileMinor: {minor}\nDeviceFileMode: {256 if name == 'config' else 292}\nDeviceFileModify: 1",
        )
    proc.file("driver/nvidia-caps/mig-minors", mig_minors())
    device_files.make_capabilities(proc.path(CAPABILITIES), dev)
    for index, switch in enumerate(hardware.get("nvswitches", [])):
        proc.file(f"driver/nvidia-nvswitch/devices/{switch['pci_address']}", "BIOS Version: 92.10.14.00.01")
        device_files.make(f"{dev}/nvidia-nvswitch{index}")
        device_files.make(f"{dev}/nvidia-nvswitchctl")
        pci.bind_driver(sys, "nvidia-nvswitch", switch["pci_address"])


def _information(gpu: dict[str, Any], version: str, flavour: str) -> str:
    lines = {
        "Model": gpu["name"],
        "IRQ": 0,
        "GPU UUID": gpu["uuid"],
        "Video BIOS": gpu.get("vbios", "??.??.??.??.??"),
        "Bus Type": "PCIe",
        "DMA Size": "47 bits",
        "DMA Mask": "0x7fffffffffff",
        "Bus Location": gpu["pci_address"],
        "Device Minor": gpu["minor_number"],
        # Only the open module always runs the GPU's own firmware.
        "GPU Firmware": version if flavour == "open" else "N/A",
        "GPU Excluded": "No",
    }
    return "\n".join(f"{name}: \t {value}" for name, value in lines.items())


def mig_minors() -> str:
    """Minor number of the device file of every instance that could be; the library that makes instances numbers them alike."""
    lines = ["config 1", "monitor 2"]
    minor = 3
    for gpu in range(GPUS):
        for gi in range(GPU_INSTANCES):
            lines.append(f"gpu{gpu}/gi{gi}/access {minor}")
            lines += [f"gpu{gpu}/gi{gi}/ci{ci}/access {minor + 1 + ci}" for ci in range(COMPUTE_INSTANCES)]
            minor += 1 + COMPUTE_INSTANCES
    return "\n".join(lines)


def unload(proc: Tree, dev: str, sys: Tree) -> None:
    for name in ("nvidia", "nvidia-caps", "nvidia-nvswitch"):
        shutil.rmtree(proc.path(f"driver/{name}"), ignore_errors=True)
    device_files.remove_all(dev)
    for driver in ("nvidia", "nvidia-nvswitch"):
        pci.release_driver(sys, driver)


def describe_modules(sys_module: str, modules: dict[str, Any], needs: dict[str, list[str]]) -> None:
    """/sys/module/nvidia*: versions, who depends on whom, and as the reference count how many do."""
    tree = Tree(sys_module)
    for name in needs:
        if name not in modules:
            shutil.rmtree(tree.path(name), ignore_errors=True)
    for name, facts in modules.items():
        users = [other for other in modules if name in needs.get(other, [])]
        shutil.rmtree(tree.path(f"{name}/holders"), ignore_errors=True)
        taint = "OE" if facts["flavour"] == "open" else "POE"
        if not os.path.exists(tree.path(f"{name}/version")):  # as long as the module is loaded the kernel keeps its files
            tree.files(name, {"version": facts["version"], "initstate": "live", "taint": taint})
        tree.file(f"{name}/refcnt", len(users))
        tree.folder(f"{name}/holders")
        for user in users:
            tree.link(f"{name}/holders/{user}", user)
