# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""At boot: lays the simulated hardware over /sys, /proc and /dev, and loads the driver if it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from . import classes, modules, numa
from .pci import PciTree
from .tree import Tree

LAYERS = f"{modules.RUN}/layers"


def mount(*arguments: str) -> None:
    subprocess.run(["/usr/bin/mount", *arguments], check=True)


def build(root: str, hardware: dict[str, Any]) -> None:
    """All trees below a folder; nothing is mounted."""
    sys_tree = Tree(f"{root}/sys")
    places = PciTree(sys_tree, hardware).build()
    classes.build(sys_tree, hardware, places)
    numa.build_nodes(Tree(f"{root}/node"), hardware)
    numa.build_cpus(Tree(f"{root}/cpu"), hardware)


def overlay(name: str, target: str) -> None:
    """New entries beside those that the kernel has; `name` is the part of the built tree."""
    upper, work = f"{modules.RUN}/sys/{name}", f"{LAYERS}/{name.replace('/', '-')}"
    os.makedirs(upper, exist_ok=True)
    os.makedirs(work, exist_ok=True)
    mount("-t", "overlay", "overlay", "-o", f"lowerdir={target},upperdir={upper},workdir={work}", target)


def devices_file() -> None:
    """/proc/devices with the majors that the driver registers."""
    with open("/proc/devices", encoding="ascii") as stream:
        lines = stream.read().splitlines()
    at = lines.index("Block devices:")
    lines[at - 1 : at - 1] = ["195 nvidia", "195 nvidia-modeset", "195 nvidiactl", "510 nvidia-uvm", "511 nvidia-caps"]
    path = f"{modules.RUN}/proc-devices"
    with open(path, "w", encoding="ascii") as stream:
        stream.write("\n".join(lines) + "\n")
    mount("--bind", path, "/proc/devices")


def lay(hardware: dict[str, Any]) -> None:
    build(modules.RUN, hardware)
    os.makedirs(f"{modules.RUN}/sys/devices/system/node", exist_ok=True)
    # A file of an overlay cannot be watched, and systemd-logind watches the console's: this part stays the kernel's own.
    kernel = f"{LAYERS}/virtual"
    os.makedirs(kernel, exist_ok=True)
    mount("--bind", "/sys/devices/virtual", kernel)
    overlay("devices", "/sys/devices")
    mount("--bind", kernel, "/sys/devices/virtual")
    overlay("class", "/sys/class")
    overlay("module", "/sys/module")
    mount("--bind", f"{modules.RUN}/sys/bus/pci", "/sys/bus/pci")
    mount("--bind", f"{modules.RUN}/node", "/sys/devices/system/node")
    mount("--bind", f"{modules.RUN}/cpu", "/sys/devices/system/cpu")
    os.makedirs(f"{modules.RUN}/proc/driver", exist_ok=True)
    mount("--bind", f"{modules.RUN}/proc/driver", "/proc/driver")
    devices_file()


def main() -> int:
    if not os.path.exists(modules.HARDWARE):
        return 0
    hardware = modules.hardware()
    if not hardware.get("gpus"):
        return 0
    os.makedirs("/var/lib/gpu-sandbox", exist_ok=True)
    if not os.path.ismount("/sys/bus/pci"):
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
