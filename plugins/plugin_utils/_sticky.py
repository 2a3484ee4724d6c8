# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan in force: what runs where, and what of it can stay. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _cpulist, _record
from ._candidates import Candidates, Option
from ._entities import Node, Service
from ._fit import Fit
from ._mig_layouts import Layout, parse_entry
from ._state import Assignment, Cluster, NumaPart, ReplicaId, linked, parts_of

SCHEMA = 1
_NO_FIT = Fit(1, 0, 0, 0, 0, 0, 0, 0)


class PlanError(Exception):
    """A plan in force that cannot be read."""


@dataclass(frozen=True, slots=True)
class Record:
    """A replica of the plan in force, as its node has it."""

    node: str
    document: Mapping[str, Any]

    @property
    def cpus(self) -> tuple[int, ...]:
        return _cpulist.parse(self.document.get("cpus", ""))

    @property
    def http_port(self) -> int:
        return int(self.document["http_port"])


@dataclass(slots=True)
class InForce:
    """The plan in force, node by node."""

    replicas: dict[ReplicaId, Record] = field(default_factory=dict)
    layouts: dict[str, dict[str, Layout | None]] = field(default_factory=dict)
    nodes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    generation: int = 0  # of what is in force
    highest: int = 0  # that any copy has


def read(plan: Mapping[str, Any] | None, records: Mapping[str, Mapping[str, Any]], source: str = "the plan in force") -> InForce:
    """Read the last plan of the controller and the nodes' own records of it; the record of a node counts more."""
    if plan is not None and (not isinstance(plan, Mapping) or plan.get("schema") != SCHEMA or not isinstance(plan.get("nodes"), Mapping)):
        raise PlanError(f"{source} is not a plan of schema {SCHEMA}; remove it to plan anew, or restore it from a copy.")
    for name, record in records.items():
        if not isinstance(record, Mapping):
            raise PlanError(f"The record of node {name} is not a mapping; restore it from a copy or remove it.")
    parts = _record.parts_in_force(plan, records)
    if any(not isinstance(part, Mapping) for part in parts.values()):
        name = next(name for name in sorted(parts) if not isinstance(parts[name], Mapping))
        raise PlanError(f"The part of node {name} in {source} cannot be read; restore it from a copy or remove it.")
    found = InForce(
        generation=_record.generation_in_force(plan, records, parts),
        highest=max(map(_record.generation_of, (plan, *records.values()))),
    )
    # Should two records name one replica, the newer one is read later and counts.
    for name in sorted(parts, key=lambda name: (_record.generation_of(parts[name]), name)):
        try:
            _read_node(found, name, parts[name])
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise PlanError(
                f"The part of node {name} in {source} cannot be read ({error!r}); restore it from a copy or remove it."
            ) from error
    return found


def _read_node(found: InForce, name: str, part: Mapping[str, Any]) -> None:
    found.nodes[name] = part
    layouts = found.layouts.setdefault(name, {})
    for entry in part.get("geometry", ()):
        gpu = entry["gpus"]
        key = gpu if isinstance(gpu, str) else f"gpu{gpu}"
        layouts[key] = tuple(sorted(parse_entry(text) for text in entry["profiles"])) if entry.get("mig", True) else None
    for replica in part.get("replicas", ()):
        service, _dash, number = str(replica["name"]).rpartition("-")
        if service != replica["service"]:
            raise ValueError(f"replica {replica['name']} is not one of service {replica['service']}")
        record = Record(name, replica)
        if record.http_port < 1 or not isinstance(replica["device"], Mapping):
            raise ValueError(f"replica {replica['name']} has no port or device")
        _cpulist.parse(str(replica.get("cpus", "")))
        found.replicas[service, int(number)] = record


@dataclass(slots=True)
class Kept:
    """What stays, what cannot and why, and what nobody wants any more."""

    placed: dict[ReplicaId, Record] = field(default_factory=dict)
    frozen: set[ReplicaId] = field(default_factory=set)
    lost: dict[ReplicaId, str] = field(default_factory=dict)
    dropped: dict[ReplicaId, Record] = field(default_factory=dict)


def keep(cluster: Cluster, in_force: InForce, candidates: Mapping[str, Candidates], limited: frozenset[str] | None) -> Kept:
    """Place everything that can stay where it is."""
    kept = Kept()
    # Nodes outside of a limited run stay exactly as they are, so they come before all others.
    ordered = sorted(in_force.replicas.items(), key=lambda item: (limited is None or item[1].node in limited, item[0]))
    for replica, record in ordered:
        node = cluster.nodes.get(record.node)
        if node is not None and limited is not None and record.node not in limited:
            _freeze(cluster, kept, node.node, replica, record)
            continue
        service = cluster.services.get(replica[0])
        if service is None or replica[1] > service.replicas:
            kept.dropped[replica] = record
            continue
        reason = f"node {record.node} is absent"
        if node is not None:
            reason = _stay(cluster, service, replica, record, candidates[service.name].options.get(record.node, ()))
        if reason:
            kept.lost[replica] = reason
        else:
            kept.placed[replica] = record
    return kept


