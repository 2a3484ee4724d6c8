# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From an inventory and the plan in force to the next plan. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._candidates import Candidates, Finder, node_problems
from ._catalog import Catalog, GpuModel, Rule
from ._document import (
    frozen_document,
    gateway_document,
    node_document,
    plan_document,
    refusal_document,
    replica_document,
    service_document,
)
from ._drain import drain_table
from ._entities import Gpu, Inventory, Node
from ._mig_layouts import Layout, Layouts, entry_text
from ._numa import HostShare, host_shares, port_shortage
from ._place import Placer
from ._record import next_generation
from ._refusals import Refusal, no_device, no_room, node_refusals
from ._state import Cluster, GpuState, NodeState, ReplicaId
from ._sticky import InForce, Kept, keep
from ._warnings import warnings_of

MOST_ON_A_GPU = 16  # the smallest share is a sixteenth
ByService = dict[str, list[tuple[str, Mapping[str, Any]]]]


@dataclass(slots=True)
class Plan:
    """The plan's document, and how it differs from the plan in force (which is no part of it)."""

    document: dict[str, Any]
    moves: list[dict[str, str]] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    stopped: list[dict[str, str]] = field(default_factory=list)
    geometry_changes: list[dict[str, Any]] = field(default_factory=list)
    drained: list[str] = field(default_factory=list)
    running: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # what draining each node would leave of what runs now

    @property
    def complete(self) -> bool:
        return not self.document["refusals"]

    def blocked(self) -> list[dict[str, Any]]:
        """Services that draining a changed node would leave with too few replicas."""
        return [{"node": node, **row} for node in self.drained for row in self.running.get(node, ()) if not row["enough"]]


def make_plan(inventory: Inventory, catalog: Catalog, in_force: InForce | None = None, limited: Iterable[str] | None = None) -> Plan:
    """Plan the whole inventory; with `limited`, change only these nodes."""
    return _Planning(inventory, catalog, in_force or InForce(), None if limited is None else frozenset(limited)).run()


