# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nvidia kernel modules: where they are installed, which are loaded, who holds them."""

from __future__ import annotations

import fcntl
import glob
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

from . import loaded
from .tree import Tree

RUN = "/run/gpu-sandbox"
HARDWARE = "/etc/gpu-sandbox/hardware.json"
STATE = f"{RUN}/modules.json"
NEEDS = {"nvidia": [], "nvidia_uvm": ["nvidia"], "nvidia_modeset": ["nvidia"], "nvidia_drm": ["nvidia_modeset"], "nvidia_peermem": ["nvidia"]}


class ModuleError(Exception):
    """What the kernel answers."""


def hardware() -> dict[str, Any]:
    with open(HARDWARE, encoding="utf-8") as stream:
        return json.load(stream)


def installed(name: str) -> Optional[dict[str, str]]:
    """The text of the module's stand-in for the running kernel: version and flavour."""
    file_name = name.replace("_", "-")
    for path in sorted(glob.glob(f"/lib/modules/{os.uname().release}/**/{file_name}.ko", recursive=True)):
        with open(path, encoding="utf-8") as stream:
            return {**dict(line.strip().split("=", 1) for line in stream if "=" in line), "filename": path}
    return None


def blacklisted(name: str) -> bool:
    """Blacklisting stops loading by hardware alias, which is what happens at boot."""
    for path in glob.glob("/etc/modprobe.d/*.conf") + glob.glob("/usr/lib/modprobe.d/*.conf"):
        with open(path, encoding="utf-8", errors="replace") as stream:
            if any(line.split()[:2] == ["blacklist", name] for line in stream):
                return True
    return False


@contextmanager
def _state() -> Iterator[dict[str, Any]]:
    """The loaded modules, under the lock of the driver; written back when changed."""
    os.makedirs(RUN, exist_ok=True)
    with open(f"{RUN}/lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = read()
        before = json.dumps(state)
        yield state
        if json.dumps(state) != before:
            with open(f"{STATE}.new", "w", encoding="utf-8") as stream:
                json.dump(state, stream)
            os.replace(f"{STATE}.new", STATE)


def read() -> dict[str, Any]:
    try:
        with open(STATE, encoding="utf-8") as stream:
            return json.load(stream)
    except FileNotFoundError:
        return {}


def load(name: str) -> None:
    if name not in NEEDS:
        raise ModuleError(f"FATAL: Module {name} not found in directory /lib/modules/{os.uname().release}")
    for needed in NEEDS[name]:
        load(needed)
    with _state() as state:
        if name in state:
            return
        found = installed(name)
        if found is None:
            raise ModuleError(f"FATAL: Module {name} not found in directory /lib/modules/{os.uname().release}")
        if name == "nvidia":
            _load_nvidia(found)
        elif name == "nvidia_uvm":
            loaded.device_node("/dev/nvidia-uvm")
            loaded.device_node("/dev/nvidia-uvm-tools")
        elif name == "nvidia_modeset":
            loaded.device_node("/dev/nvidia-modeset")
        state[name] = {"version": found["version"], "flavour": found.get("flavour", "proprietary")}
        loaded.describe_module("/sys/module", name, found["version"])


def _load_nvidia(found: dict[str, str]) -> None:
    facts = hardware()
    profiles = facts["gpu_profiles"]
    # The open modules need a GSP, which GPUs before Turing do not have.
    usable = [gpu for gpu in facts["gpus"] if found.get("flavour") != "open" or float(profiles[gpu["gpu_profile"]]["compute_capability"]) >= 7.5]
    if len(usable) < len(facts["gpus"]) or not usable:
        raise ModuleError("ERROR: could not insert 'nvidia': No such device")
    loaded.load(Tree(f"{RUN}/proc"), "/dev", facts, found["version"], found.get("flavour", "proprietary"))


def remove(name: str) -> None:
    with _state() as state:
        if name not in state:
            raise ModuleError(f"ERROR: Module {name} is not currently loaded")
        users = [other for other in state if name in NEEDS.get(other, [])]
        if users:
            raise ModuleError(f"ERROR: Module {name} is in use by: {' '.join(sorted(users))}")
        if held(name):
            raise ModuleError(f"ERROR: Module {name} is in use")
        del state[name]
        loaded.forget_module("/sys/module", name)
        if name == "nvidia":
            loaded.unload(Tree(f"{RUN}/proc"), "/dev")
            if os.path.exists(f"{RUN}/driver.json"):
                os.unlink(f"{RUN}/driver.json")  # instances, clocks and modes do not outlive the driver


def held(name: str) -> bool:
    """Whether a process has one of the module's device files open, or NVML lists one."""
    prefixes = {"nvidia": ("/dev/nvidia",), "nvidia_uvm": ("/dev/nvidia-uvm",), "nvidia_modeset": ("/dev/nvidia-modeset",)}.get(name, ())
    if not prefixes:
        return False
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if target.startswith(prefixes) and (name != "nvidia" or not target.startswith(("/dev/nvidia-uvm", "/dev/nvidia-modeset"))):
            return True
    return name == "nvidia" and any(os.path.exists(f"/proc/{one.get('pid')}") for one in _listed() if one.get("pid"))


def _listed() -> list[dict[str, Any]]:
    try:
        with open(f"{RUN}/holders.json", encoding="utf-8") as stream:
            return json.load(stream)
    except FileNotFoundError:
        return []
