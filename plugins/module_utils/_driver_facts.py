# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver, CUDA and NCCL are loaded and installed, from files. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import json
import re
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs

LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib")
_MODULE = re.compile(r"NVRM version:.*Module.*?\s(\d+\.\d+(?:\.\d+)?)\s")


def driver(files: Sysfs) -> dict[str, Any]:
    """Loaded: what the kernel module says of itself. Installed: the library's version, which the next boot's module must have."""
    text = files.text("proc/driver/nvidia/version") or ""
    match = _MODULE.search(text)
    loaded = match.group(1) if match else files.text("sys/module/nvidia/version")
    installed = _linked(files, "libnvidia-ml.so.1") or _newest(files, "libnvidia-ml")
    flavour = ("open" if "Open Kernel Module" in text else "proprietary") if text else None
    return {
        "state": _state(loaded, installed),
        "message": None,
        "loaded_version": loaded,
        "installed_version": installed,
        "flavour": flavour,
        "modules": [name for name in files.names("sys/module") if name == "nvidia" or name.startswith("nvidia_")],
        "nvml_version": None,
        "cuda_version": None,
    }


def _state(loaded: str | None, installed: str | None) -> str:
    if loaded is None:
        return "absent" if installed is None else "not_loaded"
    return "ok" if installed in (None, loaded) else "mismatch"


def _version(library: str, name: str | None) -> str | None:
    """2.18.5 of libnccl.so.2.18.5."""
    match = re.match(rf"^{re.escape(library)}\.so\.(\d+\.\d+(?:\.\d+)*)$", name or "")
    return match.group(1) if match else None


def _linked(files: Sysfs, soname: str) -> str | None:
    """The version that the loader takes where several are installed."""
    library = soname.partition(".so")[0]
    for folder in LIBRARIES:
        version = _version(library, files.link_name(f"{folder}/{soname}"))
        if version:
            return version
    return None


def _versions(files: Sysfs, library: str) -> list[str]:
    found = {_version(library, name) for folder in LIBRARIES for name in files.names(folder)}
    return sorted((version for version in found if version), key=lambda version: [int(part) for part in version.split(".")])


def _newest(files: Sysfs, library: str) -> str | None:
    versions = _versions(files, library)
    return versions[-1] if versions else None


def cuda(files: Sysfs) -> dict[str, Any]:
    folders = [name for name in files.names("usr/local") if re.match(r"^cuda-\d+\.\d+$", name)]
    toolkits = [{"path": f"/usr/local/{name}", "version": _toolkit(files, name)} for name in folders]
    default = files.link_name("usr/local/cuda")
    return {"toolkits": toolkits, "default": f"/usr/local/{default}" if default else None}


def _toolkit(files: Sysfs, folder: str) -> str:
    try:
        return json.loads(files.text(f"usr/local/{folder}/version.json") or "")["cuda"]["version"]
    except (ValueError, KeyError, TypeError):
        return folder[len("cuda-") :]


def nccl(files: Sysfs) -> dict[str, Any]:
    return {"versions": _versions(files, "libnccl"), "default": _linked(files, "libnccl.so.2")}
