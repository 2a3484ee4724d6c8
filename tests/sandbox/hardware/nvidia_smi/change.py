# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings: MIG mode, persistence, power limit, clocks, compute mode, ECC, and the reset of a GPU."""

from __future__ import annotations

import os
from typing import Any

import pynvml as nv

from .common import Exit, bus_id, chosen, stop, words

NAMES = {"0": 0, "DISABLED": 0, "1": 1, "ENABLED": 1}


def _switch(word: str) -> int:
    if word.upper() not in NAMES:
        raise Exit(2, f"Invalid argument: {word}; write 0 or 1.")
    return NAMES[word.upper()]


def set_mig(word: str, selection: str | None) -> int:
    mode = _switch(word)
    verb = "enable" if mode else "disable"
    for _index, device in chosen(selection):
        address = bus_id(device)
        try:
            status = nv.nvmlDeviceSetMigMode(device, mode)
        except nv.NVMLError_NotSupported as error:
            print(f"Unable to {verb} MIG Mode for GPU {address}: {words(error.value)}\nTreating as warning and moving on.")
            continue
        except nv.NVMLError as error:
            stop(error, f"Unable to {verb} MIG Mode for GPU {address}: ")
        if status == nv.NVML_SUCCESS:
            print(f"{'Enabled' if mode else 'Disabled'} MIG Mode for GPU {address}")
        else:
            print(f"Warning: MIG mode is in pending {verb} state for GPU {address}:{words(status)}")
            print(f"Reboot the system or try nvidia-smi --gpu-reset to make MIG mode effective on GPU {address}")
    print("All done.")
    return 0


def reset(selection: str | None) -> int:
    """NVML has no such call: the real tool asks the kernel module, this one the simulated driver."""
    if os.geteuid() != 0:
        raise Exit(4, "Unable to reset this GPU: Insufficient Permissions")
    failed = 0
    for _index, device in chosen(selection):
        address = bus_id(device)
        code = nv.nvmlLib.gpuSandboxDeviceReset(address.encode())
        if code == nv.NVML_SUCCESS:
            print(f"GPU {address} was successfully reset.")
            continue
        failed = 255 if code == nv.NVML_ERROR_INVALID_STATE else code
        reasons = {
            nv.NVML_ERROR_IN_USE: "is currently in use by one or more other processes (e.g. CUDA application, monitoring application).\n"
            "Please first kill all processes using this GPU",
            nv.NVML_ERROR_NOT_SUPPORTED: "Not Supported",
            nv.NVML_ERROR_INVALID_STATE: "is behind an NVSwitch and the fabric manager is not running: all GPUs must be reset together",
        }
        print(f"The following GPUs could not be reset:\n  GPU {address}: {reasons.get(code, words(code))}")
    if not failed:
        print("All done.")
    return failed


def _each(selection: str | None, what: str, call: Any) -> int:
    for _index, device in chosen(selection):
        try:
            call(device)
        except nv.NVMLError as error:
            stop(error, f"Unable to set {what} for GPU {bus_id(device)}: ")
        print(f"Set {what} for GPU {bus_id(device)}.")
    print("All done.")
    return 0


def persistence(word: str, selection: str | None) -> int:
    return _each(selection, "persistence mode", lambda device: nv.nvmlDeviceSetPersistenceMode(device, _switch(word)))


def power(watts: str, selection: str | None) -> int:
    return _each(selection, "power management limit", lambda device: nv.nvmlDeviceSetPowerManagementLimit(device, int(float(watts) * 1000)))


def lock_clocks(clocks: str, selection: str | None) -> int:
    least, _comma, most = clocks.partition(",")
    return _each(selection, "GPU clocks", lambda device: nv.nvmlDeviceSetGpuLockedClocks(device, int(least), int(most or least)))


def unlock_clocks(selection: str | None) -> int:
    return _each(selection, "GPU clocks to default", nv.nvmlDeviceResetGpuLockedClocks)


def compute_mode(word: str, selection: str | None) -> int:
    modes = {"0": 0, "DEFAULT": 0, "2": 2, "PROHIBITED": 2, "3": 3, "EXCLUSIVE_PROCESS": 3}
    if word.upper() not in modes:
        raise Exit(2, f"Invalid compute mode: {word}")
    return _each(selection, "compute mode", lambda device: nv.nvmlDeviceSetComputeMode(device, modes[word.upper()]))


def ecc(word: str, selection: str | None) -> int:
    return _each(selection, "ECC mode (after reboot)", lambda device: nv.nvmlDeviceSetEccMode(device, _switch(word)))
