# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All facts of a GPU node in one reading. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _bounded, _driver_facts, _gpu_facts, _nvml, _topology, _xid
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import DriverHang, DriverUnavailable, GpuError
from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import GPU_CLASSES, NVIDIA, SWITCH_CLASS, Sysfs


def read(source: str | None, timeout: float, required: bool = False, root: str = "/") -> dict[str, Any]:
    """The module's result. What cannot be read is None or named in `driver`; only `required` makes it an error."""
    sysfs = Sysfs(root)
    driver = _driver_facts.driver(sysfs)
    listed: list[dict[str, Any]] = []
    try:
        answer = _bounded.call(lambda report: _from_nvml(source, report), timeout, "was reading the GPUs")
        listed = answer["gpus"]
        driver.update(answer["driver"])
    except DriverUnavailable as error:
        driver.update(state=error.state, message=str(error))
    except DriverHang as error:
        driver.update(state="hung", message=str(error))
    except GpuError as error:
        driver.update(state="unusable", message=str(error))
    gpus = _with_pci(sysfs, listed)
    _refuse(required, driver, gpus)
    switches = _pci_devices(sysfs, (SWITCH_CLASS,))
    links = _topology.nvlinks_between(gpus, {one["pci_address"] for one in switches})
    hcas = sysfs.hcas()
    for hca in hcas:
        hca["distance_to_gpus"] = {gpu["pci_address"]: _topology.between(sysfs, hca["pci_address"], gpu["pci_address"]) for gpu in gpus}
    numa_nodes = sysfs.numa_nodes()
    return {
        "gpus": gpus,
        "nvswitches": switches,
        "topology": _topology.matrix(sysfs, gpus, links),
        "hcas": hcas,
        "nics": sysfs.nics(),
        "numa_nodes": numa_nodes,
        "cpus": sysfs.cpus(),
        "memory_mib": sysfs.memory_mib(),
        "hugepages": [{"numa_node": node["id"], **pages} for node in numa_nodes for pages in node["hugepages"]],
        "driver": driver,
        "cuda": _driver_facts.cuda(sysfs),
        "nccl": _driver_facts.nccl(sysfs),
    }


def _from_nvml(source: str | None, report: _bounded.Report) -> dict[str, Any]:
    nvml = _nvml.load(source)
    report({"doing": "nvmlInit"})
    with _nvml.Session(nvml):
        gpus = []
        for index, device in _nvml.devices(nvml):
            report({"doing": f"reading GPU {index}"})
            if device is None:
                gpus.append({"index": index, "lost": True})
                continue
            try:
                gpus.append(_gpu_facts.read(nvml, index, device))
            except nvml.NVMLError as error:
                gpus.append({"index": index, "lost": True, "error": _nvml.error_name(nvml, error)})
        cuda = _nvml.try_get(nvml, "nvmlSystemGetCudaDriverVersion")
        version = _nvml.try_get(nvml, "nvmlSystemGetDriverVersion")
        return {
            "gpus": gpus,
            "driver": {
                "state": "ok",
                "loaded_version": version,
                "nvml_version": _nvml.try_get(nvml, "nvmlSystemGetNVMLVersion"),
                "cuda_version": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
            },
        }


def _pci_devices(sysfs: Sysfs, classes: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {"pci_address": one["pci_address"], "pci_device_id": one["pci_device_id"], "numa_node": sysfs.numa_node(one["pci_address"])}
        for one in sysfs.pci_devices()
        if one["vendor"] == NVIDIA and one["class"] in classes
    ]


def _with_pci(sysfs: Sysfs, listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """NVML's GPUs with their place in the machine. GPUs that only the PCI bus shows come with every NVML fact None."""
    xids = _xid.since_boot(sysfs.path("dev/kmsg"))
    by_address = {gpu["pci_address"]: gpu for gpu in listed if not gpu["lost"]}
    on_bus = _pci_devices(sysfs, GPU_CLASSES)
    lost = [gpu for gpu in listed if gpu["lost"]]
    gpus = list(by_address.values())
    for device in on_bus:
        if device["pci_address"] not in by_address:
            known = lost.pop(0) if lost else {"index": None, "lost": None if not listed else True}
            gpus.append(
                {**dict.fromkeys(NVML_FIELDS), **known, "pci_address": device["pci_address"], "pci_device_id": device["pci_device_id"]}
            )
    for gpu in gpus:
        address = gpu["pci_address"]
        gpu["numa_node"] = sysfs.numa_node(address)
        gpu["numa_node_effective"] = sysfs.numa_node_effective(address)
        gpu["numa_cpus"] = sysfs.local_cpus(address)
        if gpu.get("health") is not None:
            gpu["health"]["xid_since_boot"] = None if xids is None else xids.get(address.rpartition(".")[0], [])
    return sorted(gpus, key=lambda gpu: str(gpu["pci_address"]))


NVML_FIELDS = (
    "index", "uuid", "name", "pci_address", "pci_device_id", "lost", "serial", "minor_number", "vbios_version", "architecture",
    "compute_capability", "memory_mib", "memory_used_mib", "bar1_mib", "utilization_percent", "mig", "nvlinks", "settings", "health", "processes",
)  # fmt: skip


def _refuse(required: bool, driver: dict[str, Any], gpus: list[dict[str, Any]]) -> None:
    if not required:
        return
    if driver["state"] != "ok":
        raise GpuError(
            driver.get("message") or f"The NVIDIA driver of this node is not usable: its state is {driver['state']}; install or load it."
        )
    if not gpus:
        raise GpuError(
            "This node has no NVIDIA GPU, but one is required; take the node out of gpu_nodes or look at its PCI devices with lspci."
        )
    missing = [gpu["pci_address"] for gpu in gpus if gpu["lost"]]
    if missing:
        raise GpuError(
            f"The GPU at {', '.join(missing)} is lost: it is on the PCI bus but the driver cannot reach it; "
            "look for its Xid with `journalctl -k` and reboot the node."
        )
