# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU instances and compute instances as NVML lists them."""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml as nv

from .common import text, value

MOST = 16


def profiles(device: Any) -> list[Any]:
    found = [value("nvmlDeviceGetGpuInstanceProfileInfo", device, index) for index in range(nv.NVML_GPU_INSTANCE_PROFILE_COUNT)]
    return [info for info in found if info is not None]


def name(info: Any) -> str:
    return text(info.name).removeprefix("MIG ")


def placements(device: Any, info: Any) -> list[tuple[int, int]]:
    room, count = (nv.c_nvmlGpuInstancePlacement_t * MOST)(), ctypes.c_uint(MOST)
    nv.nvmlDeviceGetGpuInstancePossiblePlacements(device, info.id, room, ctypes.byref(count))
    return [(room[i].start, room[i].size) for i in range(count.value)]


def gpu_instances(device: Any) -> list[tuple[Any, Any, Any]]:
    """(handle, its info, its profile)"""
    found = []
    for profile in profiles(device):
        room, count = (nv.c_nvmlGpuInstance_t * MOST)(), ctypes.c_uint(MOST)
        nv.nvmlDeviceGetGpuInstances(device, profile.id, room, ctypes.byref(count))
        found += [(room[i], nv.nvmlGpuInstanceGetInfo(room[i]), profile) for i in range(count.value)]
    return found


def compute_profiles(handle: Any) -> list[Any]:
    found = [
        value("nvmlGpuInstanceGetComputeInstanceProfileInfo", handle, index, 0) for index in range(nv.NVML_COMPUTE_INSTANCE_PROFILE_COUNT)
    ]
    return [info for info in found if info is not None]


def compute_instances(handle: Any) -> list[tuple[Any, Any, Any]]:
    found = []
    for profile in compute_profiles(handle):
        room, count = (nv.c_nvmlComputeInstance_t * MOST)(), ctypes.c_uint(MOST)
        nv.nvmlGpuInstanceGetComputeInstances(handle, profile.id, room, ctypes.byref(count))
        found += [(room[i], nv.nvmlComputeInstanceGetInfo(room[i]), profile) for i in range(count.value)]
    return found
