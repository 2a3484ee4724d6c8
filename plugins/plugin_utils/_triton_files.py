# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Finds the CUDA device of every replica and writes the files of its unit. Pure: no connection, no file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ENVIRONMENT_FOLDER = "/etc/heterogpu/triton"
# What the unit looks up when it starts; laid down here too, so that a run sees whether a running server has another device.
RESOLVED_FOLDER = "/run/heterogpu/triton"
_HEADER = "# Managed by heterogpu.inference; changes made here are lost.\n"

Replica = Mapping[str, Any]


class DeviceError(ValueError):
    """A full sentence for the user."""


def device_key(node: str, device: Mapping[str, Any]) -> str:
    """The key that survives re-creation of instances, unlike a MIG UUID."""
    if "gpus" in device:
        share = f"/share-{device['share']}" if device.get("share") else ""
        return f"{node}/{'+'.join(address.lower() for address in device['gpus'])}{share}"
    return f"{node}/{device['pci_address'].lower()}/{device['profile']}@{device['start']}"


def device_keys(device: Mapping[str, Any]) -> list[str]:
    """The keys in the node's map of devices."""
    if "gpus" in device:
        return [address.lower() for address in device["gpus"]]
    return [f"{device['pci_address'].lower()}/{device['profile']}@{device['start']}"]


def resolve(replicas: Sequence[Replica], node: str, gpus: Sequence[Mapping[str, Any]], allow_missing: bool = False) -> list[dict[str, Any]]:
    """Add device_key and visible_devices (a list of UUIDs) to every replica."""
    by_address = {gpu["pci_address"]: gpu for gpu in gpus}
    return [
        {
            **replica,
            "device_key": device_key(node, replica["device"]),
            "visible_devices": list(_uuids(replica, node, by_address, allow_missing)),
        }
        for replica in replicas
    ]


def _uuids(replica: Replica, node: str, gpus: Mapping[str, Mapping[str, Any]], allow_missing: bool) -> Iterator[str]:
    device = replica["device"]
    addresses = device["gpus"] if "gpus" in device else [device["pci_address"]]
    for address in (address.lower() for address in addresses):
        gpu = gpus.get(address)
        if gpu is None:
            raise DeviceError(
                f"Replica {replica['name']} is placed on GPU {address} of {node}, which the node does not have; correct triton_replicas."
            )
        uuid = _instance_uuid(device, gpu) if "profile" in device else _whole_gpu_uuid(gpu)
        if uuid is None and not allow_missing:
            raise DeviceError(
                f"Replica {replica['name']} needs {device_key(node, device)}, which does not exist now; "
                "declare it in mig_geometry_selections and run the mig role, or correct triton_replicas."
            )
        yield uuid or f"UUID-of-{address}"


def _instance_uuid(device: Mapping[str, Any], gpu: Mapping[str, Any]) -> str | None:
    for instance in (gpu.get("mig") or {}).get("instances") or []:
        if instance["profile"] == device["profile"] and instance["start"] == int(device["start"]):
            return instance.get("uuid")
    return None


def _whole_gpu_uuid(gpu: Mapping[str, Any]) -> str | None:
    """A GPU in MIG mode runs nothing outside of its instances."""
    if (gpu.get("mig") or {}).get("mode_current") in (True, 1, "enabled"):
        return None
    return gpu.get("uuid")


def files(replicas: Sequence[Replica]) -> list[dict[str, str]]:
    """Environment and placement drop-in of every resolved replica."""
    entries = []
    for replica in replicas:
        name = replica["name"]
        entries.append({"path": f"{ENVIRONMENT_FOLDER}/{name}.env", "content": _environment(replica)})
        entries.append({"path": f"{RESOLVED_FOLDER}/{name}.env", "content": _resolved(replica)})
        placement = _placement(replica)
        if placement:
            entries.append({"path": f"/etc/systemd/system/triton@{name}.service.d/10-placement.conf", "content": placement})
    return entries


def _environment(replica: Replica) -> str:
    values = {
        "MODEL": replica["model"],
        "HTTP_PORT": replica["http_port"],
        "GRPC_PORT": replica["grpc_port"],
        "METRICS_PORT": replica["metrics_port"],
        "DEVICE_KEY": replica["device_key"],
        "DEVICES": ",".join(device_keys(replica["device"])),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    return _HEADER + "".join(f"{name}={value}\n" for name, value in values.items())


def _resolved(replica: Replica) -> str:
    # Launchers of containers read the first, CUDA in this process reads the second; they never differ.
    devices = ",".join(replica["visible_devices"])
    return f"NVIDIA_VISIBLE_DEVICES={devices}\nCUDA_VISIBLE_DEVICES={devices}\n"


def _placement(replica: Replica) -> str:
    lines = []
    if replica.get("cpus"):
        lines.append(f"CPUAffinity={replica['cpus']}")
    if replica.get("numa_node") is not None:
        lines += ["NUMAPolicy=bind", f"NUMAMask={replica['numa_node']}"]
    return _HEADER + "[Service]\n" + "\n".join(lines) + "\n" if lines else ""
