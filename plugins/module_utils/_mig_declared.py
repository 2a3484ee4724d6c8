# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs as they are declared, for check mode on a node without driver. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import os
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Offer, Profile
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_probe import numa_node
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_state import Gpu

PCI = "/sys/bus/pci/devices"
GPU_CLASSES = ("0x0302", "0x0300")


def offers(tables: dict[str, list[dict[str, Any]]]) -> dict[str, Offer]:
    """Profile tables by the model names that NVML gives, as the controller sends them."""
    return {name: Offer(tuple(Profile(**{**row, "starts": tuple(row["starts"])}) for row in rows)) for name, rows in tables.items() if rows}


def pci_addresses() -> list[str]:
    """The GPUs that the PCI bus shows, in bus order, which is NVML's."""
    found = []
    for address in sorted(os.listdir(PCI)) if os.path.isdir(PCI) else []:
        if _read(address, "vendor") == "0x10de" and _read(address, "class")[:6] in GPU_CLASSES:
            found.append(address)
    return found


def _read(address: str, name: str) -> str:
    try:
        with open(f"{PCI}/{address}/{name}", encoding="ascii") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def gpus(models: list[dict[str, Any]], tables: dict[str, Offer], known: dict[str, str]) -> list[Gpu]:
    """One GPU per declared device. `known` maps every spelling of a model to the name that NVML gives."""
    names = []
    for entry in models:
        model = str(entry.get("model", ""))
        if model not in known:
            raise InvalidInput(
                f"declared_models: the collection knows no GPU model {model!r}; its models are {', '.join(sorted(set(known.values())))}."
            )
        names += [known[model]] * int(entry.get("count", 1))
    addresses = pci_addresses()
    if len(addresses) != len(names):
        addresses = [f"declared-{index}" for index in range(len(names))]
    return [
        Gpu(index, address, name, numa_node=numa_node(address), capable=name in tables, offer=tables.get(name), source="declared")
        for index, (address, name) in enumerate(zip(addresses, names))
    ]
