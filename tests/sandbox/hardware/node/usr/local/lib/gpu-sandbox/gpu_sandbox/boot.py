# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""At boot: lays the simulated hardware over /sys, /proc and /dev, and loads the driver if it is installed."""

from __future__ import annotations

import os
import sys
from typing import Any

from . import classes, modules, mounts, numa, swap
from .pci import PciTree
from .tree import Tree

SYS = f"{modules.RUN}/sys"
MAJORS = ["195 nvidia", "195 nvidia-modeset", "195 nvidiactl", "510 nvidia-uvm", "511 nvidia-caps"]


def build(root: str, hardware: dict[str, Any]) -> None:
    """The simulated /sys below a folder; nothing is mounted."""
    tree = Tree(root)
    places = PciTree(tree, hardware).build()
    classes.build(tree, hardware, places)
    numa.build(tree, hardware)


def with_majors(devices: str) -> str:
    """/proc/devices with the majors that the driver registers."""
    characters, _title, blocks = devices.partition("\nBlock devices:")
    return "\n".join([characters.rstrip("\n"), *MAJORS]) + "\n\nBlock devices:" + blocks


def lay(hardware: dict[str, Any]) -> None:
    build(SYS, hardware)
    roots = tuple(sorted(name for name in os.listdir(f"{SYS}/devices") if name.startswith("pci")))
    mounts.replace(f"{SYS}/devices", "/sys/devices", ("system", "system/cpu", *roots))
    # Buses and drives of the machine that runs the sandbox are none of the node's.
    for name in ("pci_bus", "nvme"):
        os.makedirs(f"{SYS}/class/{name}", exist_ok=True)
        os.setxattr(f"{SYS}/class/{name}", "trusted.overlay.opaque", b"y")
    mounts.overlay(f"{SYS}/class", "/sys/class", f"{modules.RUN}/layers/class")
    mounts.overlay(f"{SYS}/module", "/sys/module", f"{modules.RUN}/layers/module")
    if os.path.isdir("/sys/bus/pci"):
        mounts.bind(f"{SYS}/bus/pci", "/sys/bus/pci")
    else:
        mounts.overlay(f"{SYS}/bus", "/sys/bus", f"{modules.RUN}/layers/bus")
    # The machine's own huge pages are not the node's to take.
    mounts.bind(f"{SYS}/kernel/mm/hugepages", "/sys/kernel/mm/hugepages")
    os.makedirs(f"{modules.RUN}/proc/driver", exist_ok=True)
    mounts.bind(f"{modules.RUN}/proc/driver", "/proc/driver")
    with open("/proc/devices", encoding="ascii") as stream:
        text = with_majors(stream.read())
    with open(f"{modules.RUN}/proc/devices", "w", encoding="ascii") as stream:
        stream.write(text)
    mounts.bind(f"{modules.RUN}/proc/devices", "/proc/devices")


def main() -> int:
    if not os.path.exists(modules.HARDWARE):
        return 0
    swap.take_over()
    hardware = modules.hardware()
    os.makedirs("/var/lib/gpu-sandbox", exist_ok=True)
    os.makedirs(modules.RUN, exist_ok=True)
    if not os.path.ismount("/proc/driver"):
        lay(hardware)
    # udev loads the module by the alias of the PCI device, unless it is blacklisted.
    for name in ("nvidia", "nvidia_uvm"):
        if modules.installed(name) and not modules.blacklisted(name):
            try:
                modules.load(name)
            except modules.ModuleError as error:
                print(f"nvidia: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
