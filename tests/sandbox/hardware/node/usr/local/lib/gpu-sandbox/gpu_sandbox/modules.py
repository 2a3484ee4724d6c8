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
from typing import Any

from . import device_files, loaded
from .tree import Tree

RUN = "/run/gpu-sandbox"
HARDWARE = "/etc/gpu-sandbox/hardware.json"
DEV, PROC, SYS_MODULE, LIBRARY = "/dev", "/proc", "/sys/module", "/lib/modules"
NEEDS = {
    "nvidia": [],
    "nvidia_uvm": ["nvidia"],
    "nvidia_modeset": ["nvidia"],
    "nvidia_drm": ["nvidia_modeset"],
    "nvidia_peermem": ["nvidia"],
}
DEVICE_FILES = {"nvidia_uvm": ("nvidia-uvm", "nvidia-uvm-tools"), "nvidia_modeset": ("nvidia-modeset",)}
# The open modules drive only GPUs with a GSP, which came with Turing.
OPEN_MINIMUM = 7.5


class ModuleError(Exception):
    """What the kernel answers."""


class NotFound(ModuleError):
    def __init__(self, name: str) -> None:
        super().__init__(f"FATAL: Module {name} not found in directory {LIBRARY}/{os.uname().release}")


def hardware() -> dict[str, Any]:
    with open(HARDWARE, encoding="utf-8") as stream:
        return json.load(stream)


def installed(name: str) -> dict[str, str] | None:
    """The text of the module's stand-in for the running kernel: version and flavour."""
    file_name = name.replace("_", "-")
    for path in sorted(glob.glob(f"{LIBRARY}/{os.uname().release}/**/{file_name}.ko", recursive=True)):
        with open(path, encoding="utf-8") as stream:
            return {"flavour": "proprietary", **dict(line.strip().split("=", 1) for line in stream if "=" in line), "filename": path}
    return None


def blacklisted(name: str) -> bool:
    """Blacklisting stops loading by hardware alias, which is what happens at boot."""
    for folder in ("/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d"):
        for path in glob.glob(f"{folder}/*.conf"):
            with open(path, encoding="utf-8", errors="replace") as stream:
                for line in stream:
                    words = line.split()
                    if words[:1] == ["blacklist"] and words[1:2] and words[1].replace("-", "_") == name:
                        return True
    return False


@contextmanager
def _state() -> Iterator[dict[str, Any]]:
    """The loaded modules, under the lock of the driver; written back, and shown below /sys/module, when changed."""
    os.makedirs(RUN, exist_ok=True)
    with open(f"{RUN}/lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = read()
        before = json.dumps(state)
        yield state
        if json.dumps(state) != before:
            loaded.describe_modules(SYS_MODULE, state, NEEDS)
            with open(f"{RUN}/modules.json.new", "w", encoding="utf-8") as stream:
                json.dump(state, stream)
            os.replace(f"{RUN}/modules.json.new", f"{RUN}/modules.json")


def read() -> dict[str, Any]:
    return _json(f"{RUN}/modules.json") or {}


def _json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except FileNotFoundError:
        return None


def load(name: str) -> None:
    """With the modules that it needs."""
    if name not in NEEDS or installed(name) is None:
        raise NotFound(name)
    for needed in NEEDS[name]:
        load(needed)
    with _state() as state:
        found = installed(name)
        if name in state or found is None:
            return
        if name == "nvidia":
            facts = hardware()
            _require_hardware(facts, found["flavour"])
            loaded.load(Tree(f"{RUN}/proc"), DEV, Tree(f"{RUN}/sys"), facts, found)
        elif found["version"] != state["nvidia"]["version"]:
            raise ModuleError(f"ERROR: could not insert '{name}': Invalid argument")
        for file_name in DEVICE_FILES.get(name, ()):
            device_files.make(f"{DEV}/{file_name}")
        state[name] = {"version": found["version"], "flavour": found["flavour"]}


def _require_hardware(facts: dict[str, Any], flavour: str) -> None:
    """The driver finds nothing to drive: no GPU, or with the open flavour one that it does not know (a node's GPUs load as a whole)."""
    capabilities = [float(facts["gpu_profiles"][gpu["gpu_profile"]]["compute_capability"]) for gpu in facts["gpus"]]
    if not capabilities or (flavour == "open" and min(capabilities) < OPEN_MINIMUM):
        raise ModuleError("ERROR: could not insert 'nvidia': No such device")


def users(name: str) -> list[str]:
    """Loaded modules that need this one."""
    return sorted(other for other in read() if name in NEEDS.get(other, []))


def remove(name: str) -> None:
    with _state() as state:
        if name not in state:
            raise ModuleError(f"ERROR: Module {name} is not currently loaded")
        if users(name):
            raise ModuleError(f"ERROR: Module {name} is in use by: {' '.join(users(name))}")
        if held(name):
            raise ModuleError(f"ERROR: Module {name} is in use")
        del state[name]
        if name == "nvidia":
            loaded.unload(Tree(f"{RUN}/proc"), DEV, Tree(f"{RUN}/sys"))
            if os.path.exists(f"{RUN}/driver.json"):
                os.unlink(f"{RUN}/driver.json")  # instances, clocks and modes do not outlive the driver


def held(name: str) -> bool:
    """Whether a process has one of the module's device files open, or works with a GPU by NVML."""
    for link in glob.glob(f"{PROC}/[0-9]*/fd/*"):
        try:
            if _module_of(os.readlink(link)) == name:
                return True
        except OSError:  # closed since
            continue
    return name == "nvidia" and any(os.path.exists(f"{PROC}/{pid}") for pid in _known_users())


def _module_of(path: str) -> str:
    """The module behind a device file; those of MIG instances are in a folder of their own."""
    folder, _slash, file_name = path.rpartition("/")
    if folder == f"{DEV}/nvidia-caps":
        return "nvidia"
    if folder != DEV or not file_name.startswith("nvidia"):
        return ""
    return next((module for module, file_names in DEVICE_FILES.items() if file_name in file_names), "nvidia")


def _known_users() -> list[int]:
    """Processes that keep the driver busy without an open device file in this simulation."""
    users_of_gpus = [holder.get("pid") for holder in _json(f"{RUN}/holders.json") or []]
    return [pid for pid in (*users_of_gpus, (_json(f"{RUN}/fabricmanager.json") or {}).get("pid")) if pid]
