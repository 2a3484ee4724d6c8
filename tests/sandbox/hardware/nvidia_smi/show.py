# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""-L, the table, -q, --query-gpu and --query-compute-apps."""

from __future__ import annotations

import datetime
from typing import Any

import pynvml as nv

from .common import Exit, all_gpus, bus_id, chosen, text, value

MIB = 1024 * 1024
NA = "[N/A]"


def mig_mode(device: Any) -> tuple[str, str]:
    mode = value("nvmlDeviceGetMigMode", device)
    return (NA, NA) if mode is None else tuple("Enabled" if one else "Disabled" for one in mode)  # type: ignore[return-value]


def listing() -> int:
    for index, device in all_gpus():
        print(f"GPU {index}: {text(nv.nvmlDeviceGetName(device))} (UUID: {text(nv.nvmlDeviceGetUUID(device))})")
        for slot in range(value("nvmlDeviceGetMaxMigDeviceCount", device, default=0)):
            mig = value("nvmlDeviceGetMigDeviceHandleByIndex", device, slot)
            if mig is not None:
                name = text(nv.nvmlDeviceGetName(mig)).partition(" MIG ")[2]
                print(f"  MIG {name:<15} Device {slot:>2}: (UUID: {text(nv.nvmlDeviceGetUUID(mig))})")
    return 0


def table() -> int:
    driver = text(nv.nvmlSystemGetDriverVersion())
    cuda = nv.nvmlSystemGetCudaDriverVersion()
    print(datetime.datetime.now().strftime("%a %b %d %H:%M:%S %Y"))
    line = "+" + "-" * 89 + "+"
    print(line)
    print(f"| NVIDIA-SMI {driver:<21}  Driver Version: {driver:<14} CUDA Version: {cuda // 1000}.{cuda % 1000 // 10:<8} |")
    print(line)
    print("| GPU  Name                 Persistence-M | Bus-Id           |   Memory-Usage          | MIG M.   |")
    for index, device in all_gpus():
        memory = nv.nvmlDeviceGetMemoryInfo(device)
        persistence = "On" if value("nvmlDeviceGetPersistenceMode", device) else "Off"
        usage = f"{memory.used // MIB:>6}MiB / {memory.total // MIB:>6}MiB"
        print(
            f"| {index:>3}  {text(nv.nvmlDeviceGetName(device)):<28} {persistence:>6} | {bus_id(device):<16} "
            f"| {usage:>23} | {mig_mode(device)[0]:<8} |"
        )
    print(line)
    print("| Processes:  GPU   GI   CI        PID   Type   GPU Memory                                 |")
    rows = [(index, process) for index, device in all_gpus() for process in nv.nvmlDeviceGetComputeRunningProcesses(device)]
    for index, process in rows:
        gi, ci = (NA if one == 0xFFFFFFFF else one for one in (process.gpuInstanceId, process.computeInstanceId))
        print(f"|             {index:>3} {gi:>4} {ci:>4} {process.pid:>10}      C   {(process.usedGpuMemory or 0) // MIB}MiB")
    if not rows:
        print("|  No running processes found                                                             |")
    print(line)
    return 0


