# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Judges the health and the place of a node's GPUs. What several GPUs have in common is one finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight_terms import Details, Observed, error, gpus, listed, warning

_LIMITS = Path(__file__).resolve().parents[2] / "data" / "gpu-health.yml"
_RESET = "Drain the node and reset the GPU (nvidia-smi --gpu-reset), or reboot the node."
_REPLACE = "Set node_state to maintenance and have the board replaced."
_REMEDIES = {
    "reset": f"{_RESET} Have the board looked at if it comes again.",
    "reboot": "Drain and reboot the node; have board, slot and power looked at if it comes again.",
    "inspect": "Have the board looked at.",
}
# What slows a GPU down and is no fault: being idle, a limit that was set, and boosting together.
_FAULTY_THROTTLING = {
    "hw_slowdown": "the board",
    "hw_thermal_slowdown": "heat",
    "sw_thermal_slowdown": "heat",
    "hw_power_brake_slowdown": "the power supply",
}

Gpu = Mapping[str, Any]


def _told(observed: Observed, holds: Callable[[Gpu], Any]) -> str:
    """Addresses of the GPUs of which something is true; a GPU that is lost is told elsewhere."""
    return listed(gpu["pci_address"] for gpu in gpus(observed) if gpu["pci_address"] and not gpu.get("lost") and holds(gpu))


def _health(gpu: Gpu, key: str) -> Any:
    return (gpu.get("health") or {}).get(key)


def _memory(observed: Observed) -> Iterator[Details]:
    if failed := _told(observed, lambda gpu: _health(gpu, "remapped_rows_failed")):
        yield error("gpu memory", f"Bad memory of GPU {failed} could not be remapped: there are no spare rows left.", _REPLACE)
    if rows := _told(observed, lambda gpu: _health(gpu, "remapped_rows_pending")):
        yield warning("gpu memory", f"Rows of bad memory of GPU {rows} wait for a reset to be remapped.", _RESET)
    if pages := _told(observed, lambda gpu: _health(gpu, "retired_pages_pending")):
        yield warning("gpu memory", f"Pages of bad memory of GPU {pages} wait for a reboot to be retired.", "Drain and reboot the node.")
    most = limits()["retired_pages"]["replace_from"]
    if worn := _told(observed, lambda gpu: _retired(gpu) >= most):
        yield warning("gpu memory", f"GPU {worn} has retired {most} pages of bad memory or more.", _REPLACE)
    if uncorrected := _told(observed, lambda gpu: _health(gpu, "ecc_uncorrected")):
        yield warning("gpu memory", f"GPU {uncorrected} had uncorrectable ECC errors since the driver was loaded.", _RESET)


def _retired(gpu: Gpu) -> int:
    return (_health(gpu, "retired_pages_single_bit") or 0) + (_health(gpu, "retired_pages_double_bit") or 0)


def _xid(observed: Observed) -> Iterator[Details]:
    known, where = limits()["xids"]["rows"], dict[int, list[str]]()
    for gpu in gpus(observed):
        for entry in _health(gpu, "xid_since_boot") or []:
            if entry["xid"] in known:
                where.setdefault(entry["xid"], []).append(f"{gpu['pci_address']} ({entry['count']})")
    for number, places in sorted(where.items()):
        row = known[number]
        yield warning("xid", f"Xid {number}, {row['meaning']}, was logged since boot for GPU {listed(places)}.", _REMEDIES[row["action"]])


def _clocks(observed: Observed) -> Iterator[Details]:
    causes: dict[str, list[str]] = {}
    for gpu in gpus(observed):
        found = {_FAULTY_THROTTLING[reason] for reason in _health(gpu, "throttle_reasons") or [] if reason in _FAULTY_THROTTLING}
        # The board's own signal comes with a more exact one where there is one.
        for cause in (found - {"the board"}) or found:
            causes.setdefault(cause, []).append(gpu["pci_address"])
    for cause, addresses in sorted(causes.items()):
        yield warning(
            "gpu clocks",
            f"GPU {listed(addresses)} is slowed down by {cause}.",
            "Look at cooling, power cables and power supplies (nvidia-smi -q -d PERFORMANCE,TEMPERATURE).",
        )


