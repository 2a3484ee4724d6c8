# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exhaustive search on small clusters. PRIVATE: internal to the collection, may change at any time.

Interchangeable replicas, GPUs, nodes and orders are tried once, and states seen before are not tried again. The search stops
after a fixed number of steps (never after a time), so that the same input gives the same plan on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from ._candidates import Option
from ._state import Assignment, Cluster, ReplicaId

LARGEST_CLUSTER = 24  # GPUs
MOST_REPLICAS = 24
STEPS = 6000

Options = Mapping[str, Mapping[str, tuple[Option, ...]]]
Score = tuple[int, ...]


class _OutOfSteps(Exception):
    pass


def small(cluster: Cluster, replicas: int) -> bool:
    return sum(len(state.gpus) for state in cluster.nodes.values()) <= LARGEST_CLUSTER and replicas <= MOST_REPLICAS


def improve(cluster: Cluster, options: Options, wanted: Sequence[ReplicaId], unplaced: list[ReplicaId]) -> list[ReplicaId]:
    """Place more (or more important) replicas than the greedy did, if that is possible; return those left over."""
    if not small(cluster, len(wanted)):
        return unplaced
    missing = set(unplaced)
    placed_now = {replica: cluster.assignment(replica) for replica in wanted if replica not in missing}
    for replica in placed_now:
        cluster.remove(replica)
    search = Search(cluster, options)
    best = search.best(list(wanted), search.score(placed_now))
    chosen = placed_now if best is None else best
    for replica, assignment in chosen.items():
        cluster.place(replica, assignment)
    # Replicas of a service are alike; those without a place are its last ones.
    return sorted(replica for replica in wanted if replica not in chosen)


def fewest_moves(
    cluster: Cluster, options: Options, in_force: Sequence[ReplicaId], wanted: Sequence[ReplicaId], below: int
) -> dict[ReplicaId, Assignment] | None:
    """Find assignments for all wanted replicas that move fewer than `below` replicas in force; None when there are none."""
    if not small(cluster, len(wanted) + len(in_force)):
        return None
    movable = [replica for replica in in_force if cluster.nodes[cluster.where[replica]].movable]
    if wanted and not any(options[wanted[0][0]].values()):
        return None
    budget = STEPS
    for count in range(1, below):
        for chosen in combinations(movable, count):
            removed = {replica: cluster.remove(replica) for replica in chosen}
            search = Search(cluster, options, budget)
            every = [*wanted, *chosen]
            found = search.best(every, None, complete=True)
            for replica, assignment in removed.items():
                cluster.place(replica, assignment)
            budget = search.steps
            if found is not None and len(found) == len(every):
                return found
            if budget <= 0:
                return None
    return None


class Search:
    """Depth-first search with bounds over one set of replicas."""

    def __init__(self, cluster: Cluster, options: Options, steps: int = STEPS):
        self.steps = steps
        self._cluster = cluster
        self._options = options
        self._seen: set[Any] = set()
        self._best_score: Score | None = None
        self._best: dict[ReplicaId, Assignment] | None = None

    def best(self, wanted: list[ReplicaId], at_least: Score | None, complete: bool = False) -> dict[ReplicaId, Assignment] | None:
        """Return the best placement that is better than `at_least`, or None."""
        order = sorted(wanted, key=lambda replica: (-self._size(replica[0]), replica))
        self._best_score = self.score(order[:-1]) if complete else at_least
        self._best = None
        try:
            self._visit(order, 0, {}, list(self.score(order)), complete)
        except _OutOfSteps:
            for replica in list(self._trail):
                self._cluster.remove(replica)
        return self._best

    def score(self, replicas: Any) -> Score:
        """Count placed replicas in the order of the objective: pinned, then class by class."""
        counts = [0, 0, 0, 0]
        for replica in replicas:
            service = self._cluster.services[replica[0]]
            counts[0] += bool(service.nodes)
            counts[1 + service.rank] += 1
        return tuple(counts)

    def _size(self, name: str) -> float:
        sizes = [
            option.gpus or (option.profile.size / 8 if option.profile else 1 / option.share)
            for found in self._options[name].values()
            for option in found[:1]
        ]
        return max(sizes, default=0.0)

    def _visit(self, order: list[ReplicaId], position: int, placed: dict[ReplicaId, Assignment], bound: list[int], complete: bool) -> None:
        self._trail = placed
        if self._best_score is not None and tuple(bound) <= self._best_score:
            return
        if position == len(order):
            self._best_score, self._best = tuple(bound), dict(placed)
            return
        self.steps -= 1
        if self.steps < 0:
            raise _OutOfSteps
        replica = order[position]
        service = self._cluster.services[replica[0]]
        previous = placed.get(order[position - 1]) if position and order[position - 1][0] == replica[0] else None
        signature = (position, previous.identity if previous else None, tuple(bound), self._signature())
        if signature in self._seen:
            return
        self._seen.add(signature)
        for assignment in self._assignments(replica, previous):
            self._cluster.place(replica, assignment)
            placed[replica] = assignment
            self._visit(order, position + 1, placed, bound, complete)
            del placed[replica]
            self._cluster.remove(replica)
        if complete:
            return
        # Leave this replica out, and with it all later ones of the service: they are alike.
        left_out = [other for other in order[position:] if other[0] == replica[0]]
        lower = list(bound)
        lower[0] -= len(left_out) if service.nodes else 0
        lower[1 + service.rank] -= len(left_out)
        self._visit(order, position + len(left_out), placed, lower, complete)

    def _assignments(self, replica: ReplicaId, previous: Assignment | None) -> list[Assignment]:
        service = self._cluster.services[replica[0]]
        apart = self._cluster.apart[service.name]
        found: list[tuple[Any, str, Assignment]] = []
        for name, options in self._options[service.name].items():
            if options:
                for key, assignment in self._cluster.nodes[name].choices(service, options, apart, exhaustive=True):
                    if (
                        previous is None
                        or assignment.identity > previous.identity
                        or (assignment.option.share and assignment.identity == previous.identity)
                    ):
                        found.append((key, name, assignment))
        found.sort(key=lambda entry: (entry[0], entry[1]))
        return [assignment for _key, _name, assignment in found]

    def _signature(self) -> tuple[Any, ...]:
        return tuple(
            (
                tuple((state.whole, state.units, state.used, *sorted({tenant[0] for tenant in state.tenants})) for state in node.gpus),
                tuple(node.cores.values()),
                tuple(node.memory.values()),
                tuple(node.hugepages.values()),
                tuple(sorted(node.services.items())),
            )
            for node in self._cluster.nodes.values()
        )