class _Planning:
    def __init__(self, inventory: Inventory, catalog: Catalog, in_force: InForce, limited: frozenset[str] | None):
        self._inventory = inventory
        self._in_force = in_force
        self._limited = limited
        self._finder = Finder(catalog, inventory.settings)
        self._services = {service.name: service for service in inventory.services}
        self._planned = [node for node in inventory.nodes if node.workload == "containers" and node.state != "absent"]
        self._broken: dict[str, list[tuple[Rule, str]]] = {}
        for node in self._planned:
            if rules := node_problems(node, catalog, inventory.settings):
                self._broken[node.name] = rules
        self._layouts: dict[str, Layouts] = {}
        self._cluster = Cluster((self._node_state(node) for node in self._planned), inventory.services)

    def run(self) -> Plan:
        cluster = self._cluster
        candidates = {service.name: self._finder.find(service, self._planned) for service in self._inventory.services}
        kept = keep(cluster, self._in_force, candidates, self._limited)
        wanted, hopeless = self._wanted(kept)
        placer = Placer(cluster, candidates, [replica for replica in kept.placed if replica in cluster.where])
        unplaced = placer.run([replica for replica in wanted if candidates[replica[0]].any()])
        unplaced, suggestions = placer.with_moves(unplaced, self._inventory.settings.max_moves)
        missing = dict(hopeless)
        for replica in (*unplaced, *(replica for replica in wanted if not candidates[replica[0]].any())):
            missing[replica[0]] = missing.get(replica[0], 0) + 1
        refusals = node_refusals(self._broken)
        for name, count in sorted(missing.items()):
            service, found = self._services[name], candidates[name]
            if found.any():
                refusals.append(no_room(service, count, cluster, found, suggestions.get(name, ())))
            else:
                refusals.append(no_device(service, count, found, self._finder, self._planned))
        return self._write(kept, candidates, missing, refusals)

    # --- before placing ---------------------------------------------------------------------------

    def _node_state(self, node: Node) -> NodeState:
        mine = self._limited is None or node.name in self._limited
        accepts = mine and node.state == "active" and node.name not in self._broken
        layouts = self._in_force.layouts.get(node.name, {})
        return NodeState(
            node,
            [GpuState(gpu, self._layouts_of(gpu.model), _layout_in_force(gpu, layouts, self._layouts_of(gpu.model))) for gpu in node.gpus],
            accepts,
            accepts,
        )

    def _layouts_of(self, model: GpuModel) -> Layouts:
        found = self._layouts.get(model.key)
        if found is None:
            found = self._layouts[model.key] = Layouts(model)
        return found

    def _wanted(self, kept: Kept) -> tuple[list[ReplicaId], dict[str, int]]:
        """Number the replicas that are missing: those that lost their device keep their name.

        What is beyond the most that the cluster could hold if it had nothing else is only counted, so that a slip of the pen
        in `replicas` is answered at once.
        """
        wanted: list[ReplicaId] = []
        hopeless: dict[str, int] = {}
        most = MOST_ON_A_GPU * sum(len(node.gpus) for node in self._planned)
        for name, service in self._services.items():
            have = {number for replica, number in kept.placed if replica == name}
            number = 0
            if service.replicas > max(most, len(have)):
                hopeless[name] = service.replicas - max(most, len(have))
            while len(have) < service.replicas - hopeless.get(name, 0):
                number += 1
                if number not in have:
                    have.add(number)
                    wanted.append((name, number))
        return wanted, hopeless

    # --- after placing ----------------------------------------------------------------------------

    def _write(self, kept: Kept, candidates: Mapping[str, Candidates], missing: Mapping[str, int], refusals: list[Refusal]) -> Plan:
        parts: dict[str, list[Mapping[str, Any]]] = {}
        by_service: ByService = {}
        for name, state in self._cluster.nodes.items():
            documents = self._replicas(state, kept, refusals)
            parts[name] = documents
            for document in documents:
                by_service.setdefault(str(document["service"]), []).append((name, document))
        for rows in by_service.values():
            rows.sort(key=lambda row: int(str(row[1]["name"]).rpartition("-")[2]))
        counts = {name: _counts(documents) for name, documents in parts.items()}
        drain = drain_table(counts, self._services)
        nodes = {name: node_document(state, parts[name], drain[name]) for name, state in self._cluster.nodes.items()}
        for node in self._inventory.nodes:
            if node.name not in nodes:
                nodes[node.name] = {
                    "state": node.state,
                    "workload": node.workload,
                    "groups": list(node.groups),
                    "geometry": [],
                    "replicas": [],
                    "drain": [],
                }
        nodes = dict(sorted(nodes.items()))
        services = {
            name: service_document(service, missing.get(name, 0), candidates[name], by_service.get(name, []))
            for name, service in self._services.items()
        }
        document = plan_document(
            generation=next_generation(nodes, self._in_force.nodes, self._in_force.generation, self._in_force.highest),
            complete=not refusals,
            summary=_summary(nodes, services, refusals),
            services=services,
            refusals=[refusal_document(refusal, self._cluster) for refusal in refusals],
            warnings=warnings_of(self._inventory, self._cluster, candidates),
            nodes=nodes,
            gateway=gateway_document(self._inventory, by_service),
        )
        return self._compare(document, kept)

    def _replicas(self, state: NodeState, kept: Kept, refusals: list[Refusal]) -> list[Mapping[str, Any]]:
        name = state.node.name
        records = (
            {replica: record for replica, record in kept.placed.items() if record.node == name} if name in self._in_force.nodes else {}
        )
        shares = host_shares(state, records, self._inventory.settings.port_base)
        if port_shortage(state, shares):
            refusals.append(
                Refusal(
                    name, "node", "no_ports", "It has more replicas than ports above inference_port_base.", "Lower inference_port_base."
                )
            )
        documents: dict[ReplicaId, Mapping[str, Any]] = {}
        for replica, record in records.items():
            if replica in kept.frozen:
                documents[replica] = frozen_document(record)
        for replica, assignment in state.placed.items():
            if replica not in documents:
                share: HostShare = shares[replica]
                documents[replica] = replica_document(state.node, self._services[replica[0]], replica, assignment, share)
        return [documents[replica] for replica in sorted(documents)]

    # --- against the plan in force ----------------------------------------------------------------

    def _compare(self, document: dict[str, Any], kept: Kept) -> Plan:
        plan = Plan(document)
        old = {replica: (record.node, record.document) for replica, record in self._in_force.replicas.items()}
        new = {_replica_id(entry): (name, entry) for name, part in document["nodes"].items() for entry in part["replicas"]}
        touched: set[str] = set()
        for replica in sorted(set(old) | set(new)):
            name = f"{replica[0]}-{replica[1]}"
            if replica not in new:
                reason = kept.lost.get(replica, "the inventory no longer asks for it")
                plan.stopped.append({"replica": name, "from": str(old[replica][1].get("device_key", old[replica][0])), "reason": reason})
                touched.add(old[replica][0])
            elif replica not in old:
                plan.started.append(name)
            elif not _same_device(old[replica], new[replica]):
                reason = kept.lost.get(replica, "makes room for another replica")
                plan.moves.append(
                    {
                        "replica": name,
                        "from": str(old[replica][1]["device_key"]),
                        "to": str(new[replica][1]["device_key"]),
                        "reason": reason,
                    }
                )
                touched.add(old[replica][0])
        for name, state in self._cluster.nodes.items():
            for gpu in state.gpus:
                if not gpu.gpu.excluded and gpu.changed():
                    plan.geometry_changes.append(
                        {"node": name, "gpu": gpu.gpu.key, "before": _shown(gpu.in_force), "after": _shown(gpu.layout())}
                    )
                    if name in self._in_force.nodes:
                        touched.add(name)
        # What counts while draining is what runs now, not what the plan will have.
        running: dict[str, dict[str, int]] = {}
        for (service, _number), record in self._in_force.replicas.items():
            running.setdefault(record.node, {}).setdefault(service, 0)
            running[record.node][service] += 1
        plan.running = drain_table(running, self._services)
        plan.drained = sorted(touched & set(running))
        return plan


