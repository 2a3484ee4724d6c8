# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's device files. Run as a program it makes those of all MIG instances, as nvidia-modprobe does."""

from __future__ import annotations

import os
import shutil
import stat
import sys

# The null device under another name: it can be opened and held, and nothing behind it answers.
NULL_DEVICE = os.makedev(1, 3)


def make(path: str, mode: int = 0o666) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path) and os.stat(path).st_rdev != NULL_DEVICE:
        os.unlink(path)  # made with the driver's own major, behind which the sandbox has nothing
    if not os.path.exists(path):
        os.mknod(path, stat.S_IFCHR | mode, NULL_DEVICE)
    os.chmod(path, mode)


def make_capabilities(capabilities: str, dev: str) -> None:
    """One file for each that /proc/driver/nvidia/capabilities describes, with the mode that stands there."""
    for folder, _folders, names in os.walk(capabilities):
        for name in names:
            with open(os.path.join(folder, name), encoding="ascii") as stream:
                facts = dict(line.strip().split(": ") for line in stream if ": " in line)
            make(f"{dev}/nvidia-caps/nvidia-cap{facts['DeviceFileMinor']}", int(facts["DeviceFileMode"]))


def remove_all(dev: str) -> None:
    for name in os.listdir(dev):
        if name.startswith("nvidia"):
            path = f"{dev}/{name}"
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)


if __name__ == "__main__":
    make_capabilities("/proc/driver/nvidia/capabilities", "/dev")
    sys.exit(0)
