# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the MIG side of every GPU from NVML, changes nothing. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import ctypes
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _mig_holders, _nvml
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import Refused
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Offer, Profile, Slot
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_state import ComputeInstance, Gpu, Instance

MAX_SLICES = 16
PASSTHROUGH = 1


def read(nvml: Any, tables: dict[str, Offer]) -> list[Gpu]:
    """Every GPU of the node. `tables` holds profiles by model name, for drivers that list none while MIG mode is off."""
    files = _mig_holders.open_device_files()
    return _nvml.each_device(nvml, lambda index, device: read_gpu(nvml, index, device, files, tables))


def read_gpu(nvml: Any, index: int, device: Any, files: dict[str, list[int]], tables: dict[str, Offer]) -> Gpu:
    address = _nvml.pci_address(nvml, device)
    name = _nvml.text(nvml.nvmlDeviceGetName(device))
    mode = _nvml.try_get(nvml, "nvmlDeviceGetMigMode", device)
    minor = _nvml.try_get(nvml, "nvmlDeviceGetMinorNumber", device)
    processes = _mig_holders.listed(nvml, device)
    openers = files.get(f"/dev/nvidia{minor}", [])
    facts: dict[str, Any] = {
        "index": index,
        "pci_address": address,
        "name": name,
        "uuid": _nvml.try_get(nvml, "nvmlDeviceGetUUID", device),
        "numa_node": numa_node(address),
        "minor_number": minor,
        "capable": mode is not None,
        "holders": tuple(_mig_holders.command(pid) for pid in dict.fromkeys([p[0] for p in processes] + openers)),
    }
    if mode is None:
        return Gpu(**facts)
    enabled, pending = bool(mode[0]), bool(mode[1])
    offer = read_offer(nvml, device) or tables.get(name)
    return Gpu(
        **facts,
        mode=enabled,
        pending=pending,
        passthrough=_nvml.try_get(nvml, "nvmlDeviceGetVirtualizationMode", device) == PASSTHROUGH,
        offer=offer,
        instances=tuple(instances(nvml, device, offer, processes, files, minor=minor)) if enabled and offer else (),
    )


def numa_node(address: str) -> int | None:
    try:
        with open(f"/sys/bus/pci/devices/{address}/numa_node", encoding="ascii") as stream:
            value = int(stream.read())
            return value if value >= 0 else None
    except (OSError, ValueError):
        return None


def read_offer(nvml: Any, device: Any) -> Offer | None:
    profiles = []
    for constant in range(nvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        info = _nvml.try_get(nvml, "nvmlDeviceGetGpuInstanceProfileInfo", device, constant)
        if info is not None:
            profiles.append(_profile(nvml, device, info))
    return Offer(tuple(profiles)) if profiles else None


def _profile(nvml: Any, device: Any, info: Any) -> Profile:
    placements = (nvml.c_nvmlGpuInstancePlacement_t * MAX_SLICES)()
    count = ctypes.c_uint(MAX_SLICES)
    try:
        nvml.nvmlDeviceGetGpuInstancePossiblePlacements(device, info.id, placements, ctypes.byref(count))
    except nvml.NVMLError as error:
        if _nvml.error_name(nvml, error) == "NO_PERMISSION":
            raise Refused("Reading and changing MIG instances needs root; run the task with `become: true`.") from None
        raise
    starts = tuple(sorted(placements[i].start for i in range(count.value)))
    name = _nvml.text(info.name)
    return Profile(
        name=name[4:] if name.startswith("MIG ") else name,
        profile_id=info.id,
        slices=info.sliceCount,
        size=placements[0].size if count.value else 0,
        starts=starts,
        max_instances=info.instanceCount,
        memory_mib=info.memorySizeMB,
        multiprocessors=info.multiprocessorCount,
    )


def gpu_instances(nvml: Any, device: Any, profile: Profile) -> list[Any]:
    handles = (nvml.c_nvmlGpuInstance_t * MAX_SLICES)()
    count = ctypes.c_uint(MAX_SLICES)
    nvml.nvmlDeviceGetGpuInstances(device, profile.profile_id, handles, ctypes.byref(count))
    return [handles[i] for i in range(count.value)]


def compute_profiles(nvml: Any, handle: Any) -> dict[int, Any]:
    found = {}
    for constant in range(nvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        info = _nvml.try_get(nvml, "nvmlGpuInstanceGetComputeInstanceProfileInfo", handle, constant, 0)
        if info is not None:
            found[info.id] = info
    return found


def is_full(info: Any, profile: Profile) -> bool:
    """The index of the full-size profile differs between models and profiles: its size does not."""
    return info.sliceCount == profile.slices and info.multiprocessorCount == profile.multiprocessors


def compute_instances(nvml: Any, handle: Any, profile_ids: Any) -> list[Any]:
    found = []
    for profile_id in profile_ids:
        handles = (nvml.c_nvmlComputeInstance_t * MAX_SLICES)()
        count = ctypes.c_uint(MAX_SLICES)
        nvml.nvmlGpuInstanceGetComputeInstances(handle, profile_id, handles, ctypes.byref(count))
        found += [handles[i] for i in range(count.value)]
    return found


def _uuids(nvml: Any, device: Any) -> dict[tuple[int, int], str]:
    """MIG UUIDs by GPU instance and compute instance; the list of MIG devices has holes."""
    found = {}
    for index in range(_nvml.try_get(nvml, "nvmlDeviceGetMaxMigDeviceCount", device) or 0):
        handle = _nvml.try_get(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", device, index)
        if handle is not None:
            key = (_value(nvml.nvmlDeviceGetGpuInstanceId(handle)), _value(nvml.nvmlDeviceGetComputeInstanceId(handle)))
            found[key] = _nvml.text(nvml.nvmlDeviceGetUUID(handle))
    return found


def _value(number: Any) -> int:
    return int(getattr(number, "value", number))


def instances(
    nvml: Any, device: Any, offer: Offer, processes: list[tuple[int, int, int]], files: dict[str, list[int]], *, minor: Any
) -> list[Instance]:
    # GPU instances are asked for by profile: one without a compute instance is no MIG device and would not be seen otherwise.
    uuids = _uuids(nvml, device)
    found = []
    for profile in offer.profiles:
        compute_infos: dict[int, Any] = {}
        for handle in gpu_instances(nvml, device, profile):
            info = nvml.nvmlGpuInstanceGetInfo(handle)
            compute_infos = compute_infos or compute_profiles(nvml, handle)
            users = [(pid, ci) for pid, gi, ci in processes if gi == info.id]
            leaked = (
                [pid for path in _mig_holders.capability_files(minor, info.id) for pid in files.get(path, [])] if minor is not None else []
            )
            computes = []
            for compute in compute_instances(nvml, handle, compute_infos):
                one = nvml.nvmlComputeInstanceGetInfo(compute)
                computes.append(
                    ComputeInstance(
                        compute_instance_id=one.id,
                        profile_index=one.profileId,
                        start=one.placement.start,
                        full=is_full(compute_infos[one.profileId], profile),
                        uuid=uuids.get((info.id, one.id)),
                    )
                )
            pids = dict.fromkeys([pid for pid, _ci in users] + leaked)
            found.append(
                Instance(info.id, Slot(profile.name, info.placement.start), tuple(computes), tuple(map(_mig_holders.command, pids)))
            )
    return found
