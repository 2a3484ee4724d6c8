# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declared hardware against what the nodes report. PRIVATE: internal to the collection, may change at any time.

What is not known yet (no driver, no such file) is no difference: it is compared again when it is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ._catalog import Catalog
from ._entities import Gpu, Inventory, Node, Settings
from ._fit import fit
from ._mig_layouts import Layout
from ._sticky import InForce


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference of a node; errors stop a run that changes something."""

    node: str
    what: str
    declared: str
    found: str
    error: bool
    remedy: str

    def document(self) -> dict[str, Any]:
        sentence = f"{self.node}: {self.what} is declared as {self.declared}, but the node has {self.found}. {self.remedy}"
        return {
            "node": self.node,
            "what": self.what,
            "declared": self.declared,
            "found": self.found,
            "error": self.error,
            "sentence": sentence,
        }


def compare(inventory: Inventory, facts: Mapping[str, Mapping[str, Any]], catalog: Catalog) -> list[Difference]:
    """Compare every node of which facts are at hand."""
    found: list[Difference] = []
    for node in inventory.nodes:
        gpus = _gpus(facts.get(node.name))
        if gpus:
            found += _node(node, gpus, catalog)
    return found


def with_slots(inventory: Inventory, facts: Mapping[str, Mapping[str, Any]]) -> Inventory:
    """Fill in the PCI addresses of nodes that do not declare them."""
    return replace(inventory, nodes=tuple(_with_slots(node, _gpus(facts.get(node.name))) for node in inventory.nodes))


def geometry_of(in_force: InForce, facts: Mapping[str, Mapping[str, Any]]) -> InForce:
    """Take the geometry that nodes without a plan in force have now, so that it is changed only where needed."""
    for name, reported in sorted(facts.items()):
        if name in in_force.nodes:
            continue
        layouts: dict[str, Layout | None] = {}
        for gpu in _gpus(reported):
            mig = gpu.get("mig") or {}
            instances = mig.get("instances")
            # None: nobody could look (not root, no driver). That is no empty geometry.
            if mig.get("mode_current") == "enabled" and gpu.get("pci_address") and instances is not None:
                layouts[str(gpu["pci_address"])] = tuple(sorted((int(entry["start"]), str(entry["profile"])) for entry in instances))
        in_force.layouts[name] = layouts
    return in_force


def memory_differences(
    inventory: Inventory, plan: Mapping[str, Any], facts: Mapping[str, Mapping[str, Any]], settings: Settings
) -> list[Difference]:
    """Memory that differs from the catalog counts only where a replica would no longer fit."""
    services = {service.name: service for service in inventory.services}
    nodes = {node.name: node for node in inventory.nodes}
    found: list[Difference] = []
    for name, part in plan["nodes"].items():
        gpus = nodes[name].gpus
        memory = {gpu.get("index"): gpu.get("memory_mib") for gpu in _gpus(facts.get(name))}
        for replica in part["replicas"] if memory else ():
            device = replica["device"]
            service = services.get(replica["service"])
            if service is None or "profile" in device:
                continue
            # NVML reports the whole board; what of it can be used is the catalog's figure, as long as the board has that much.
            known = [
                min(int(size), gpus[index].model.usable_memory_mib)
                for index in device["indexes"]
                if index < len(gpus) and (size := memory.get(index)) is not None
            ]
            if not known:
                continue
            got = fit(service, settings, min(known), len(device["indexes"]), device.get("share", 1))
            if not got.fits:
                found.append(
                    Difference(
                        name,
                        f"the memory under {replica['name']}",
                        f"{replica['usable_memory_mib']} MiB usable",
                        f"{got.available_mib} MiB usable, of which it needs {got.needed_mib}",
                        True,
                        "Lower its concurrent_requests or choose another device.",
                    )
                )
    return found


def replaced_gpus(in_force: InForce, facts: Mapping[str, Mapping[str, Any]]) -> list[Difference]:
    """GPUs whose slot holds another board than when the node stored its record."""
    found: list[Difference] = []
    for name, part in sorted(in_force.nodes.items()):
        known = part.get("gpu_uuids") or {}
        for gpu in _gpus(facts.get(name)):
            slot, uuid = gpu.get("pci_address"), gpu.get("uuid")
            if slot in known and uuid and known[slot] != uuid:
                found.append(
                    Difference(
                        name,
                        f"the GPU at {slot}",
                        str(known[slot]),
                        str(uuid),
                        False,
                        "The board was replaced; its replicas start anew on the new one.",
                    )
                )
    return found


def _gpus(facts: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    return (facts or {}).get("gpus") or ()


def _node(node: Node, gpus: Sequence[Mapping[str, Any]], catalog: Catalog) -> Iterator[Difference]:
    remedy = "Correct gpu_devices, or repair the node."
    if len(gpus) != len(node.gpus):
        yield Difference(node.name, "the number of GPUs", str(len(node.gpus)), str(len(gpus)), True, remedy)
        return
    for declared, reported in zip(node.gpus, gpus, strict=True):
        label = f"GPU {declared.index}"
        for what, wanted, real in _aspects(declared, reported, catalog):
            if real is not None and wanted != real:
                yield Difference(node.name, f"{what} of {label}", wanted, real, True, remedy)


def _aspects(declared: Gpu, reported: Mapping[str, Any], catalog: Catalog) -> Iterator[tuple[str, str, str | None]]:
    name = reported.get("name")
    model = catalog.model(str(name)) if name else None
    yield "the model", declared.model.key, None if not name else model.key if model else str(name)
    numa = reported.get("numa_node")
    yield "the NUMA node", str(declared.numa_node), None if numa is None or int(numa) < 0 else str(numa)
    links = reported.get("nvlinks")
    # Links that are there but down (the fabric manager does not run yet) say nothing about the hardware.
    known = links is not None and (not links or any(link.get("active") for link in links))
    yield "NVLink", _yes(declared.nvlink_set is not None), _yes(bool(links)) if known else None
    if declared.pci_address is not None:
        yield "the PCI address", declared.pci_address, reported.get("pci_address")


def _yes(value: bool) -> str:
    return "present" if value else "absent"


def _with_slots(node: Node, gpus: Sequence[Mapping[str, Any]]) -> Node:
    slots = [gpu.get("pci_address") for gpu in gpus]
    if len(slots) != len(node.gpus) or not all(slots) or any(gpu.pci_address is not None for gpu in node.gpus):
        return node
    return replace(node, gpus=tuple(replace(gpu, pci_address=str(slot)) for gpu, slot in zip(node.gpus, slots, strict=True)))
