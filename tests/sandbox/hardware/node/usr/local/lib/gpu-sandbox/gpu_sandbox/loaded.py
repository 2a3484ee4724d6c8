# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What exists only while the nvidia kernel module is loaded: /proc/driver/nvidia, /dev/nvidia*, /sys/module/nvidia*."""

from __future__ import annotations

import os
import shutil
import stat
from typing import Any

from .tree import Tree

# The nodes' devices are the null device under another name: they can be opened and held, nothing behind them answers.
NULL_DEVICE = os.makedev(1, 3)
CAPABILITIES = "driver/nvidia/capabilities"


def device_node(path: str, mode: int = 0o666) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path):
        os.mknod(path, stat.S_IFCHR | mode, NULL_DEVICE)
    os.chmod(path, mode)


def load(proc: Tree, dev: str, hardware: dict[str, Any], version: str, flavour: str) -> None:
    kind = "Open Kernel Module for x86_64" if flavour == "open" else "x86_64 Kernel Module"
    # Whole lines of the real file; tools look for the version behind "Module".
    proc.file("driver/nvidia/version", f"NVRM version: NVIDIA UNIX {kind}  {version}  Release Build  (sandbox)\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)")
    proc.file("driver/nvidia/params", "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438")
    proc.file("driver/nvidia/registry", 'Binary: ""')
    for gpu in hardware["gpus"]:
        address = gpu["pci_address"]
        lines = {
            "Model": gpu["name"],
            "IRQ": 0,
            "GPU UUID": gpu["uuid"],
            "Video BIOS": gpu.get("vbios", "??.??.??.??.??"),
            "Bus Type": "PCIe",
            "DMA Size": "47 bits",
            "DMA Mask": "0x7fffffffffff",
            "Bus Location": address,
            "Device Minor": gpu["minor_number"],
            "GPU Excluded": "No",
        }
        proc.file(f"driver/nvidia/gpus/{address}/information", "\n".join(f"{name}: \t {value}" for name, value in lines.items()))
        proc.folder(f"{CAPABILITIES}/gpu{gpu['minor_number']}/mig")
        device_node(f"{dev}/nvidia{gpu['minor_number']}")
    for name, minor in (("config", 1), ("monitor", 2)):
        proc.file(f"{CAPABILITIES}/mig/{name}", f"DeviceFileMinor: {minor}\nDeviceFileMode: 256\nDeviceFileModify: 1")
        device_node(f"{dev}/nvidia-caps/nvidia-cap{minor}", 0o400 if name == "config" else 0o444)
    proc.file("driver/nvidia-caps/mig-minors", _mig_minors(len(hardware["gpus"])))
    if hardware.get("nvswitches"):
        for index, switch in enumerate(hardware["nvswitches"]):
            proc.file(f"driver/nvidia-nvswitch/devices/{switch['pci_address']}", "BIOS Version: 92.10.14.00.01")
            device_node(f"{dev}/nvidia-nvswitch{index}")
        device_node(f"{dev}/nvidia-nvswitchctl")
    device_node(f"{dev}/nvidiactl")


def _mig_minors(gpus: int) -> str:
    """The table that the driver has for all instances that could be: see the numbering of the driver's capabilities."""
    lines = ["config 1", "monitor 2"]
    for gpu in range(max(gpus, 1)):
        for gi in range(15):
            minor = 3 + gpu * 135 + gi * 9
            lines.append(f"gpu{gpu}/gi{gi}/access {minor}")
            lines += [f"gpu{gpu}/gi{gi}/ci{ci}/access {minor + 1 + ci}" for ci in range(8)]
    return "\n".join(lines)


def unload(proc: Tree, dev: str) -> None:
    for name in ("nvidia", "nvidia-caps", "nvidia-nvswitch"):
        shutil.rmtree(proc.path(f"driver/{name}"), ignore_errors=True)
    for name in os.listdir(dev):
        if name.startswith("nvidia"):
            path = f"{dev}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def describe_module(sys_module: str, name: str, version: str) -> None:
    """/sys/module/nvidia: version and reference count of one module."""
    Tree(sys_module).files(name, {"version": version, "refcnt": 0, "initstate": "live", "srcversion": "0" * 23, "taint": "POE"})


def forget_module(sys_module: str, name: str) -> None:
    shutil.rmtree(os.path.join(sys_module, name), ignore_errors=True)
