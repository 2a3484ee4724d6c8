# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make room for a replica by placing others elsewhere. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from ._candidates import Option
from ._choose import Chooser
from ._entities import Service
from ._state import Assignment, GpuState, NodeState, ReplicaId

# Bounds of the search: chains of evictions only on small clusters (where they are complete), and on large ones only
# evictions of replicas for which there is a free device somewhere.
TRIES = 48
MOST_EVICTED = 7  # of one GPU
SMALL = 24  # GPUs
LARGE = 256


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

    def __init__(self, chooser: Chooser, in_force: frozenset[ReplicaId]):
        self.cluster = chooser.cluster
        self.in_force = in_force
        self._chooser = chooser
        gpus = sum(len(state.gpus) for state in self.cluster.nodes.values())
        self._depth = 2 if gpus <= SMALL else 1
        self._large = gpus > LARGE
        self._groupings: dict[str, tuple[int, int]] = {}
        self._likenesses: dict[Any, int] = {}

    def make_room(self, replica: ReplicaId, max_moves: int) -> list[Move] | None:
        """Place the replica; return the moves this took, or None, with everything as it was, when there is no way."""
        before = {tenant: self.cluster.assignment(tenant) for tenant in self.in_force if tenant in self.cluster.where} if max_moves else {}
        # Evictions are tried in the order of their moves; only chains can take more than it seems at first.
        budgets = range(max_moves + 1) if self._depth > 1 else (max_moves,)
        for budget in budgets:
            if self._place(replica, budget, self._depth, frozenset((replica,))) is not None:
                return sorted(
                    Move(tenant, assignment, self.cluster.assignment(tenant))
                    for tenant, assignment in before.items()
                    if self.cluster.assignment(tenant).identity != assignment.identity
                )
        return None

    def _place(self, replica: ReplicaId, budget: int, depth: int, settled: frozenset[ReplicaId]) -> int | None:
        """Place a replica, evicting others if need be; return the moves taken."""
        service = self.cluster.services[replica[0]]
        best = self._chooser.anywhere(service)
        if best:
            self.cluster.place(replica, best[2])
            return 0
        if not depth:
            return None
        for eviction in self._evictions(service, budget, settled):
            taken = self._evict(replica, eviction, budget, depth, settled)
            if taken is not None:
                return taken
        return None

    def _evict(self, replica: ReplicaId, eviction: Eviction, budget: int, depth: int, settled: frozenset[ReplicaId]) -> int | None:
        service = self.cluster.services[replica[0]]
        removed = {tenant: self.cluster.remove(tenant) for tenant in eviction.evicted}
        placed: list[ReplicaId] = []
        # Only nested evictions change other replicas, so only then is there something to remember.
        before = {tenant: self.cluster.assignment(tenant) for tenant in self.cluster.where} if depth > 1 else {}
        taken = eviction.moves
        choice = self._chooser.on_node(eviction.node, service)
        if choice is not None:
            self.cluster.place(replica, choice[2])
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
        free = self._chooser.with_room() if self._large else None
        if free is not None and not free:
            return []
        suitable: dict[int, bool] = {}  # by the state that nodes are in
        for name, options in self._chooser.options[service.name].items():
            node = self.cluster.nodes[name]
            if not options:
                continue
            suits = suitable.get(node.number) if node.number >= 0 else None
            if suits is None:
                suits = suitable[node.number] = self._suits(node, service, free)
            if not suits:
                continue
            # Of nodes that hold the same in the same way, one is enough.
            likeness = (id(options), self._likeness(node))
            if likeness in seen:
                continue
            if not settled.intersection(node.placed):
                seen.add(likeness)
            for option in options:
                for evicted in self._on_node(node, option, service):
                    moves = sum(tenant in self.in_force for tenant in evicted)
                    allowed = evicted and moves <= budget and (node.movable or not moves) and not settled & evicted
                    if allowed and (free is None or all(tenant[0] in free for tenant in evicted)):
                        found.add(Eviction(moves, len(evicted), name, tuple(sorted(evicted))))
        return sorted(found)[: TRIES if self._large else 4 * TRIES]

    def _suits(self, node: NodeState, service: Service, free: frozenset[str] | None) -> bool:
        """Whether evicting others could make room for the service on a node."""
        if not node.accepts or not node.welcome(service, self.cluster.apart[service.name]):
            return False
        return free is None or any(count and other in free for other, count in node.services.items())

    def _likeness(self, node: NodeState) -> int:
        """What a node holds and how, with the names of its replicas left out."""
        known = self._groupings.get(node.node.name)
        if known is not None and known[0] == node.number >= 0:
            return known[1]
        names: dict[ReplicaId, tuple[str, bool, int]] = {}
        for tenant in sorted(node.placed):
            names[tenant] = (tenant[0], tenant in self.in_force, len(names) if len(node.placed[tenant].gpus) > 1 else -1)
        gpus = tuple((state.likeness(), tuple(sorted(names[tenant] for tenant in state.tenants))) for state in node.gpus)
        found = self._likenesses.setdefault(
            (gpus, tuple(node.cores.items()), tuple(node.memory.items()), tuple(node.hugepages.items())), len(self._likenesses)
        )
        self._groupings[node.node.name] = (node.number, found)
        return found

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
        if node.lacks(service):
            # One replica that leaves may also free the CPUs or the memory that are missing.
            for tenant in sorted(node.placed):
                yield frozenset((tenant,))

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
