# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make room for a replica by placing others elsewhere. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from ._candidates import Option
from ._entities import Service
from ._state import Assignment, Cluster, GpuState, NodeState, ReplicaId

# Bounds of the search. Within them it is complete on small clusters and quick on large ones.
TRIES = 48
DEPTH = 2
MOST_EVICTED = 4

Options = Mapping[str, Mapping[str, tuple[Option, ...]]]


class Move(NamedTuple):
    """A running replica that changes its device."""

    replica: ReplicaId
    before: Assignment
    after: Assignment


class Eviction(NamedTuple):
    """Replicas of a node that would have to go; those in force count as moves."""

    moves: int
    size: int
    node: str
    evicted: tuple[ReplicaId, ...]


class Repair:
    """Makes room on a cluster. Replicas in force are moved only as far as the caller allows."""

    def __init__(self, cluster: Cluster, options: Options, in_force: frozenset[ReplicaId]):
        self.cluster = cluster
        self.in_force = in_force
        self._options = options

    def make_room(self, replica: ReplicaId, max_moves: int) -> list[Move] | None:
        """Place the replica; return the moves this took, or None, with everything as it was, when there is no way."""
        before = {tenant: self.cluster.assignment(tenant) for tenant in self.in_force if tenant in self.cluster.where} if max_moves else {}
        for budget in range(max_moves + 1):  # the fewest moves first
            if self._place(replica, budget, DEPTH, frozenset((replica,))) is not None:
                return sorted(
                    Move(tenant, assignment, self.cluster.assignment(tenant))
                    for tenant, assignment in before.items()
                    if self.cluster.assignment(tenant).identity != assignment.identity
                )
        return None

    def _place(self, replica: ReplicaId, budget: int, depth: int, settled: frozenset[ReplicaId]) -> int | None:
        """Place a replica, evicting others if need be; return the moves taken."""
        service = self.cluster.services[replica[0]]
        best = self._best(service)
        if best:
            self.cluster.place(replica, best)
            return 0
        if not depth:
            return None
        for eviction in self._evictions(service, budget, settled):
            taken = self._evict(replica, eviction, budget, depth, settled)
            if taken is not None:
                return taken
        return None

    def _best(self, service: Service, node: str | None = None) -> Assignment | None:
        apart = self.cluster.apart[service.name]
        nodes = self._options[service.name]
        best = None
        for name in (node,) if node else nodes:
            if options := nodes.get(name):
                for key, assignment in self.cluster.nodes[name].choices(service, options, apart):
                    if best is None or (key, name) < best[0]:
                        best = ((key, name), assignment)
        return best[1] if best else None

    def _evict(self, replica: ReplicaId, eviction: Eviction, budget: int, depth: int, settled: frozenset[ReplicaId]) -> int | None:
        service = self.cluster.services[replica[0]]
        removed = {tenant: self.cluster.remove(tenant) for tenant in eviction.evicted}
        placed: list[ReplicaId] = []
        # Only nested evictions change other replicas, so only then is there something to remember.
        before = {tenant: self.cluster.assignment(tenant) for tenant in self.cluster.where} if depth > 1 else {}
        taken = eviction.moves
        assignment = self._best(service, eviction.node)
        if assignment is not None:
            self.cluster.place(replica, assignment)
            placed.append(replica)
            now_settled = settled | {replica, *eviction.evicted}
            for tenant in sorted(removed, key=lambda tenant: (-len(removed[tenant].gpus), tenant)):
                spent = self._place(tenant, budget - taken, depth - 1, now_settled)
                if spent is None:
                    break
                taken += spent
                placed.append(tenant)
            else:
                return taken
        self._undo(placed, removed, before)
        return None

    def _undo(self, placed: list[ReplicaId], removed: Mapping[ReplicaId, Assignment], before: Mapping[ReplicaId, Assignment]) -> None:
        for tenant in placed:
            self.cluster.remove(tenant)
        moved = [tenant for tenant, assignment in before.items() if self.cluster.assignment(tenant) is not assignment]
        for tenant in moved:
            self.cluster.remove(tenant)
        for tenant in moved:
            self.cluster.place(tenant, before[tenant])
        for tenant, assignment in removed.items():
            self.cluster.place(tenant, assignment)

    # --- who would have to go ---------------------------------------------------------------------

    def _evictions(self, service: Service, budget: int, settled: frozenset[ReplicaId]) -> list[Eviction]:
        found: set[Eviction] = set()
        seen: set[Any] = set()
        for name, options in self._options[service.name].items():
            node = self.cluster.nodes[name]
            if not options or not node.accepts or (service.anti_affinity == "node" and node.services.get(service.name)):
                continue
            if any(node.services.get(other) for other in self.cluster.apart[service.name]):
                continue
            # Of nodes that hold the same in the same way, one is enough.
            likeness = (options, self._likeness(node, service.name))
            if likeness in seen:
                continue
            if not settled.intersection(node.placed):
                seen.add(likeness)
            for option in options:
                for evicted in self._on_node(node, option, service):
                    moves = sum(tenant in self.in_force for tenant in evicted)
                    if evicted and moves <= budget and not settled & set(evicted) and (node.movable or not moves):
                        found.add(Eviction(moves, len(evicted), name, tuple(sorted(evicted))))
        return sorted(found)[:TRIES]

    def _likeness(self, node: NodeState, service: str) -> tuple[Any, ...]:
        names: dict[ReplicaId, tuple[str, bool, int]] = {}
        for tenant in sorted(node.placed):
            names[tenant] = (tenant[0], tenant in self.in_force, len(names) if len(node.placed[tenant].gpus) > 1 else -1)
        gpus = tuple((state.alike(service), tuple(sorted(names[tenant] for tenant in state.tenants))) for state in node.gpus)
        return (gpus, tuple(node.cores.items()), tuple(node.memory.items()), tuple(node.hugepages.items()))

    def _on_node(self, node: NodeState, option: Option, service: Service) -> Iterator[frozenset[ReplicaId]]:
        usable = [state for state in node.gpus if not state.gpu.excluded and state.gpu.model is option.model]
        if option.gpus:
            yield from self._for_group(usable, option, service)
        else:
            seen = set()
            for state in usable:
                alike = (state.alike(service.name), tuple(sorted(state.tenants)) if len(state.tenants) else ())
                if alike not in seen:
                    seen.add(alike)
                    yield from self._for_part(state, option)
        yield from self._for_host_resources(node, option)

    def _for_group(self, usable: list[GpuState], option: Option, service: Service) -> Iterator[frozenset[ReplicaId]]:
        sets: dict[str | None, list[GpuState]] = {}
        for state in usable:
            sets.setdefault(state.gpu.nvlink_set if option.gpus > 1 and not service.allow_pcie else "", []).append(state)
        for link, states in sets.items():
            if link is None or len(states) < option.gpus:
                continue
            free = sum(not state.tenants for state in states)
            # Replicas go together when they are on the same GPU, so that is what is weighed.
            blocks = sorted({frozenset(state.tenants) for state in states if state.tenants}, key=lambda block: (len(block), sorted(block)))
            for size in range(1, min(len(blocks), option.gpus) + 1):
                for chosen in combinations(blocks, size):
                    gone = frozenset(tenant for block in chosen for tenant in block)
                    freed = sum(bool(state.tenants) and gone.issuperset(state.tenants) for state in states)
                    if free + freed >= option.gpus:
                        yield gone

    def _for_part(self, state: GpuState, option: Option) -> Iterator[frozenset[ReplicaId]]:
        """The smallest sets of tenants of a GPU without which an instance, or a share, would fit."""
        tenants = sorted(state.tenants)
        profile = option.profile
        instances = bool(state.used)
        if state.whole or instances != bool(profile):
            if 0 < len(tenants) <= MOST_EVICTED:
                yield frozenset(tenants)
            return
        for size in range(1, min(len(tenants), MOST_EVICTED) + 1):
            hit = False
            for chosen in combinations(tenants, size):
                if profile:
                    left = tuple(sorted(entry for tenant, entry in state.tenants.items() if tenant not in chosen and entry))
                    hit_now = bool(state.layouts.starts(left, profile.name))
                else:
                    hit_now = True  # any share that leaves makes some room; `choices` says whether it is enough
                if hit_now:
                    hit = True
                    yield frozenset(chosen)
            if hit and profile:
                return

    def _for_host_resources(self, node: NodeState, option: Option) -> Iterator[frozenset[ReplicaId]]:
        """One replica that leaves may also free the CPUs or the memory that are missing."""
        for tenant in sorted(node.placed):
            yield frozenset((tenant,))
