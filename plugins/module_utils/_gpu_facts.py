# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One GPU's facts from NVML; what this GPU, driver or user has not is None. PRIVATE: internal to the collection, may change at any time.

Each fact is read once. A record has the same keys whether NVML answers or not, so that templates need no second form.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _gpu_health, _gpu_mig, _gpu_nvlinks, _gpu_settings, _pci
from ansible_collections.heterogpu.inference.plugins.module_utils._nvml import GpuLost, Reader, text

MIB = 1024 * 1024
ARCHITECTURES = {2: "kepler", 3: "maxwell", 4: "pascal", 5: "volta", 6: "turing", 7: "ampere", 8: "ada", 9: "hopper", 10: "blackwell"}
VIRTUALIZATION = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host_vgpu", 4: "host_vsga"}
SCALARS = (
    "index", "uuid", "name", "pci_address", "pci_device_id", "lost", "serial", "minor_number", "vbios_version", "architecture",
    "compute_capability", "virtualization", "memory_mib", "memory_used_mib", "bar1_mib", "utilization_percent", "nvlinks", "processes",
)  # fmt: skip
NO_INSTANCE = 0xFFFFFFFF


def blank(**known: Any) -> dict[str, Any]:
    """A GPU of which NVML tells nothing."""
    groups = {"mig": _gpu_mig.blank(), "settings": _gpu_settings.blank(), "health": _gpu_health.blank(), "errors": {}}
    return {**dict.fromkeys(SCALARS), **groups, **known}


def read(nvml: Any, index: int, device: Any) -> dict[str, Any]:
    reader = Reader(nvml, device)
    record = blank(index=index, lost=False)
    try:
        _identify(reader, record)
        _describe(reader, record)
    except GpuLost:
        # What was read before stays: the address and UUID say which GPU it was.
        record["lost"] = True
    record["errors"] = reader.errors
    return record


def _identify(reader: Reader, record: dict[str, Any]) -> None:
    pci = reader.get("nvmlDeviceGetPciInfo")
    if pci is not None:
        record.update(pci_address=_pci.normalise(text(pci.busId)), pci_device_id=f"0x{pci.pciDeviceId >> 16:04x}")
    record["uuid"] = reader.get("nvmlDeviceGetUUID")
    record["name"] = reader.get("nvmlDeviceGetName")
    record["serial"] = reader.get("nvmlDeviceGetSerial")
    record["minor_number"] = reader.get("nvmlDeviceGetMinorNumber")


def _describe(reader: Reader, record: dict[str, Any]) -> None:
    capability = reader.get("nvmlDeviceGetCudaComputeCapability")
    memory = reader.get("nvmlDeviceGetMemoryInfo")
    bar1 = reader.get("nvmlDeviceGetBAR1MemoryInfo")
    running = reader.get("nvmlDeviceGetComputeRunningProcesses")
    record.update(
        vbios_version=reader.get("nvmlDeviceGetVbiosVersion"),
        architecture=ARCHITECTURES.get(reader.get("nvmlDeviceGetArchitecture")),
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        virtualization=VIRTUALIZATION.get(reader.get("nvmlDeviceGetVirtualizationMode")),
        memory_mib=memory.total // MIB if memory else None,
        memory_used_mib=memory.used // MIB if memory else None,
        bar1_mib=bar1.bar1Total // MIB if bar1 else None,
        utilization_percent=getattr(reader.get("nvmlDeviceGetUtilizationRates"), "gpu", None),
        processes=None if running is None else [_process(one) for one in running],
        nvlinks=_gpu_nvlinks.read(reader),
        settings=_gpu_settings.read(reader),
        mig=_gpu_mig.read(reader, record["minor_number"]),
    )
    record["health"] = _gpu_health.read(reader, record["nvlinks"])


def _process(process: Any) -> dict[str, Any]:
    used = process.usedGpuMemory
    return {
        "pid": process.pid,
        "command": _command(process.pid),
        "used_memory_mib": used // MIB if used is not None else None,
        "gpu_instance_id": _instance_id(getattr(process, "gpuInstanceId", None)),
        "compute_instance_id": _instance_id(getattr(process, "computeInstanceId", None)),
    }


def _instance_id(number: Any) -> int | None:
    return None if number in (None, NO_INSTANCE) else number


def _command(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return None  # ended meanwhile, or of another PID namespace
