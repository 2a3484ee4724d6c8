# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that keep a GPU busy: one that NVML lists, or one that only has the device file open."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

from . import modules

MARK = "GPU_SANDBOX_HOLDER"


def read() -> list[dict[str, Any]]:
    path = f"{modules.RUN}/holders.json"
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def _write(holders: list[dict[str, Any]]) -> None:
    path = f"{modules.RUN}/holders.json"
    with open(f"{path}.new", "w", encoding="utf-8") as stream:
        json.dump(holders, stream)
    os.replace(f"{path}.new", path)


def start(command: list[str], open_file: str | None = None) -> int:
    """A process of its own; the standard input is a descriptor like any other."""
    with open(open_file or os.devnull, "rb") as source:
        process = subprocess.Popen(
            command,
            stdin=source,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, MARK: modules.RUN},
        )
    return process.pid


def add_listed(gpu: dict[str, Any], pid: int | None, memory_mib: int, gpu_instance: int | None, compute_instance: int | None) -> int:
    """A process with memory on a GPU or in one of its instances, as NVML lists it."""
    pid = pid or start(["sleep", "infinity"])
    holder = {"kind": "nvml", "gpu": gpu["pci_address"], "pid": pid, "used_memory_mib": memory_mib}
    if gpu_instance is not None:
        holder["gpu_instance_id"] = gpu_instance
        holder["compute_instance_id"] = compute_instance or 0
    _write([*read(), holder])
    return pid


def add_device_file(gpu: dict[str, Any]) -> int:
    """As DCGM and persistenced: a device file is open, and NVML knows of nobody."""
    return start(["sleep", "infinity"], f"{modules.DEV}/nvidia{gpu['minor_number']}")


def clear() -> None:
    """End the processes that were started here, and list none."""
    for name in os.listdir("/proc"):
        if name.isdigit() and _started_here(name):
            os.kill(int(name), signal.SIGKILL)
    _write([])


def _started_here(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return f"{MARK}={modules.RUN}".encode() in stream.read().split(b"\0")
    except OSError:
        return False
