# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The `mig` subcommand."""

from __future__ import annotations

import argparse
import ctypes
import glob
import os
import stat
from typing import Any

import pynvml as nv

from . import instances
from .common import Exit, chosen, stop


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="nvidia-smi mig", add_help=True, allow_abbrev=False)
    for short, long in (
        ("-lgip", "--list-gpu-instance-profiles"),
        ("-lgipp", "--list-gpu-instance-possible-placements"),
        ("-lgi", "--list-gpu-instances"),
        ("-lci", "--list-compute-instances"),
        ("-lcip", "--list-compute-instance-profiles"),
    ):
        options.add_argument(short, long, action="store_true", dest=short[1:])
    options.add_argument("-cgi", "--create-gpu-instance", dest="cgi")
    options.add_argument("-C", "--default-compute-instance", action="store_true", dest="default")
    options.add_argument("-cci", "--create-compute-instance", dest="cci", nargs="?", const="")
    options.add_argument("-dci", "--destroy-compute-instance", action="store_true", dest="dci")
    options.add_argument("-dgi", "--destroy-gpu-instance", action="store_true", dest="dgi")
    options.add_argument("-i", "--id", dest="id")
    options.add_argument("-gi", "--gpu-instance-id", dest="gi")
    options.add_argument("-ci", "--compute-instance-id", dest="ci")
    return options


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    devices = [(index, device) for index, device in chosen(options.id) if _capable(device)]
    if not devices:
        raise Exit(6, "No MIG-supported devices found.")
    if options.lgip or options.lgipp:
        return _list_profiles(devices) if options.lgip else _list_placements(devices)
    devices = [(index, device) for index, device in devices if nv.nvmlDeviceGetMigMode(device)[0]]
    if not devices:
        raise Exit(6, "No MIG-enabled devices found.")
    actions = {
        "lgi": _list_instances,
        "lci": _list_computes,
        "lcip": _list_compute_profiles,
        "dci": _destroy_computes,
        "dgi": _destroy_instances,
        "cgi": _create_instances,
        "cci": _create_computes,
    }
    for option, action in actions.items():
        if getattr(options, option) not in (None, False):
            return action(devices, options)
    raise Exit(2, "Option needed; see nvidia-smi mig -h")


def _capable(device: Any) -> bool:
    try:
        nv.nvmlDeviceGetMigMode(device)
    except nv.NVMLError:
        return False
    return True


def _numbers(selection: str | None) -> set[int] | None:
    return None if selection is None else {int(part) for part in selection.split(",")}


def _list_profiles(devices: list[tuple[int, Any]]) -> int:
    print("+-----------------------------------------------------------------------------+")
    print("| GPU instance profiles:                                                      |")
    print("| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |")
    print("|                              Free/Total   GiB              CE    JPEG  OFA  |")
    print("|=============================================================================|")
    for index, device in devices:
        for info in instances.profiles(device):
            try:
                free = nv.nvmlDeviceGetGpuInstanceRemainingCapacity(device, info.id)
                free = getattr(free, "value", free)
            except nv.NVMLError:
                free = 0
            print(
                f"| {index:>3}  MIG {instances.name(info):<14} {info.id:>3}     "
                f"{free}/{info.instanceCount:<8} {info.memorySizeMB / 1024:<9.2f} No  "
                f"{info.multiprocessorCount:>5} {info.decoderCount:>5} {info.encoderCount:>5}   |"
            )
            print(f"|{'':<58}{info.copyEngineCount:>5} {info.jpegCount:>5} {info.ofaCount:>5}   |")
            print("+-----------------------------------------------------------------------------+")
    return 0


def _list_placements(devices: list[tuple[int, Any]]) -> int:
    for index, device in devices:
        for info in instances.profiles(device):
            found = instances.placements(device, info)
            starts = ",".join(str(start) for start, _size in found)
            print(f"GPU  {index} Profile ID {info.id:>2} Placement{'s' if len(found) > 1 else ' '}: {{{starts}}}:{found[0][1]}")
    return 0