def _power(observed: Observed) -> Iterator[Details]:
    """A limit that nobody declared was set by hand or by another tool."""
    if any(entry.get("power_limit_w") is not None for entry in observed.get("settings") or []):
        return

    def low(gpu: Gpu) -> bool:
        settings = gpu.get("settings") or {}
        limit, default = settings.get("power_limit_w"), settings.get("power_limit_default_w")
        return limit is not None and default is not None and limit < default

    if addresses := _told(observed, low):
        yield warning(
            "gpu power",
            f"The power limit of GPU {addresses} is below its default and not declared.",
            "Declare power_limit_w in gpu_settings, or set the default again.",
        )


def _links(observed: Observed) -> Iterator[Details]:
    def narrow(gpu: Gpu) -> bool:
        now, most = _health(gpu, "pcie_width_current"), _health(gpu, "pcie_width_max")
        return now is not None and most is not None and now < most

    if addresses := _told(observed, narrow):
        yield warning(
            "pcie",
            f"GPU {addresses} has fewer PCIe lanes than it and its slot can have.",
            "Reseat the board or its riser at the next maintenance.",
        )
    for gpu in gpus(observed):
        # In MIG mode the links are not used, and down.
        if (gpu.get("mig") or {}).get("mode_current") == "enabled":
            continue
        links = gpu.get("nvlinks") or []
        down = [link["link"] for link in links if not link["active"]]
        if down:
            yield warning(
                "nvlink",
                f"NVLink {listed(down)} of GPU {gpu['pci_address']} is down.",
                "Look at nvidia-fabricmanager where there are NVSwitches; else drain the node, reset its GPUs, and look at the bridge.",
            )
        errors = sum(link["errors"] or 0 for link in links)
        if errors:
            yield warning(
                "nvlink",
                f"The NVLinks of GPU {gpu['pci_address']} had {errors} errors since the driver was loaded.",
                "Watch whether they grow (nvidia-smi nvlink -e); look at bridge and board then.",
            )


def _numa(observed: Observed) -> Iterator[Details]:
    """One NUMA node needs no telling."""
    if len((observed.get("gpu_info") or {}).get("numa_nodes") or []) < 2:
        return
    if guessed := _told(observed, lambda gpu: gpu["numa_node"] == -1 and gpu.get("numa_node_effective") is not None):
        yield warning(
            "numa",
            f"The firmware does not tell the NUMA node of GPU {guessed} (-1); that of the bridge above it is used.",
            "Update the firmware, or declare numa_nodes in gpu_devices.",
        )
    if unknown := _told(observed, lambda gpu: gpu["numa_node"] == -1 and gpu.get("numa_node_effective") is None):
        yield warning(
            "numa",
            f"The firmware does not tell the NUMA node of GPU {unknown} (-1), and nothing above it does.",
            "Declare numa_nodes in gpu_devices, or update the firmware; services may run far from their GPU until then.",
        )


def _answers(observed: Observed) -> Iterator[Details]:
    for gpu in gpus(observed):
        if gpu.get("errors") and not gpu.get("lost"):
            said = listed(f"{function} {name}" for function, name in sorted(gpu["errors"].items()))
            yield warning("gpu", f"NVML has failed for GPU {gpu['pci_address']}: {said}.", "Look for NVRM messages with journalctl -k.")


@lru_cache(maxsize=1)
def limits() -> Mapping[str, Any]:
    return yaml.safe_load(_LIMITS.read_text(encoding="utf-8"))


CHECKS = (_memory, _xid, _clocks, _power, _links, _numa, _answers)