def query(selection: str | None) -> int:
    """-q, in part: what an operator looks up most."""
    for _index, device in chosen(selection):
        current, pending = mig_mode(device)
        ecc = value("nvmlDeviceGetEccMode", device, default=(None, None))
        rows = value("nvmlDeviceGetRemappedRows", device)
        limits = value("nvmlDeviceGetPowerManagementLimitConstraints", device, default=(0, 0))
        memory = nv.nvmlDeviceGetMemoryInfo(device)
        print(f"\nGPU {bus_id(device)}")
        _field("Product Name", text(nv.nvmlDeviceGetName(device)))
        _field("Product Architecture", str(value("nvmlDeviceGetArchitecture", device)))
        _field("Persistence Mode", _on(value("nvmlDeviceGetPersistenceMode", device)))
        print("    MIG Mode")
        _field("Current", current, 8)
        _field("Pending", pending, 8)
        _field("Serial Number", text(value("nvmlDeviceGetSerial", device, default=NA)))
        _field("GPU UUID", text(nv.nvmlDeviceGetUUID(device)))
        _field("Minor Number", str(nv.nvmlDeviceGetMinorNumber(device)))
        _field("VBIOS Version", text(value("nvmlDeviceGetVbiosVersion", device, default=NA)))
        print("    GPU Link Info")
        _field("PCIe Generation Max", str(value("nvmlDeviceGetMaxPcieLinkGeneration", device)), 8)
        _field("PCIe Generation Current", str(value("nvmlDeviceGetCurrPcieLinkGeneration", device)), 8)
        _field("Link Width Max", f"{value('nvmlDeviceGetMaxPcieLinkWidth', device)}x", 8)
        _field("Link Width Current", f"{value('nvmlDeviceGetCurrPcieLinkWidth', device)}x", 8)
        print("    FB Memory Usage")
        _field("Total", f"{memory.total // MIB} MiB", 8)
        _field("Used", f"{memory.used // MIB} MiB", 8)
        _field("Free", f"{memory.free // MIB} MiB", 8)
        print("    ECC Mode")
        _field("Current", _on(ecc[0]), 8)
        _field("Pending", _on(ecc[1]), 8)
        print("    Remapped Rows")
        for position, name in enumerate(("Correctable Error", "Uncorrectable Error", "Pending", "Remapping Failure Occurred")):
            _field(name, NA if rows is None else str(rows[position]) if position < 2 else ("Yes" if rows[position] else "No"), 8)
        print("    GPU Power Readings")
        _field("Current Power Limit", f"{value('nvmlDeviceGetPowerManagementLimit', device, default=0) / 1000:.2f} W", 8)
        _field("Default Power Limit", f"{value('nvmlDeviceGetPowerManagementDefaultLimit', device, default=0) / 1000:.2f} W", 8)
        _field("Min Power Limit", f"{limits[0] / 1000:.2f} W", 8)
        _field("Max Power Limit", f"{limits[1] / 1000:.2f} W", 8)
        print("    Clocks")
        for name, kind in (("Graphics", nv.NVML_CLOCK_GRAPHICS), ("SM", nv.NVML_CLOCK_SM), ("Memory", nv.NVML_CLOCK_MEM)):
            _field(name, f"{value('nvmlDeviceGetClockInfo', device, kind)} MHz", 8)
    return 0


def _field(name: str, content: str, indent: int = 4) -> None:
    print(f"{' ' * indent}{name:<{42 - indent}}: {content}")


def _on(state: Any) -> str:
    return NA if state is None else "Enabled" if state else "Disabled"