def _list_instances(devices: list[tuple[int, Any]], options: Any) -> int:
    rows = [(index, info, profile) for index, device in devices for _handle, info, profile in instances.gpu_instances(device)]
    if not rows:
        raise Exit(6, "No GPU instances found: Not Found")
    print("+---------------------------------------------------------+")
    print("| GPU instances:                                          |")
    print("| GPU   Name               Profile  Instance   Placement  |")
    print("|                            ID       ID       Start:Size |")
    print("|=========================================================|")
    for index, info, profile in rows:
        print(
            f"| {index:>3}  MIG {instances.name(profile):<16} {profile.id:>4}     {info.id:>4}       "
            f"{info.placement.start:>4}:{info.placement.size:<5} |"
        )
        print("+---------------------------------------------------------+")
    return 0


def _list_computes(devices: list[tuple[int, Any]], options: Any) -> int:
    rows = [
        (index, info.id, compute, profile)
        for index, device in devices
        for handle, info, _gi in instances.gpu_instances(device)
        for _ci, compute, profile in instances.compute_instances(handle)
    ]
    if not rows:
        raise Exit(6, "No compute instances found: Not Found")
    print("+--------------------------------------------------------------------+")
    print("| Compute instances:                                                 |")
    print("| GPU     GPU       Name             Profile   Instance   Placement  |")
    print("|       Instance                       ID        ID       Start:Size |")
    print("|         ID                                                         |")
    print("|====================================================================|")
    for index, gi, compute, profile in rows:
        print(
            f"| {index:>3}  {gi:>5}       MIG {instances.name(profile):<14} {profile.id:>5}     {compute.id:>5}       "
            f"{compute.placement.start:>4}:{compute.placement.size:<5}   |"
        )
        print("+--------------------------------------------------------------------+")
    return 0


def _list_compute_profiles(devices: list[tuple[int, Any]], options: Any) -> int:
    for index, device in devices:
        for handle, info, gi in instances.gpu_instances(device):
            for profile in instances.compute_profiles(handle):
                star = "*" if profile.sliceCount == gi.sliceCount else " "
                print(
                    f"| {index:>3} {info.id:>5}   MIG {instances.name(profile):<14} {profile.id:>5}{star}   "
                    f"{profile.instanceCount:>3}   {profile.multiprocessorCount:>3} |"
                )
    return 0


def _find(device: Any, wanted: str) -> Any:
    """A profile by its id, name or placement-free spelling."""
    text = wanted.strip().removeprefix("MIG ")
    for info in instances.profiles(device):
        if text == str(info.id) or text == instances.name(info):
            return info
    raise Exit(3, f"Unable to create a GPU instance using profile {wanted}: Invalid Argument")


def _create_instances(devices: list[tuple[int, Any]], options: Any) -> int:
    for index, device in devices:
        for wanted in options.cgi.split(","):
            name, _colon, start = wanted.partition(":")
            info = _find(device, name)
            label = f"profile MIG {instances.name(info)} (ID {info.id:>2})"
            try:
                if start:
                    placement = nv.c_nvmlGpuInstancePlacement_t(int(start), instances.placements(device, info)[0][1])
                    handle = nv.nvmlDeviceCreateGpuInstanceWithPlacement(device, info.id, ctypes.byref(placement))
                else:
                    handle = nv.nvmlDeviceCreateGpuInstance(device, info.id)
            except nv.NVMLError as error:
                stop(error, f"Unable to create a GPU instance on GPU {index:>2} using profile {info.id}: ")
            gi = nv.nvmlGpuInstanceGetInfo(handle)
            print(f"Successfully created GPU instance ID {gi.id:>2} on GPU {index:>2} using {label}")
            if options.default:
                _create_full(index, gi.id, handle, info)
    make_nodes()
    return 0


