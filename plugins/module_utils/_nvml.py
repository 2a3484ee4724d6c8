# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVML through the controller's pynvml. PRIVATE: internal to the collection, may change at any time.

Nodes have no pip package of ours: the action plugin sends the source of pynvml with the task, and it is made a module here.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import os
import sys
import types
import zlib
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _errors, _pci

TOLERATED = (
    "NOT_SUPPORTED",
    "NO_PERMISSION",
    "FUNCTION_NOT_FOUND",
    "NOT_FOUND",
    "NO_DATA",
    "INVALID_ARGUMENT",
    "ARGUMENT_VERSION_MISMATCH",
    "DEPRECATED",
)


def load(source: str | None) -> Any:
    """The pynvml module of the controller, or the one that this Python has."""
    if not source:
        try:
            import pynvml  # noqa: PLC0415 - not every node has one
        except ImportError:
            raise _errors.InvalidInput(
                "The module was called without the controller's pynvml and this node has none; install nvidia-ml-py on the controller."
            ) from None
        return pynvml
    if "pynvml" in sys.modules:
        return sys.modules["pynvml"]
    module = types.ModuleType("pynvml")
    module.__file__ = "pynvml.py"
    sys.modules["pynvml"] = module
    exec(compile(zlib.decompress(base64.b64decode(source)), "pynvml.py", "exec"), module.__dict__)
    return module


@functools.lru_cache(maxsize=1)
def _error_names(nvml: Any) -> dict[int, str]:
    prefix = "NVML_ERROR_"
    return {getattr(nvml, name): name[len(prefix) :] for name in dir(nvml) if name.startswith(prefix)}


def error_name(nvml: Any, error: Exception) -> str:
    """NOT_SUPPORTED for NVMLError_NotSupported: the documented name without its prefix."""
    code = getattr(error, "value", None)
    return _error_names(nvml).get(code, f"code {code}") if isinstance(code, int) else f"code {code}"


def try_get(nvml: Any, function: str, *arguments: Any, **keywords: Any) -> Any:
    """The value, or None where this GPU, driver or user has none."""
    call = getattr(nvml, function, None)
    if call is None:
        return None
    try:
        return text(call(*arguments, **keywords))
    except nvml.NVMLError as error:
        if error_name(nvml, error) in TOLERATED:
            return None
        raise


class GpuLost(Exception):
    """NVML answered GPU_IS_LOST: nothing more can be read of this GPU."""


class Reader:
    """Reads facts of one GPU. What it has not is None; what failed for another reason is None and kept in `errors` by function."""

    def __init__(self, nvml: Any, device: Any) -> None:
        self.nvml, self.device = nvml, device
        self.errors: dict[str, str] = {}

    def get(self, function: str, *arguments: Any) -> Any:
        call = getattr(self.nvml, function, None)
        if call is None:
            return None
        try:
            return text(call(self.device, *arguments))
        except self.nvml.NVMLError as error:
            self.note(function, error)
            return None

    def note(self, function: str, error: Exception) -> None:
        name = error_name(self.nvml, error)
        if name == "GPU_IS_LOST":
            raise GpuLost from None
        if name not in TOLERATED:
            self.errors[function] = name


def text(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def pci_address(nvml: Any, device: Any) -> str:
    bus_id = text(nvml.nvmlDeviceGetPciInfo(device).busId)
    return _pci.normalise(bus_id) or bus_id


_UNAVAILABLE = {
    "LIBRARY_NOT_FOUND": ("absent", "libnvidia-ml.so.1 is not installed; install the NVIDIA driver"),
    "DRIVER_NOT_LOADED": ("not_loaded", "the NVIDIA kernel module is not loaded; load it with `modprobe nvidia` or reboot the node"),
    "LIB_RM_VERSION_MISMATCH": (
        "mismatch",
        "the loaded kernel module and the installed driver library have different versions; reboot the node to load the installed one",
    ),
    "NO_PERMISSION": ("no_permission", "this user may not open the NVIDIA device files; run the task with become"),
}


class Session:
    """NVML between init and shutdown. Handles are valid only inside."""

    def __init__(self, nvml: Any) -> None:
        self.nvml = nvml

    def __enter__(self) -> Any:
        try:
            self.nvml.nvmlInit()
        except self.nvml.NVMLError as error:
            name = error_name(self.nvml, error)
            state, reason = _UNAVAILABLE.get(name, ("unusable", f"NVML answered {name}; look for NVRM messages with `journalctl -k`"))
            raise _errors.DriverUnavailable(f"NVML cannot be used on {os.uname().nodename}: {reason}.", state) from None
        return self.nvml

    def __exit__(self, *unused: Any) -> None:
        # Nothing depends on it: the process ends with the task.
        with contextlib.suppress(self.nvml.NVMLError):
            self.nvml.nvmlShutdown()


def each_device(nvml: Any, read: Any) -> list:
    """What `read(index, handle)` returns of each GPU. A lost one is left out: a declaration that names it is refused for that."""
    found = []
    for index, device in devices(nvml):
        if device is None:
            continue
        try:
            found.append(read(index, device))
        except nvml.NVMLError as error:
            raise _errors.GpuError(
                f"GPU {index} cannot be read: NVML answered {error_name(nvml, error)}; "
                "look for Xid or NVRM messages with `journalctl -k` and run again when it answers."
            ) from None
    return found


def devices(nvml: Any) -> list:
    """(index, handle or None) for each GPU: a lost GPU has an index but no handle."""
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            found.append((index, nvml.nvmlDeviceGetHandleByIndex(index)))
        except nvml.NVMLError:
            found.append((index, None))
    return found
