# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node keeps of the plan in force, and which of two copies counts. PRIVATE: internal to the collection, may change at any time.

A plan gets a higher generation whenever it differs from the plan in force. It is in force from the moment that one node has
it: a run writes every node's record before it changes the first node, so that a run that was killed is finished by the next
one and not planned differently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SCHEMA = 1
_ABOUT_THE_RECORD = frozenset({"schema", "generation", "gpu_uuids", "packages"})


def make(part: Mapping[str, Any], generation: int, previous: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The record of a node: its part of the plan, and which board each slot holds as far as that is known."""
    if body(previous) == dict(part):
        generation = int(previous.get("generation", generation))
    slots = {gpu["pci_address"] for gpu in part.get("gpus", ()) if gpu.get("pci_address")}
    known = {slot: uuid for slot, uuid in (previous.get("gpu_uuids") or {}).items() if slot in slots}
    known |= {str(gpu["pci_address"]): str(gpu["uuid"]) for gpu in gpus if gpu.get("uuid") and gpu.get("pci_address") in slots}
    return {"schema": SCHEMA, "generation": generation, "gpu_uuids": dict(sorted(known.items())), **part}


def after(
    part: Mapping[str, Any],
    generation: int,
    before: Mapping[str, Any],
    gpus: Sequence[Mapping[str, Any]],
    packages: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, Any]]:
    """The records that differ from those `before`: what is in force, what has worked last, and what had worked before that.

    `packages` are those of every set of packages, once all was proven; None before that.
    """
    record = make(part, generation, before.get("record") or {}, gpus)
    wanted = {"record": record}
    if packages is not None:
        last = before.get("verified") or {}
        proven = record | {"packages": {**(last.get("packages") or {}), **packages}}
        wanted["verified"] = proven
        if last and (body(last), last.get("packages")) != (body(proven), proven["packages"]):
            wanted["previous"] = dict(last)
    return {name: document for name, document in wanted.items() if document != (before.get(name) or {})}


def body(record: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the plan that a record holds."""
    return {key: value for key, value in record.items() if key not in _ABOUT_THE_RECORD}


def generation_of(document: Any) -> int:
    value = document.get("generation", 0) if isinstance(document, Mapping) else 0
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def parts_in_force(plan: Mapping[str, Any] | None, records: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Choose each node's part: its own record counts more than the file of the controller, unless that plan was begun elsewhere."""
    parts: dict[str, Mapping[str, Any]] = dict((plan or {}).get("nodes") or {})
    newest = max((generation_of(record) for record in records.values()), default=0)
    begun = plan is not None and generation_of(plan) == newest
    for name, record in records.items():
        if name in parts and begun and generation_of(record) < newest:
            continue
        parts[name] = record
    return parts


def generation_in_force(
    plan: Mapping[str, Any] | None, records: Mapping[str, Mapping[str, Any]], parts: Mapping[str, Mapping[str, Any]]
) -> int:
    """The generation of what is in force: that of the file as long as the nodes have the same."""
    newest = max((generation_of(record) for record in records.values()), default=0)
    if plan is None:
        return newest
    nodes = plan["nodes"]
    same = all(isinstance(nodes.get(name), Mapping) and body(nodes[name]) == body(part) for name, part in parts.items())
    return generation_of(plan) if same or generation_of(plan) == newest else newest


def next_generation(nodes: Mapping[str, Mapping[str, Any]], in_force: Mapping[str, Mapping[str, Any]], used: int, highest: int) -> int:
    """`used` is the generation of what is in force, `highest` the highest that was ever given as far as is known."""
    same = set(nodes) == set(in_force) and all(body(in_force[name]) == dict(part) for name, part in nodes.items())
    return max(used, 1) if same else highest + 1