def _create_full(index: int, gi: int, handle: Any, info: Any) -> None:
    for profile in instances.compute_profiles(handle):
        if profile.sliceCount == info.sliceCount and profile.multiprocessorCount == info.multiprocessorCount:
            _create_compute(index, gi, handle, profile)
            return


def _create_compute(index: int, gi: int, handle: Any, profile: Any) -> None:
    try:
        compute = nv.nvmlComputeInstanceGetInfo(nv.nvmlGpuInstanceCreateComputeInstance(handle, profile.id))
    except nv.NVMLError as error:
        stop(error, f"Unable to create a compute instance on GPU {index:>2} GPU instance ID {gi:>2} using profile {profile.id}: ")
    print(
        f"Successfully created compute instance ID {compute.id:>2} on GPU {index:>2} GPU instance ID {gi:>2} "
        f"using profile MIG {instances.name(profile)} (ID {profile.id:>2})"
    )


def _create_computes(devices: list[tuple[int, Any]], options: Any) -> int:
    only = _numbers(options.gi)
    for index, device in devices:
        for handle, info, gi in instances.gpu_instances(device):
            if only is not None and info.id not in only:
                continue
            if options.cci:
                for wanted in options.cci.split(","):
                    found = [one for one in instances.compute_profiles(handle) if wanted in (str(one.id), instances.name(one))]
                    if not found:
                        raise Exit(3, f"Unable to create a compute instance using profile {wanted}: Invalid Argument")
                    _create_compute(index, info.id, handle, found[0])
            else:
                _create_full(index, info.id, handle, gi)
    make_nodes()
    return 0


def _destroy_computes(devices: list[tuple[int, Any]], options: Any) -> int:
    only_gi, only_ci = _numbers(options.gi), _numbers(options.ci)
    done = 0
    for index, device in devices:
        for handle, info, _gi in instances.gpu_instances(device):
            for compute, facts, _profile in instances.compute_instances(handle):
                if (only_gi is not None and info.id not in only_gi) or (only_ci is not None and facts.id not in only_ci):
                    continue
                try:
                    nv.nvmlComputeInstanceDestroy(compute)
                except nv.NVMLError as error:
                    stop(error, f"Unable to destroy compute instance ID {facts.id:>2} from GPU {index:>2} GPU instance ID {info.id:>2}: ")
                print(f"Successfully destroyed compute instance ID {facts.id:>2} from GPU {index:>2} GPU instance ID {info.id:>2}")
                done += 1
    if not done:
        raise Exit(6, "No compute instances found: Not Found")
    return 0


def _destroy_instances(devices: list[tuple[int, Any]], options: Any) -> int:
    only = _numbers(options.gi)
    done = 0
    for index, device in devices:
        for handle, info, _gi in instances.gpu_instances(device):
            if only is not None and info.id not in only:
                continue
            try:
                nv.nvmlGpuInstanceDestroy(handle)
            except nv.NVMLError as error:
                stop(error, f"Unable to destroy GPU instance ID {info.id:>2} from GPU {index:>2}: ")
            print(f"Successfully destroyed GPU instance ID {info.id:>2} from GPU {index:>2}")
            done += 1
    if not done:
        raise Exit(6, "No GPU instances found: Not Found")
    return 0


def make_nodes() -> None:
    """The device files of instances, which nvidia-modprobe makes on a real node."""
    if not os.path.isdir("/dev/nvidia-caps"):
        return
    for path in glob.glob("/proc/driver/nvidia/capabilities/gpu*/mig/gi*/access") + glob.glob(
        "/proc/driver/nvidia/capabilities/gpu*/mig/gi*/ci*/access"
    ):
        with open(path, encoding="ascii") as stream:
            minor = int(stream.readline().split(":")[1])
        target = f"/dev/nvidia-caps/nvidia-cap{minor}"
        if not os.path.exists(target):
            os.mknod(target, stat.S_IFCHR | 0o444, os.makedev(1, 3))