def _stay(cluster: Cluster, service: Service, replica: ReplicaId, record: Record, options: tuple[Option, ...]) -> str:
    """Keep a replica on its device; return why that is impossible, or an empty text."""
    state = cluster.nodes[record.node]
    node = state.node
    device = record.document["device"]
    gpus = find_gpus(node, device)
    if gpus is None:
        return f"a GPU that it used is no longer in node {node.name}, or is excluded"
    option = next((option for option in options if _matches(option, node, gpus, device)), None)
    reason = ""
    if not service.admits(node):
        reason = f"pool or nodes of the service no longer admit node {node.name}"
    elif option is None:
        reason = f"its device on node {node.name} no longer suits the service"
    elif option.gpus > 1 and not service.allow_pcie and not linked(node.gpus[index] for index in gpus):
        reason = f"its GPUs on node {node.name} are not in one NVLink set"
    elif not state.welcome(service, cluster.apart[service.name]):
        reason = f"anti-affinity keeps it away from what else runs on node {node.name}"
    if reason or option is None:
        return reason
    cores = -(-service.cpus // node.threads_per_core)
    numa_nodes = tuple(node.gpus[index].numa_node for index in gpus)
    parts = parts_of(cores, service.memory_mib, service.hugepages_mib, numa_nodes)
    assignment = Assignment(node.name, option, gpus, int(device.get("start", 0)), parts)
    if not state.possible(service, assignment):
        return f"node {node.name} no longer has room for it"
    cluster.place(replica, assignment)
    return ""


def _matches(option: Option, node: Node, gpus: tuple[int, ...], device: Mapping[str, Any]) -> bool:
    if any(node.gpus[index].model is not option.model for index in gpus):
        return False
    if option.profile:
        return option.profile.name == device.get("profile")
    return not device.get("profile") and option.share == int(device.get("share", 0)) and (option.share > 0 or option.gpus == len(gpus))


def find_gpus(node: Node, device: Mapping[str, Any]) -> tuple[int, ...] | None:
    """The indexes of a recorded device's GPUs, by slot where both sides know it; None when one is gone or excluded."""
    by_key = {gpu.key: gpu for gpu in node.gpus}
    slots = [device.get("pci_address")] if "profile" in device else list(device.get("gpus", ()))
    indexes = list(device.get("indexes", ()))
    found: list[int] = []
    for position, slot in enumerate(slots):
        gpu = by_key.get(slot) if isinstance(slot, str) else None
        if gpu is None and (not isinstance(slot, str) or all(other.pci_address is None for other in node.gpus)):
            # One of the two plans was made before the slots were known.
            index = indexes[position] if position < len(indexes) else -1
            gpu = node.gpus[index] if 0 <= index < len(node.gpus) else None
        if gpu is None or gpu.excluded:
            return None
        found.append(gpu.index)
    return tuple(sorted(found)) if found else None


def _freeze(cluster: Cluster, kept: Kept, node: Node, replica: ReplicaId, record: Record) -> None:
    """Account for a replica on a node that this run leaves alone, whatever the inventory says of it now."""
    kept.placed[replica] = record
    kept.frozen.add(replica)
    document = record.document
    device = document["device"]
    gpus = find_gpus(node, device)
    if gpus is None:
        return  # the GPU is gone: there is nothing to account for
    model = node.gpus[gpus[0]].model
    profile = model.profile(device["profile"]) if device.get("profile") else None
    share = int(device.get("share", 0))
    option = Option(model, profile, 0 if profile or share else len(gpus), share, _NO_FIT, ())
    cpus = set(record.cpus)
    numa_nodes = sorted({node.gpus[index].numa_node for index in gpus})
    memory, hugepages = int(document.get("memory_mib", 0)), int(document.get("hugepages_mib", 0))
    parts = tuple(
        NumaPart(
            numa.id,
            sum(1 for core in numa.cores if cpus.intersection(core)),
            memory // len(numa_nodes),
            hugepages // len(numa_nodes),
        )
        for numa in node.numa_nodes
        if numa.id in numa_nodes
    )
    cluster.place(replica, Assignment(node.name, option, gpus, int(device.get("start", 0)), parts))