def _layout_in_force(gpu: Gpu, layouts: Mapping[str, Layout | None], known: Layouts) -> Layout | None:
    layout = layouts.get(gpu.key, layouts.get(f"gpu{gpu.index}"))
    # A record that does not suit the GPU (another model in the slot) says nothing about it.
    return layout if layout is not None and known.feasible(layout) else None


def _counts(documents: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for document in documents:
        counts[document["service"]] = counts.get(document["service"], 0) + 1
    return counts


def _summary(nodes: Mapping[str, Any], services: Mapping[str, Any], refusals: Sequence[Refusal]) -> dict[str, int]:
    uses = [gpu["use"] for node in nodes.values() for gpu in node.get("gpus", ())]
    return {
        "nodes": len(nodes),
        "gpus": len(uses),
        "gpus_with_mig": uses.count("mig"),
        "gpus_unused": uses.count("unused"),
        "replicas_wanted": sum(service["replicas"] for service in services.values()),
        "replicas_placed": sum(service["placed"] for service in services.values()),
        "refusals": len(refusals),
    }


def _replica_id(document: Mapping[str, Any]) -> ReplicaId:
    service, _dash, number = str(document["name"]).rpartition("-")
    return service, int(number)


def _same_device(old: tuple[str, Mapping[str, Any]], new: tuple[str, Mapping[str, Any]]) -> bool:
    before, after = old[1]["device"], new[1]["device"]
    if old[0] != new[0] or any(before.get(key) != after.get(key) for key in ("profile", "start", "share")):
        return False
    # Slots count where both plans know them; a plan made before they were known has indexes only.
    slots = [[device.get("pci_address")] if "profile" in device else device.get("gpus") for device in (before, after)]
    known = all(isinstance(slot, str) for device in slots for slot in device)
    return slots[0] == slots[1] if known else before.get("indexes") == after.get("indexes")


def _shown(layout: Layout | None) -> str | list[str]:
    return "off" if layout is None else [entry_text(start, name) for start, name in layout]
