# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all parts share: the NVML session, the choice of GPUs, and exit codes as the real tool has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pynvml as nv


class Exit(Exception):
    """Ends the program with a code and a text."""

    def __init__(self, code: int, text: str = "") -> None:
        super().__init__(text)
        self.code = code


def text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def words(code: int) -> str:
    """The driver's own text; that of the bindings differs."""
    return text(nv.nvmlErrorString(code))


def stop(error: Any, prefix: str = "") -> NoReturn:
    """The exit code of the real tool is NVML's, 255 for what has none."""
    raise Exit(error.value if error.value < 255 else 255, f"{prefix}{words(error.value)}")


@contextmanager
def session() -> Iterator[None]:
    try:
        nv.nvmlInit()
    except nv.NVMLError as error:
        if error.value == nv.NVML_ERROR_DRIVER_NOT_LOADED:
            raise Exit(
                9,
                "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
                "Make sure that the latest NVIDIA driver is installed and running.\n",
            ) from None
        stop(error, "Failed to initialize NVML: ")
    try:
        yield
    except nv.NVMLError as error:
        stop(error)
    finally:
        nv.nvmlShutdown()


def bus_id(device: Any) -> str:
    return text(nv.nvmlDeviceGetPciInfo(device).busId)


def all_gpus() -> list[tuple[int, Any]]:
    found = []
    for index in range(nv.nvmlDeviceGetCount()):
        try:
            found.append((index, nv.nvmlDeviceGetHandleByIndex(index)))
        except nv.NVMLError as error:
            advice = ".  Reboot the system to recover this GPU" if error.value == nv.NVML_ERROR_GPU_IS_LOST else ""
            raise Exit(error.value, f"Unable to determine the device handle for GPU{index}: {words(error.value)}{advice}") from None
    return found


def chosen(selection: str | None) -> list[tuple[int, Any]]:
    """GPUs by index, UUID or PCI address, all without a selection."""
    if selection is None:
        return all_gpus()
    found = []
    for item in selection.split(","):
        try:
            if item.isdigit():
                device = nv.nvmlDeviceGetHandleByIndex(int(item))
            elif item.startswith(("GPU-", "MIG-")):
                device = nv.nvmlDeviceGetHandleByUUID(item.encode())
            else:
                device = nv.nvmlDeviceGetHandleByPciBusId(item.encode())
        except nv.NVMLError:
            raise Exit(6, "No devices were found") from None
        found.append((nv.nvmlDeviceGetIndex(device), device))
    return found


def value(function: str, *arguments: Any, default: Any = None) -> Any:
    """NVML's answer, `default` where this GPU has none."""
    try:
        return getattr(nv, function)(*arguments)
    except nv.NVMLError:
        return default
