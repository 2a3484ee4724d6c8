# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All facts of a GPU node in one reading. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import (
    _bounded,
    _driver_facts,
    _gpu_facts,
    _kernel_facts,
    _nvml,
    _sysfs_networks,
    _sysfs_numa,
    _topology,
    _xid,
)
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import DriverHang, DriverUnavailable, GpuError, InvalidInput
from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import GPU_CLASSES, SWITCH_CLASS, Sysfs


def read(source: str | None, timeout: float, required: bool = False, root: str = "/") -> dict[str, Any]:
    """The module's result. What cannot be read is None or told in `driver`; only `required` makes it an error."""
    if timeout <= 0:
        raise InvalidInput(f"The timeout is {timeout:g} s; give the seconds that one driver call may take, such as 60.")
    sysfs = Sysfs(root)
    driver = _driver_facts.driver(sysfs)
    listed = _ask_driver(source, timeout, driver)
    gpus = _with_machine(sysfs, listed, driver["state"] == "ok")
    if required:
        _refuse(driver, gpus)
    switches = sysfs.nvidia_devices((SWITCH_CLASS,))
    hcas = _sysfs_networks.hcas(sysfs)
    for hca in hcas:
        hca["distance_to_gpus"] = {
            gpu["pci_address"]: _topology.between(sysfs, hca["pci_address"], gpu["pci_address"])
            for gpu in gpus
            if gpu["pci_address"] and hca["pci_address"]
        }
    return {
        "gpus": gpus,
        "nvswitches": switches,
        "topology": _topology.read(sysfs, gpus, switches),
        "hcas": hcas,
        "nics": _sysfs_networks.nics(sysfs),
        **_sysfs_numa.read(sysfs),
        "driver": {**driver, **_kernel_facts.read(sysfs)},
        "cuda": _driver_facts.cuda(sysfs),
        "nccl": _driver_facts.nccl(sysfs),
    }


def _ask_driver(source: str | None, timeout: float, driver: dict[str, Any]) -> list[dict[str, Any]]:
    """NVML's GPUs; what it says of the driver, or why it does not answer, goes into `driver`."""
    try:
        answer = _bounded.call(lambda report: _from_nvml(source, report), timeout, "was reading the GPUs")
    except DriverUnavailable as error:
        driver.update(state=error.state, message=str(error))
        return []
    except DriverHang as error:
        driver.update(state="hung", message=str(error))
        return list(error.progress.get("gpus", []))
    except InvalidInput:
        raise
    except GpuError as error:
        driver.update(state="unusable", message=str(error))
        return []
    driver.update(answer["driver"])
    return answer["gpus"]


def _from_nvml(source: str | None, report: _bounded.Report) -> dict[str, Any]:
    nvml = _nvml.load(source)
    report({"doing": "nvmlInit"})
    gpus: list[dict[str, Any]] = []
    with _nvml.Session(nvml):
        for index in range(_count(nvml)):
            # The GPUs read so far go along: they are not lost when this one hangs.
            report({"doing": f"reading GPU {index}", "gpus": gpus})
            gpus.append(_read_gpu(nvml, index))
        report({"doing": "reading versions", "gpus": gpus})
        cuda = _nvml.try_get(nvml, "nvmlSystemGetCudaDriverVersion")
        driver = {
            "state": "ok",
            "nvml_version": _nvml.try_get(nvml, "nvmlSystemGetNVMLVersion"),
            "cuda_version": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        }
        version = _nvml.try_get(nvml, "nvmlSystemGetDriverVersion")
        if version:
            driver["loaded_version"] = version
        report({"doing": "nvmlShutdown", "gpus": gpus})
    return {"gpus": gpus, "driver": driver}


def _count(nvml: Any) -> int:
    try:
        return nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        raise GpuError(
            f"NVML answered {_nvml.error_name(nvml, error)} when it was asked how many GPUs there are; "
            "look for NVRM messages with `journalctl -k`."
        ) from None


def _read_gpu(nvml: Any, index: int) -> dict[str, Any]:
    try:
        device = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        name = _nvml.error_name(nvml, error)
        return _gpu_facts.blank(index=index, lost=name == "GPU_IS_LOST", errors={"nvmlDeviceGetHandleByIndex": name})
    return _gpu_facts.read(nvml, index, device)


def _with_machine(sysfs: Sysfs, listed: list[dict[str, Any]], driver_answers: bool) -> list[dict[str, Any]]:
    """NVML's GPUs with their place in the machine, and the GPUs that only the PCI bus shows."""
    gpus = [gpu for gpu in listed if gpu["pci_address"]]
    nameless = [gpu for gpu in listed if not gpu["pci_address"]]
    known = {gpu["pci_address"] for gpu in gpus}
    for device in sysfs.nvidia_devices(GPU_CLASSES):
        address = device["pci_address"]
        if address in known:
            continue
        bound = sysfs.kernel_driver(address)
        # A GPU that is given to a virtual machine is not lost, and no device of NVML's either.
        ours = bound in (None, "nvidia")
        gpu = nameless.pop(0) if nameless and ours else _gpu_facts.blank(lost=ours if driver_answers else None)
        gpu.update(pci_address=address, pci_device_id=device["pci_device_id"])
        gpus.append(gpu)
    gpus += nameless  # gone from the bus too
    xids = _xid.since_boot(sysfs.path("dev/kmsg"))
    for gpu in gpus:
        _place(sysfs, gpu, xids)
    return sorted(gpus, key=_bus_order)


def _place(sysfs: Sysfs, gpu: dict[str, Any], xids: dict[str, list[dict[str, Any]]] | None) -> None:
    address = gpu["pci_address"]
    if address is None:
        gpu.update(kernel_driver=None, numa_node=None, numa_node_effective=None, numa_cpus=None)
        return
    gpu.update(kernel_driver=sysfs.kernel_driver(address), numa_cpus=sysfs.local_cpus(address), **sysfs.place(address))
    if xids is not None:
        gpu["health"]["xid_since_boot"] = xids.get(_xid.slot(address), [])


def _bus_order(gpu: dict[str, Any]) -> tuple[bool, int, str]:
    """As NVML counts; a GPU without an address comes last."""
    domain, _colon, rest = (gpu["pci_address"] or "0:").partition(":")
    return gpu["pci_address"] is None, int(domain, 16), rest


def _refuse(driver: dict[str, Any], gpus: list[dict[str, Any]]) -> None:
    if driver["state"] != "ok":
        raise GpuError(driver["message"] or f"The NVIDIA driver of this node is in the state {driver['state']}; install or load it.")
    if not any(gpu["index"] is not None for gpu in gpus):
        raise GpuError("NVML lists no GPU on this node, but one is required; look at `lspci -d 10de:` or take the node out of gpu_nodes.")
    lost = [gpu["pci_address"] or f"index {gpu['index']}" for gpu in gpus if gpu["lost"]]
    if lost:
        raise GpuError(
            f"The driver has lost the GPU at {', '.join(lost)}; look for its Xid with `journalctl -k`, reset the GPU or reboot the node."
        )
