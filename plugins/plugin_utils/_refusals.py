# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say what cannot be done: which service, what it needs, what there is, and the nearest change that would work.

PRIVATE: internal to the collection, may change at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ._candidates import Candidates, Finder, Option
from ._catalog import Rule
from ._entities import Node, Service
from ._mig_layouts import EMPTY, Layouts, add
from ._repair import Move
from ._state import Assignment, Cluster, NodeState


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refusal; `subject` is a service or a node."""

    subject: str
    kind: str  # service or node
    code: str
    sentence: str
    remedy: str
    wanted: int = 0
    missing: int = 0
    data: tuple[tuple[str, Any], ...] = ()
    moves: tuple[Move, ...] = ()

    def text(self) -> str:
        return " ".join(part for part in (f"{self.subject}: {self.sentence}", self.remedy) if part)


def node_refusals(broken: Mapping[str, Sequence[tuple[Rule, str]]]) -> list[Refusal]:
    """One refusal for each node and rule."""
    return [
        Refusal(
            name, "node", f"rule:{rule.id}", f"{value}. {rule.sentence}", rule.remedy, data=(("rule", rule.id), ("source", rule.source))
        )
        for name, rules in sorted(broken.items())
        for rule, value in rules
    ]


def no_device(service: Service, missing: int, found: Candidates, finder: Finder, nodes: Sequence[Node]) -> Refusal:
    """A service that no kind of device can host."""
    first = found.obstacles[0]
    remedy = first.remedy
    data = dict(first.data)
    if first.code == "does_not_fit":
        # Of several devices that are too small, the one that lacks least says most.
        small = [obstacle for obstacle in found.obstacles if obstacle.code == "does_not_fit"]
        first = min(
            small, key=lambda obstacle: (dict(obstacle.data)["needed_mib"] - dict(obstacle.data)["available_mib"], obstacle.sentence)
        )
        data = dict(first.data)
        remedy = _smaller_need(service, data)
    if first.code in {"does_not_fit", "set_too_small", "tensor_parallel_over_mig", "no_such_profile", "rule:mig"}:
        remedy = f"{remedy} {_device_that_would_do(service, finder, nodes)}".strip()
    others = [{"code": obstacle.code, "sentence": obstacle.sentence} for obstacle in found.obstacles if obstacle is not first]
    return Refusal(
        service.name, "service", first.code, first.sentence, remedy, service.replicas, missing, (*data.items(), ("other_obstacles", others))
    )


def _device_that_would_do(service: Service, finder: Finder, nodes: Sequence[Node]) -> str:
    admitted = [node for node in nodes if service.admits(node)]
    smallest = finder.smallest(service, admitted)
    if smallest is None:
        elsewhere = finder.smallest(service, nodes)
        if elsewhere is None:
            return "No device of this cluster would hold it; use a smaller or a quantized model."
        return f"No device of its nodes would hold it, but {elsewhere.text()} would: widen pool or nodes of the service."
    asked = f"{{mig: {smallest.profile.name}}}" if smallest.profile else f"{{gpus: {smallest.gpus}}}"
    return f"The smallest device here that would do is {smallest.text()}: device: {asked}."


def _smaller_need(service: Service, data: Mapping[str, Any]) -> str:
    requests = data["tokens"] // service.context_tokens
    if requests:
        return f"With concurrent_requests: {requests} it would fit."
    return ""


def no_room(service: Service, missing: int, cluster: Cluster, found: Candidates, moves: Sequence[Move]) -> Refusal:
    """A service whose devices exist, but are taken."""
    options = sorted(
        {option.text(): option for some in found.options.values() for option in some}.values(), key=lambda option: option.preference
    )
    placed = service.replicas - missing
    nodes = [cluster.nodes[name] for name in sorted(found.options) if found.options[name] and cluster.nodes[name].accepts]
    head = f"No place for {missing} of {service.replicas} replicas"
    data: list[tuple[str, Any]] = [("placed", placed), ("devices", [option.text() for option in options])]
    if moves:
        said = ", ".join(f"{_name(move)} from {device_key(cluster, move.before)} to {device_key(cluster, move.after)}" for move in moves)
        return Refusal(
            service.name,
            "service",
            "needs_moves",
            f"{head} unless running replicas move: {said}.",
            f"Allow it with plan_max_moves: {len(moves)}, or {_fewer(service, missing)}.",
            service.replicas,
            missing,
            tuple(data),
            tuple(moves),
        )
    if not nodes:
        return Refusal(
            service.name,
            "service",
            "no_active_node",
            f"{head}: every node that could host it is in maintenance, outside of the limit of this run, or refused itself.",
            "End the maintenance, run without a limit, add a node, or widen pool or nodes of the service.",
            service.replicas,
            missing,
            tuple(data),
        )
    code, reason, remedy = _scarce(service, missing, cluster, nodes, found)
    return Refusal(service.name, "service", code, f"{head}: {reason}", remedy, service.replicas, missing, tuple(data))


def _scarce(service: Service, missing: int, cluster: Cluster, nodes: list[NodeState], found: Candidates) -> tuple[str, str, str]:
    """Find out what the nodes lack: something of the host, tolerance for each other, or GPUs."""
    lower = _fewer(service, missing)
    for field, code, words, unit in (
        ("cpus", "no_cpus", "", "CPUs"),
        ("memory_mib", "no_memory", " of host memory", "MiB"),
        ("hugepages_mib", "no_hugepages", " of huge pages", "MiB"),
    ):
        if getattr(service, field) and _would_fit(_without(service, field), cluster, nodes, found):
            most = max(max(_free(node, field).values()) for node in nodes)
            return (
                code,
                f"each needs {getattr(service, field)} {unit}{words} on the NUMA node of its GPU, "
                f"but the NUMA nodes with a free device have at most {most} {unit} left.",
                f"Lower {field} of the service, or {lower}.",
            )
    tolerant = replace(service, anti_affinity="none")
    if service.anti_affinity != "none" and _would_fit(tolerant, cluster, nodes, found):
        return (
            "anti_affinity",
            f"anti_affinity: {service.anti_affinity} leaves no further {service.anti_affinity} for it.",
            f"Relax anti_affinity, add a node, or {lower}.",
        )
    if cluster.apart[service.name] and _would_fit(service, cluster, nodes, found, together=True):
        others = ", ".join(sorted(cluster.apart[service.name]))
        return (
            "apart_from",
            f"it must not share a node with {others}, which every node with a free device holds.",
            f"Relax apart_from, add a node, or {lower}.",
        )
    options = _kinds(found)
    asked = " or ".join(dict.fromkeys(option.text() for option in options))
    held = "; ".join(_holders(nodes, model) for model in sorted({option.model.key for option in options}))
    best = options[0]
    more = -(-missing // _per_gpu(best))
    gpus = more * best.gpus if best.gpus else more
    extra = f"{gpus} more {best.model.key}" + (f", {best.gpus} in one NVLink set" if best.gpus > 1 and not service.allow_pcie else "")
    return "no_device_left", f"each needs {asked}, and none is left ({held}).", f"Add {extra}, or {lower}."


def _fewer(service: Service, missing: int) -> str:
    left = service.replicas - missing
    return f"set replicas: {left}" if left else "leave the service out"


def _kinds(found: Candidates) -> list[Option]:
    """The different devices that would do, the preferred ones first."""
    options = {option.text(): option for some in found.options.values() for option in some}
    return sorted(options.values(), key=lambda option: (option.preference, option.text()))


def _without(service: Service, field: str) -> Service:
    changes: dict[str, Any] = {field: 0}
    return replace(service, **changes)


def _would_fit(service: Service, cluster: Cluster, nodes: list[NodeState], found: Candidates, together: bool = False) -> bool:
    apart: frozenset[str] = frozenset() if together else cluster.apart[service.name]
    return any(next(node.choices(service, found.options[node.node.name], apart), None) for node in nodes)


def _free(node: NodeState, field: str) -> dict[int, int]:
    if field == "cpus":
        return {numa: cores * node.node.threads_per_core for numa, cores in node.cores.items()}
    return node.memory if field == "memory_mib" else node.hugepages


def _holders(nodes: list[NodeState], model: str) -> str:
    """Who has the GPUs of a model: "16 x A100-SXM4-80GB: 8 by bulk, 8 by chat"."""
    total, by_service, excluded, idle = 0, dict[str, int](), 0, 0
    for node in nodes:
        for state in node.gpus:
            if state.gpu.model.key != model:
                continue
            total += 1
            excluded += state.gpu.excluded
            idle += not state.gpu.excluded and state.idle
            for service in {tenant[0] for tenant in state.tenants}:
                by_service[service] = by_service.get(service, 0) + 1
    parts = [f"{count} by {name}" for name, count in sorted(by_service.items())]
    parts += [f"{excluded} excluded"] * bool(excluded) + [f"{idle} unused"] * bool(idle)
    return f"{total} x {model}: {', '.join(parts)}"


def _per_gpu(option: Option) -> int:
    """How many replicas one more GPU (or group of GPUs) would take."""
    if option.share:
        return option.share
    if option.profile is None:
        return 1
    layouts, layout, count = Layouts(option.model), EMPTY, 0
    while (start := layouts.best_start(layout, option.profile.name)) is not None:
        layout, count = add(layout, start, option.profile.name), count + 1
    return max(count, 1)


def device_key(cluster: Cluster, assignment: Assignment) -> str:
    return key_text(cluster.nodes[assignment.node].node, assignment)


def key_text(node: Node, assignment: Assignment) -> str:
    """The key of a device: node / slots / what of them."""
    option = assignment.option
    slots = "+".join(node.gpus[index].key for index in assignment.gpus)
    if option.profile:
        return f"{node.name}/{slots}/{option.profile.name}@{assignment.start}"
    return f"{node.name}/{slots}/share-{option.share}" if option.share else f"{node.name}/{slots}"


def _name(move: Move) -> str:
    return f"{move.replica[0]}-{move.replica[1]}"
