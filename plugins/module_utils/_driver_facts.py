# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver, CUDA and NCCL are loaded and installed, from files. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs

LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib")
_MODULE = re.compile(r"NVRM version:.*Module.*?\s(\d+\.\d+(?:\.\d+)?)\s")


def _versions(files: Sysfs, library: str) -> list[str]:
    """The versions in names such as libnccl.so.2.18.5."""
    found = set()
    for folder in LIBRARIES:
        for name in files.names(folder):
            match = re.match(rf"^{re.escape(library)}\.so\.(\d+\.\d+(?:\.\d+)*)$", name)
            if match:
                found.add(match.group(1))
    return sorted(found, key=lambda version: [int(part) for part in version.split(".")])


def driver(files: Sysfs) -> dict[str, Any]:
    """Loaded: what the kernel module says of itself. Installed: what the next load will bring, by the library's file name."""
    text = files.text("proc/driver/nvidia/version") or ""
    match = _MODULE.search(text)
    loaded = match.group(1) if match else files.text("sys/module/nvidia/version")
    installed = _versions(files, "libnvidia-ml")
    version = installed[-1] if installed else None
    flavour = ("open" if "Open Kernel Module" in text else "proprietary") if text else None
    return {
        "loaded_version": loaded,
        "installed_version": version,
        "flavour": flavour,
        "state": _state(loaded, version),
        "cuda_version": None,
        "nvml_version": None,
    }


def _state(loaded: str | None, installed: str | None) -> str:
    if loaded is None:
        return "absent" if installed is None else "not_loaded"
    return "ok" if installed in (None, loaded) else "mismatch"


def cuda(files: Sysfs) -> dict[str, Any]:
    toolkits = []
    for name in files.names("usr/local"):
        if not re.match(r"^cuda-\d+\.\d+$", name):
            continue
        try:
            document = json.loads(files.text(f"usr/local/{name}/version.json") or "")
            version = document["cuda"]["version"]
        except (ValueError, KeyError, TypeError):
            version = None
        toolkits.append({"path": f"/usr/local/{name}", "version": version or name[len("cuda-") :]})
    link = files.path("usr/local/cuda")
    default = os.path.realpath(link) if os.path.exists(link) else None
    return {"toolkits": toolkits, "default": "/usr/local/" + os.path.basename(default) if default else None}


def nccl(files: Sysfs) -> dict[str, Any]:
    return {"versions": _versions(files, "libnccl")}
