# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What turns peer-to-peer traffic aside: IOMMU and PCIe access control. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import GPU_CLASSES, Sysfs

# Of the kernel's command line; the rest of it is nobody's business.
ARGUMENTS = ("iommu", "intel_iommu", "amd_iommu", "iommu.passthrough", "iommu.strict", "pcie_acs_override", "pci")
# Extended capabilities begin behind the 256 bytes of ordinary configuration; without root the kernel shows 64 bytes.
_FIRST_CAPABILITY, _ACS, _CONTROL_AT = 0x100, 0x0D, 6
_REQUEST_REDIRECT, _COMPLETION_REDIRECT = 0x04, 0x08


def read(files: Sysfs) -> dict[str, Any]:
    words = (files.text("proc/cmdline") or "").split()
    return {
        "arguments": [word for word in words if word.partition("=")[0] in ARGUMENTS],
        "gpus": [_gpu(files, device["pci_address"]) for device in files.nvidia_devices(GPU_CLASSES)],
    }


def _gpu(files: Sysfs, address: str) -> dict[str, Any]:
    # What leaves a root port goes through the root complex anyway; only switches below it have another way.
    bridges = [name for name in files.ancestors(address) if not name.startswith("pci")][1:]
    return {
        "pci_address": address,
        "kernel_driver": files.kernel_driver(address),
        "iommu_type": files.text(f"sys/bus/pci/devices/{address}/iommu_group/type"),
        "redirecting_bridges": [bridge for bridge in bridges if _redirects(files, bridge)],
    }


def _redirects(files: Sysfs, address: str) -> bool:
    try:
        with open(files.path(f"sys/bus/pci/devices/{address}/config"), "rb") as stream:
            config = stream.read(4096)
    except OSError:
        return False
    return any(
        int.from_bytes(config[at + _CONTROL_AT : at + _CONTROL_AT + 2], "little") & (_REQUEST_REDIRECT | _COMPLETION_REDIRECT)
        for identity, at in _capabilities(config)
        if identity == _ACS
    )


def _capabilities(config: bytes) -> Iterator[tuple[int, int]]:
    """Number and place of each; the list of a broken device may go round."""
    at, seen = _FIRST_CAPABILITY, set[int]()
    while _FIRST_CAPABILITY <= at <= len(config) - 4 and at not in seen:
        header = int.from_bytes(config[at : at + 4], "little")
        yield header & 0xFFFF, at
        seen.add(at)
        at = header >> 20
