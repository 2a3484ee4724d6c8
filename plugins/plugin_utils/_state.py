# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is taken and what is free on every node while a plan is being made. PRIVATE: internal to the collection, may change at any time.

A replica is placed on a node by an Assignment. NodeState knows which assignments are possible next (`choices`) and how
good each is, takes one (`place`) and gives it back (`remove`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from ._candidates import Option
from ._entities import Gpu, Node, Service
from ._mig_layouts import EMPTY, Layout, Layouts, add, remove

# A whole GPU in units that every share from 1/2 to 1/16 divides.
WHOLE = 720720

ReplicaId = tuple[str, int]  # service, number within the service
Key = tuple[Any, ...]


class NumaPart(NamedTuple):
    """What a replica takes of one NUMA node."""

    numa_node: int
    cores: int
    memory_mib: int
    hugepages_mib: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """A replica's device on a node, with what it takes of the node."""

    node: str
    option: Option
    gpus: tuple[int, ...]
    start: int
    parts: tuple[NumaPart, ...]

    def on(self, node: str) -> Assignment:
        """The same on another node that is in the same state."""
        return Assignment(node, self.option, self.gpus, self.start, self.parts)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Two assignments with the same identity are the same device."""
        profile = self.option.profile.name if self.option.profile else ""
        return (self.node, self.gpus, profile, self.start, self.option.share)


class GpuState:
    """A GPU: unused, whole (one replica), shared, or cut into instances."""

    __slots__ = ("gpu", "in_force", "layouts", "tenants", "units", "used", "whole")

    def __init__(self, gpu: Gpu, layouts: Layouts, in_force: Layout | None):
        self.gpu = gpu
        self.layouts = layouts
        self.in_force = in_force  # None: MIG is off, or nothing is known
        self.whole = False
        self.units = 0
        self.used: Layout = EMPTY
        self.tenants: dict[ReplicaId, tuple[int, str] | None] = {}

    @property
    def idle(self) -> bool:
        return not self.tenants

    @property
    def mig(self) -> bool:
        """Whether the GPU has MIG on in the plan as it stands."""
        return bool(self.used) or (self.in_force is not None and self.idle)

    def layout(self) -> Layout | None:
        """The instances in the plan as it stands, unused ones included; None when MIG is off."""
        if not self.mig:
            return None
        return tuple(sorted(self.used + self.layouts.kept(self.used, self.in_force or EMPTY)))

    def changed(self) -> bool:
        return self.layout() != self.in_force

    def likeness(self) -> tuple[Any, ...]:
        gpu = self.gpu
        tenants = tuple(sorted({tenant[0] for tenant in self.tenants})) if self.tenants else ()
        return (gpu.model.key, gpu.numa_node, gpu.nvlink_set, gpu.excluded, self.whole, self.units, self.used, self.in_force, tenants)

    def alike(self, service: str) -> tuple[Any, ...]:
        """GPUs of a node that are alike in this are interchangeable for a replica of the service."""
        here = any(tenant[0] == service for tenant in self.tenants)
        gpu = self.gpu
        return (gpu.model.key, gpu.numa_node, gpu.nvlink_set, self.whole, self.units, self.used, self.in_force, here)


class NodeState:
    """A node while a plan is being made."""

    __slots__ = ("accepts", "cores", "gpus", "hugepages", "memory", "movable", "node", "numa_load", "number", "placed", "services")

    def __init__(self, node: Node, gpus: list[GpuState], accepts: bool, movable: bool):
        self.node = node
        self.gpus = gpus
        self.accepts = accepts  # whether new replicas may come here
        self.movable = movable  # whether replicas here may be moved away
        self.cores = {numa.id: len(numa.cores) for numa in node.numa_nodes}
        self.memory = {numa.id: numa.memory_mib for numa in node.numa_nodes}
        self.hugepages = {numa.id: numa.hugepages_mib for numa in node.numa_nodes}
        self.numa_load = {numa.id: 0 for numa in node.numa_nodes}
        self.placed: dict[ReplicaId, Assignment] = {}
        self.services: dict[str, int] = {}
        self.number = -1  # of the state that the node is in; -1 when that has changed

    def likeness(self) -> tuple[Any, ...]:
        """Nodes that are alike in this offer the same choices, so that one of them has to be looked at only."""
        return (
            self.accepts,
            tuple(state.likeness() for state in self.gpus),
            tuple(self.cores.items()),
            tuple(self.memory.values()),
            tuple(self.hugepages.values()),
            tuple(self.numa_load.values()),
            tuple(sorted(self.services.items())),
            self.node.threads_per_core,
        )

    # --- taking and giving back -----------------------------------------------------------------

    def place(self, replica: ReplicaId, assignment: Assignment) -> None:
        option = assignment.option
        for index in assignment.gpus:
            state = self.gpus[index]
            if option.profile:
                state.used = add(state.used, assignment.start, option.profile.name)
                state.tenants[replica] = (assignment.start, option.profile.name)
            else:
                state.tenants[replica] = None
                if option.share:
                    state.units += WHOLE // option.share
                else:
                    state.whole = True
        self.number = -1
        self._take(assignment, 1)
        self.placed[replica] = assignment
        self.services[replica[0]] = self.services.get(replica[0], 0) + 1

    def remove(self, replica: ReplicaId) -> Assignment:
        assignment = self.placed.pop(replica)
        option = assignment.option
        for index in assignment.gpus:
            state = self.gpus[index]
            del state.tenants[replica]
            if option.profile:
                state.used = remove(state.used, assignment.start, option.profile.name)
            elif option.share:
                state.units -= WHOLE // option.share
            else:
                state.whole = False
        self.number = -1
        self._take(assignment, -1)
        self.services[replica[0]] -= 1
        return assignment

    def _take(self, assignment: Assignment, sign: int) -> None:
        for part in assignment.parts:
            self.cores[part.numa_node] -= sign * part.cores
            self.memory[part.numa_node] -= sign * part.memory_mib
            self.hugepages[part.numa_node] -= sign * part.hugepages_mib
            self.numa_load[part.numa_node] += sign

    # --- what is possible -----------------------------------------------------------------------

    def possible(self, replica_service: Service, assignment: Assignment) -> bool:
        """Whether exactly this assignment can be made now."""
        option = assignment.option
        for index in assignment.gpus:
            state = self.gpus[index]
            if state.gpu.excluded or not self._gpu_free(state, option, replica_service):
                return False
            if option.profile and assignment.start not in state.layouts.starts(state.used, option.profile.name):
                return False
        return self._parts_free(assignment.parts)

    def choices(
        self, service: Service, options: Iterable[Option], apart: frozenset[str], exhaustive: bool = False, packed: bool = False
    ) -> Iterator[tuple[Key, Assignment]]:
        """Yield possible assignments with their keys: the lowest is the best.

        Interchangeable GPUs are offered once. Without `exhaustive`, neither are start slots and GPU sets that are no
        better than another one offered. When room is short, `packed` fills what is in use instead of spreading, and takes
        first what fewer others can use.
        """
        if not self.accepts or not self.welcome(service, apart):
            return
        for option in options:
            if option.profile:
                found = self._instances(service, option, exhaustive)
            elif option.share:
                found = self._shares(service, option)
            else:
                found = self._groups(service, option, exhaustive)
            for key, assignment in found:
                yield (self._packed(service, assignment, key) if packed else key), assignment

    def _packed(self, service: Service, assignment: Assignment, key: Key) -> Key:
        option = assignment.option
        first = self.gpus[assignment.gpus[0]]
        # How many GPUs of the set stay free: small remainders are used up first, large ones are kept for groups.
        link, model = first.gpu.nvlink_set, option.model
        around = sum(not state.tenants and state.gpu.model is model and state.gpu.nvlink_set == link for state in self.gpus)
        asked = () if service.device.chosen else option.preference
        if option.profile:
            return (*asked, *key[1:5], around if first.idle else 0, *key[5:])
        return (*asked, model.mig_capable, int(first.idle), -first.units, key[3] if option.gpus else 0, around, *key[1:])

    def welcome(self, service: Service, apart: frozenset[str]) -> bool:
        """Whether the other replicas of the node tolerate one of this service."""
        here = self.services
        if service.anti_affinity == "node" and here.get(service.name):
            return False
        return not (apart and any(here.get(other) for other in apart))

    def _gpu_free(self, state: GpuState, option: Option, service: Service) -> bool:
        if state.gpu.model is not option.model or state.whole:
            return False
        if option.profile:
            if state.units:
                return False
        elif option.share:
            if state.used or state.units + WHOLE // option.share > WHOLE:
                return False
        elif state.tenants:
            return False
        return not (service.anti_affinity == "gpu" and any(tenant[0] == service.name for tenant in state.tenants))

    def _instances(self, service: Service, option: Option, exhaustive: bool) -> Iterator[tuple[Key, Assignment]]:
        profile = option.profile
        if profile is None:
            raise AssertionError("only known profiles are placed")
        seen: set[tuple[Any, ...]] = set()
        for state in self.gpus:
            if state.gpu.excluded or not self._gpu_free(state, option, service):
                continue
            alike = state.alike(service.name)
            if alike in seen:
                continue
            seen.add(alike)
            parts = self.parts(service, (state.gpu.numa_node,))
            if parts is None:
                continue
            layouts, used = state.layouts, state.used
            for start in self._starts(state, profile.name, exhaustive):
                after = add(used, start, profile.name)
                was, now = layouts.cost(used), layouts.cost(after)
                layout = tuple(sorted(after + layouts.kept(after, state.in_force or EMPTY)))
                key = (
                    option.preference,
                    int(layout != state.in_force) - int(state.changed()),
                    int(not state.mig),
                    now[0] - was[0],
                    now[1] - was[1],
                    self.services.get(service.name, 0),
                    len(self.placed),
                    profile.slices,
                    self.numa_load[state.gpu.numa_node],
                    state.gpu.index,
                    -start,
                )
                yield key, Assignment(self.node.name, option, (state.gpu.index,), start, parts)

    def _starts(self, state: GpuState, name: str, exhaustive: bool) -> tuple[int, ...]:
        if exhaustive:
            return state.layouts.starts(state.used, name)
        unused = state.layouts.kept(state.used, state.in_force or EMPTY)
        for start, other in unused:
            if other == name:
                return (start,)
        everything = tuple(sorted(state.used + unused))
        best = state.layouts.best_start(everything, name) if unused else None
        if best is None:
            best = state.layouts.best_start(state.used, name)
        return () if best is None else (best,)

    def _shares(self, service: Service, option: Option) -> Iterator[tuple[Key, Assignment]]:
        seen: set[tuple[Any, ...]] = set()
        for state in self.gpus:
            if state.gpu.excluded or not self._gpu_free(state, option, service):
                continue
            alike = state.alike(service.name)
            if alike in seen:
                continue
            seen.add(alike)
            parts = self.parts(service, (state.gpu.numa_node,))
            if parts is None:
                continue
            key = (
                option.preference,
                int(state.idle and state.in_force is not None),
                0,
                self.services.get(service.name, 0),
                len(self.placed),
                self.numa_load[state.gpu.numa_node],
                state.units,
                state.gpu.index,
            )
            yield key, Assignment(self.node.name, option, (state.gpu.index,), 0, parts)

    def _groups(self, service: Service, option: Option, exhaustive: bool) -> Iterator[tuple[Key, Assignment]]:
        """Whole GPUs of one NVLink set (of any, over PCIe), in one NUMA node where that is possible."""
        sets: dict[str, dict[int, list[GpuState]]] = {}
        for state in self.gpus:
            if state.gpu.excluded or state.tenants or state.gpu.model is not option.model:
                continue
            # A single GPU needs no links; groups that may talk over PCIe still prefer a set.
            groups = {state.gpu.nvlink_set} if option.gpus > 1 else {""}
            if service.allow_pcie:
                groups.add("")
            for group in sorted(name for name in groups if name is not None):
                sets.setdefault(group, {}).setdefault(state.gpu.numa_node, []).append(state)
        for by_numa in sets.values():
            for picked in self._splits(by_numa, option.gpus, exhaustive):
                numa_nodes = tuple(state.gpu.numa_node for state in picked)
                parts = self.parts(service, numa_nodes)
                if parts is None:
                    continue
                key = (
                    option.preference,
                    sum(state.in_force is not None for state in picked),
                    0,
                    int(option.gpus > 1 and not linked(state.gpu for state in picked)),
                    len(set(numa_nodes)),
                    self.services.get(service.name, 0),
                    len(self.placed),
                    len(by_numa[numa_nodes[0]]),
                    max(self.numa_load[numa] for numa in numa_nodes),
                    picked[0].gpu.index,
                )
                indexes = tuple(sorted(state.gpu.index for state in picked))
                yield key, Assignment(self.node.name, option, indexes, 0, parts)

    def _splits(self, by_numa: dict[int, list[GpuState]], count: int, exhaustive: bool) -> Iterator[list[GpuState]]:
        """Ways to take so many GPUs of a set: from one NUMA node if any has enough, else from as few as possible."""
        # GPUs whose geometry stays as it is come first, so that taking from the front is best.
        ordered = {
            numa: sorted(states, key=lambda state: (state.in_force is not None, state.gpu.index))
            for numa, states in sorted(by_numa.items())
        }
        if exhaustive:
            names = [numa for numa, states in ordered.items() for _state in states[:count]]
            for chosen in sorted(set(combinations_with_replacement(sorted(ordered), count))):
                if all(chosen.count(numa) <= names.count(numa) for numa in set(chosen)):
                    yield [ordered[numa][position] for numa in sorted(set(chosen)) for position in range(chosen.count(numa))]
            return
        single = [states[:count] for states in ordered.values() if len(states) >= count]
        yield from single
        if count > 1 and sum(len(states) for states in ordered.values()) >= count:
            spread: list[GpuState] = []
            for states in sorted(ordered.values(), key=lambda states: (-len(states), states[0].gpu.numa_node)):
                spread += states[: count - len(spread)]
            if len({state.gpu.numa_node for state in spread}) > 1:
                yield spread
            elif len(ordered) > 1:
                # The one NUMA node has the GPUs; an even split helps when it lacks CPUs or memory.
                yield from self._even_split(ordered, count)

    @staticmethod
    def _even_split(ordered: dict[int, list[GpuState]], count: int) -> Iterator[list[GpuState]]:
        each = count // len(ordered)
        if each * len(ordered) == count and all(len(states) >= each for states in ordered.values()):
            yield [state for states in ordered.values() for state in states[:each]]

    def parts(self, service: Service, numa_nodes: tuple[int, ...]) -> tuple[NumaPart, ...] | None:
        """What a replica on GPUs of these NUMA nodes takes of each; None when one has too little left."""
        cores = -(-service.cpus // self.node.threads_per_core)
        parts = parts_of(cores, service.memory_mib, service.hugepages_mib, numa_nodes)
        return parts if self._parts_free(parts) else None

    def lacks(self, service: Service) -> bool:
        """Whether a NUMA node has too little left for a replica of the service."""
        cores = -(-service.cpus // self.node.threads_per_core)
        return any(
            self.cores[numa] < cores or self.memory[numa] < service.memory_mib or self.hugepages[numa] < service.hugepages_mib
            for numa in self.cores
        )

    def _parts_free(self, parts: tuple[NumaPart, ...]) -> bool:
        return all(
            self.cores[part.numa_node] >= part.cores
            and self.memory[part.numa_node] >= part.memory_mib
            and self.hugepages[part.numa_node] >= part.hugepages_mib
            for part in parts
        )


def linked(gpus: Iterable[Gpu]) -> bool:
    """Whether all these GPUs are in one NVLink set."""
    sets = {gpu.nvlink_set for gpu in gpus}
    return len(sets) == 1 and None not in sets


def parts_of(cores: int, memory_mib: int, hugepages_mib: int, numa_nodes: tuple[int, ...]) -> tuple[NumaPart, ...]:
    """Divide what a replica takes over the NUMA nodes of its GPUs, in proportion to the GPUs."""
    if len(numa_nodes) == 1:
        return (NumaPart(numa_nodes[0], cores, memory_mib, hugepages_mib),)
    parts: list[NumaPart] = []
    before = 0
    total = len(numa_nodes)
    for numa in sorted(set(numa_nodes)):
        after = before + numa_nodes.count(numa)
        amounts = [whole * after // total - whole * before // total for whole in (cores, memory_mib, hugepages_mib)]
        parts.append(NumaPart(numa, *amounts))
        before = after
    return tuple(parts)


class Cluster:
    """All nodes while a plan is being made, and where every replica is."""

    def __init__(self, nodes: Iterable[NodeState], services: Iterable[Service]):
        self.nodes: dict[str, NodeState] = {state.node.name: state for state in nodes}
        self.services: dict[str, Service] = {service.name: service for service in services}
        self.where: dict[ReplicaId, str] = {}
        self.touched = set(self.nodes)  # nodes that have changed since somebody looked
        apart: dict[str, set[str]] = {name: set(service.apart_from) for name, service in self.services.items()}
        for name, service in self.services.items():
            for other in service.apart_from:
                apart[other].add(name)
        self.apart = {name: frozenset(others) for name, others in apart.items()}

    def place(self, replica: ReplicaId, assignment: Assignment) -> None:
        self.touched.add(assignment.node)
        self.nodes[assignment.node].place(replica, assignment)
        self.where[replica] = assignment.node

    def remove(self, replica: ReplicaId) -> Assignment:
        node = self.where.pop(replica)
        self.touched.add(node)
        return self.nodes[node].remove(replica)

    def assignment(self, replica: ReplicaId) -> Assignment:
        return self.nodes[self.where[replica]].placed[replica]