FIELDS: dict[str, Any] = {
    "index": lambda device: str(nv.nvmlDeviceGetIndex(device)),
    "name": lambda device: text(nv.nvmlDeviceGetName(device)),
    "gpu_name": lambda device: text(nv.nvmlDeviceGetName(device)),
    "uuid": lambda device: text(nv.nvmlDeviceGetUUID(device)),
    "gpu_uuid": lambda device: text(nv.nvmlDeviceGetUUID(device)),
    "serial": lambda device: text(value("nvmlDeviceGetSerial", device, default=NA)),
    "pci.bus_id": bus_id,
    "gpu_bus_id": bus_id,
    "driver_version": lambda device: text(nv.nvmlSystemGetDriverVersion()),
    "compute_cap": lambda device: ".".join(map(str, nv.nvmlDeviceGetCudaComputeCapability(device))),
    "mig.mode.current": lambda device: mig_mode(device)[0],
    "mig.mode.pending": lambda device: mig_mode(device)[1],
    "persistence_mode": lambda device: _on(value("nvmlDeviceGetPersistenceMode", device)),
    "ecc.mode.current": lambda device: _on(value("nvmlDeviceGetEccMode", device, default=(None, None))[0]),
    "ecc.mode.pending": lambda device: _on(value("nvmlDeviceGetEccMode", device, default=(None, None))[1]),
    "compute_mode": lambda device: {0: "Default", 2: "Prohibited", 3: "Exclusive_Process"}.get(
        value("nvmlDeviceGetComputeMode", device), NA
    ),
    "pcie.link.gen.current": lambda device: str(value("nvmlDeviceGetCurrPcieLinkGeneration", device, default=NA)),
    "pcie.link.gen.max": lambda device: str(value("nvmlDeviceGetMaxPcieLinkGeneration", device, default=NA)),
    "pcie.link.width.current": lambda device: str(value("nvmlDeviceGetCurrPcieLinkWidth", device, default=NA)),
    "pcie.link.width.max": lambda device: str(value("nvmlDeviceGetMaxPcieLinkWidth", device, default=NA)),
}
UNITS: dict[str, tuple[str, Any]] = {
    "memory.total": ("MiB", lambda device: nv.nvmlDeviceGetMemoryInfo(device).total // MIB),
    "memory.used": ("MiB", lambda device: nv.nvmlDeviceGetMemoryInfo(device).used // MIB),
    "memory.free": ("MiB", lambda device: nv.nvmlDeviceGetMemoryInfo(device).free // MIB),
    "power.limit": ("W", lambda device: f"{nv.nvmlDeviceGetPowerManagementLimit(device) / 1000:.2f}"),
    "power.default_limit": ("W", lambda device: f"{nv.nvmlDeviceGetPowerManagementDefaultLimit(device) / 1000:.2f}"),
    "power.draw": ("W", lambda device: f"{nv.nvmlDeviceGetPowerUsage(device) / 1000:.2f}"),
    "clocks.gr": ("MHz", lambda device: nv.nvmlDeviceGetClockInfo(device, nv.NVML_CLOCK_GRAPHICS)),
    "clocks.mem": ("MHz", lambda device: nv.nvmlDeviceGetClockInfo(device, nv.NVML_CLOCK_MEM)),
    "utilization.gpu": ("%", lambda device: nv.nvmlDeviceGetUtilizationRates(device).gpu),
    "temperature.gpu": ("", lambda device: nv.nvmlDeviceGetTemperature(device, nv.NVML_TEMPERATURE_GPU)),
}


def _csv(format_: str) -> tuple[bool, bool]:
    parts = format_.split(",")
    if parts[0] != "csv":
        raise Exit(2, f'"{format_}" is not a recognized format. Supported: csv[,noheader][,nounits]')
    return "noheader" not in parts, "nounits" not in parts


def query_gpu(fields: str, format_: str, selection: str | None) -> int:
    header, units = _csv(format_)
    names = [name.strip() for name in fields.split(",")]
    for name in names:
        if name not in FIELDS and name not in UNITS:
            raise Exit(2, f'Field "{name}" is not a valid field to query.')
    if header:
        print(", ".join(f"{name} [{UNITS[name][0]}]" if name in UNITS and UNITS[name][0] and units else name for name in names))
    for _index, device in chosen(selection):
        print(", ".join(_cell(name, device, units) for name in names))
    return 0


def _cell(name: str, device: Any, units: bool) -> str:
    if name in FIELDS:
        return FIELDS[name](device)
    unit, read = UNITS[name]
    try:
        return f"{read(device)} {unit}".strip() if units else str(read(device))
    except nv.NVMLError:
        return NA


def query_apps(fields: str, format_: str, selection: str | None) -> int:
    header, units = _csv(format_)
    names = [name.strip() for name in fields.split(",")]
    if header:
        print(", ".join(names))
    for _index, device in chosen(selection):
        for process in nv.nvmlDeviceGetComputeRunningProcesses(device):
            memory = f"{(process.usedGpuMemory or 0) // MIB}" + (" MiB" if units else "")
            cells = {
                "pid": str(process.pid),
                "gpu_uuid": text(nv.nvmlDeviceGetUUID(device)),
                "gpu_bus_id": bus_id(device),
                "gpu_name": text(nv.nvmlDeviceGetName(device)),
                "process_name": text(value("nvmlSystemGetProcessName", process.pid, default="[Not Found]")),
                "name": text(value("nvmlSystemGetProcessName", process.pid, default="[Not Found]")),
                "used_memory": memory,
                "used_gpu_memory": memory,
            }
            print(", ".join(cells.get(name, NA) for name in names))
    return 0
