# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds a GPU or an instance. PRIVATE: internal to the collection, may change at any time.

NVML lists compute processes. Monitors and daemons that only keep a device file open are not in that list, so the open files
of all processes are looked through once.
"""

from __future__ import annotations

import glob
import os
from collections import defaultdict
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._nvml import try_get

_WHOLE = 0xFFFFFFFF


def command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as stream:
            return f"process {pid} ({stream.read().strip()})"
    except OSError:
        return f"process {pid}"


def open_device_files() -> dict[str, list[int]]:
    """Which processes, except this one and its parent, have which /dev/nvidia* file open."""
    own = {os.getpid(), os.getppid()}
    found: dict[str, list[int]] = defaultdict(list)
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in own:
            continue
        folder = f"/proc/{entry}/fd"
        try:
            names = os.listdir(folder)
        except OSError:
            continue  # ended meanwhile, or not ours to look at
        for name in names:
            try:
                target = os.readlink(f"{folder}/{name}")
            except OSError:
                continue
            if target.startswith("/dev/nvidia") and int(entry) not in found[target]:
                found[target].append(int(entry))
    return found


def listed(nvml: Any, device: Any) -> list[tuple[int, int, int]]:
    """(pid, GPU instance id or -1, compute instance id or -1) of each process that NVML lists."""
    found = []
    for process in try_get(nvml, "nvmlDeviceGetComputeRunningProcesses", device) or []:
        gi = getattr(process, "gpuInstanceId", None)
        ci = getattr(process, "computeInstanceId", None)
        found.append((process.pid, -1 if gi in (None, _WHOLE) else gi, -1 if ci in (None, _WHOLE) else ci))
    return found


def capability_files(minor: int, gi: int) -> list[str]:
    """The device files that a process opens to use a GPU instance or one of its compute instances."""
    folder = f"/proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{gi}"
    found = []
    for path in [f"{folder}/access", *sorted(glob.glob(f"{folder}/ci*/access"))]:
        try:
            with open(path, encoding="ascii") as stream:
                found += [f"/dev/nvidia-caps/nvidia-cap{int(line.split(':')[1])}" for line in stream if line.startswith("DeviceFileMinor:")]
        except OSError:
            continue  # the instance went, or this driver tells none
    return found


def display_module() -> list[str]:
    """nvidia_drm may keep every GPU from being reset."""
    return ["the kernel module nvidia_drm (unload it with `modprobe -r nvidia_drm`)"] if os.path.isdir("/sys/module/nvidia_drm") else []


def display_holds() -> list[str]:
    """The same where it surely does: with mode setting it opens every GPU itself."""
    try:
        with open("/sys/module/nvidia_drm/parameters/modeset", encoding="ascii") as stream:
            return display_module() if stream.read().strip() in ("Y", "1") else []
    except OSError:
        return []
