# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rearrange a whole cluster with the fewest moves. PRIVATE: internal to the collection, may change at any time.

What is found without names (see _columns and _moves) is carried out on nodes here. CPUs and memory are looked at only
then; where they do not suffice, everything stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from ._candidates import Option
from ._columns import Column, Form, Item, Options, Problem, TooMany
from ._entities import Service
from ._mig_layouts import Layout, Layouts, add
from ._moves import Search
from ._state import Assignment, Cluster, GpuState, NodeState, ReplicaId

STEPS = 120_000  # of the search for a whole run
STEPS_FOR_ONE = 10_000

Gpus = tuple[NodeState, tuple[GpuState, ...]]
Slot = tuple[int, NodeState, Form, tuple[int, ...], int]  # kind, node, form, GPUs, start


class Rearrangement:
    """Finds room for replicas, class by class, and carries it out."""

    def __init__(self, cluster: Cluster, options: Options):
        self._cluster = cluster
        self._options = options
        self.sure = False  # whether no better result is possible

    def run(self, groups: Sequence[Sequence[ReplicaId]], most_moves: int, everything: bool = False) -> bool:
        """Place as many as possible of the first group, then of the next; return whether this was done.

        What is on the cluster may move, so often. With `everything`, all or nothing is placed.
        """
        self.sure = False
        try:
            problem = Problem(self._cluster, self._options)
        except TooMany:
            return False
        if everything and any(replica[0] not in problem.kind_of for group in groups for replica in group):
            return False
        found = _Admission(problem, most_moves, STEPS_FOR_ONE if everything else STEPS)
        for group in groups:
            known = [replica for replica in group if replica[0] in problem.kind_of]
            if known and not found.attempt(known) and not everything:
                found.some_of(known)
        first, admitted = found.steps, list(found.accepted)
        if not everything:
            found.save_moves(groups)
        names = {replica[0] for replica in self._cluster.where}.union(replica[0] for group in groups for replica in group)
        self.sure = not found.search.cut_short and names <= set(problem.kind_of)
        if first is None or found.steps is None:
            return False
        done = _Work(self._cluster, self._options, problem).run(found.steps, found.accepted)
        if not done and found.steps is not first:
            # CPUs and memory may suffice for what takes more moves.
            done = _Work(self._cluster, self._options, problem).run(first, admitted)
        self.sure = self.sure and done
        return done


class _Admission:
    """Lets in what still finds room beside what was let in before."""

    def __init__(self, problem: Problem, most_moves: int, steps: int):
        self._problem = problem
        self._most_moves = most_moves
        self.search = Search(problem, steps)
        self.accepted: list[ReplicaId] = []
        self.steps: list[int] | None = None

    def attempt(self, more: Sequence[ReplicaId], most_moves: int | None = None) -> bool:
        wanted = [0] * self._problem.kinds
        for name, _number in (*self.accepted, *more):
            wanted[self._problem.kind_of[name]] += 1
        found = self.search.run(wanted, self._most_moves if most_moves is None else most_moves)
        if found is None:
            return False
        self.steps = found
        self.accepted.extend(more)
        return True

    def some_of(self, group: Sequence[ReplicaId]) -> None:
        """As many as possible of a group: the small ones first."""
        by_kind = self._by_kind(group)
        for kind in sorted(by_kind, key=lambda kind: (self._problem.size[kind], kind)):
            waiting = by_kind[kind]
            while waiting:
                number = len(waiting)
                while number and not self.attempt(waiting[:number]):
                    number //= 2
                waiting = waiting[number:] if number else []
        self._exchange(by_kind)

    def _exchange(self, by_kind: Mapping[int, Sequence[ReplicaId]]) -> None:
        """Give up one replica of a group where that lets in two others."""
        for kind, gone in sorted(by_kind.items()):
            for other, coming in sorted(by_kind.items()):
                before = list(self.accepted)
                here = [replica for replica in gone if replica in before]
                left = [replica for replica in coming if replica not in before][:2]
                if kind != other and here and len(left) == 2:
                    self.accepted.remove(here[-1])
                    if not self.attempt(left):
                        self.accepted = before

    def save_moves(self, groups: Sequence[Sequence[ReplicaId]]) -> None:
        """Give up one replica of a group for another one of it where that takes fewer moves.

        Only at the end: what a group leaves to the next one comes before moves.
        """
        for group in groups:
            by_kind = self._by_kind(group)
            for kind, other in permutations(sorted(by_kind), 2):
                while self._swap(by_kind[kind], by_kind[other]):
                    pass

    def _swap(self, gone: Sequence[ReplicaId], coming: Sequence[ReplicaId]) -> bool:
        moves = sum(self._problem.columns[index].moves for index in self.steps or ())
        before = list(self.accepted)
        here = [replica for replica in gone if replica in before]
        left = [replica for replica in coming if replica not in before][:1]
        if not moves or not here or not left:
            return False
        self.accepted.remove(here[-1])
        if self.attempt(left, moves - 1):
            return True
        self.accepted = before
        return False

    def _by_kind(self, group: Sequence[ReplicaId]) -> dict[int, list[ReplicaId]]:
        found: dict[int, list[ReplicaId]] = {}
        for replica in sorted(group):
            if replica[0] in self._problem.kind_of:
                found.setdefault(self._problem.kind_of[replica[0]], []).append(replica)
        return found


class _Work:
    """Carries out what was found."""

    def __init__(self, cluster: Cluster, options: Options, problem: Problem):
        self._cluster = cluster
        self._options = options
        self._problem = problem
        self._places: dict[int, list[Gpus]] = {key: list(found) for key, found in problem.places.items()}
        self._slots: list[Slot] = []
        self._moving: list[ReplicaId] = []

    def run(self, steps: Sequence[int], wanted: Sequence[ReplicaId]) -> bool:
        before = {replica: self._cluster.assignment(replica) for replica in self._cluster.where}
        waiting = [self._problem.columns[index] for index in steps]
        # What takes GPUs that another column leaves empty waits for it.
        while column := next((column for column in waiting if self._ready(column)), None):
            waiting.remove(column)
            if not column.added:
                self._empty(column)
            elif column.added[0][1].gpus > 1:
                self._group(column)
            else:
                self._fill(column)
        if not waiting and self._place([*self._moving, *wanted]):
            return True
        for replica in list(self._cluster.where):
            if before.get(replica) is not self._cluster.assignment(replica):
                self._cluster.remove(replica)
        for replica, assignment in before.items():
            if replica not in self._cluster.where:
                self._cluster.place(replica, assignment)
        return False

    def _ready(self, column: Column) -> bool:
        return all(len(self._places.get(resource, ())) >= number for resource, number in column.takes)

    def _remove(self, items: Sequence[Item], gpus: Gpus) -> None:
        node, states = gpus
        for item in items:
            for replica in sorted(states[0].tenants):
                assignment = node.placed[replica]
                profile = assignment.option.profile.name if assignment.option.profile else ""
                alike = (profile, assignment.option.share, assignment.start) == (item.form.profile, item.form.share, item.start)
                if alike and self._problem.kind_of.get(replica[0]) == item.kind:
                    self._cluster.remove(replica)
                    self._moving.append(replica)
                    break

    def _empty(self, column: Column) -> int:
        """Clear what a column takes; return the resource of the empty GPUs, among which they are now."""
        types = {resource: found for found, resource in self._problem.types.items()}
        empty = self._problem.empty(types[column.takes[0][0]])
        for resource, number in column.takes:
            if resource == empty:
                continue
            for _again in range(number):
                node, states = self._places[resource].pop()
                self._remove(types[resource].items, (node, states))
                self._places.setdefault(empty, []).extend((node, (state,)) for state in states)
        return empty

    def _group(self, column: Column) -> None:
        kind, form = column.added[0]
        free = self._places[self._empty(column)]
        by_numa: dict[int, list[Gpus]] = {}
        for gpus in free:
            by_numa.setdefault(gpus[1][0].gpu.numa_node, []).append(gpus)
        # The smallest NUMA node that has enough, else as few as possible.
        enough = [found for found in by_numa.values() if len(found) >= form.gpus]
        largest = sorted(by_numa.items(), key=lambda item: (-len(item[1]), item[0]))
        chosen = (min(enough, key=len) if enough else [gpus for _numa, found in largest for gpus in found])[: form.gpus]
        for gpus in chosen:
            free.remove(gpus)
        self._slots.append((kind, chosen[0][0], form, tuple(sorted(gpus[1][0].gpu.index for gpus in chosen)), 0))

    def _fill(self, column: Column) -> None:
        node, (state,) = self._places[column.takes[0][0]].pop()
        self._remove(column.removed, (node, (state,)))
        starts = _starts(state.layouts, state.used, [form.profile for _kind, form in column.added if form.profile])
        for position, (kind, form) in enumerate(column.added):
            start = starts[position] if starts and form.profile else 0
            self._slots.append((kind, node, form, (state.gpu.index,), start))

    def _place(self, replicas: Sequence[ReplicaId]) -> bool:
        waiting: dict[int, list[ReplicaId]] = {}
        for replica in sorted(replicas, reverse=True):
            waiting.setdefault(self._problem.kind_of[replica[0]], []).append(replica)
        for kind, node, form, gpus, start in self._slots:
            if not waiting.get(kind):
                continue
            service = self._cluster.services[waiting[kind][-1][0]]
            parts = node.parts(service, tuple(node.gpus[index].gpu.numa_node for index in gpus))
            option = self._option(service, node, form, node.gpus[gpus[0]])
            if parts is None or option is None:
                continue
            assignment = Assignment(node.node.name, option, gpus, start, parts)
            if node.possible(service, assignment):
                self._cluster.place(waiting[kind].pop(), assignment)
        return not any(waiting.values())

    def _option(self, service: Service, node: NodeState, form: Form, state: GpuState) -> Option | None:
        for option in self._options[service.name].get(node.node.name, ()):
            profile = option.profile.name if option.profile else ""
            if option.model is state.gpu.model and (profile, option.share, option.gpus) == form:
                return option
        return None


def _starts(layouts: Layouts, layout: Layout, names: list[str]) -> list[int] | None:
    """Where instances of these profiles can all begin."""
    if not names:
        return []
    for start in layouts.starts(layout, names[0]):
        rest = _starts(layouts, add(layout, start, names[0]), names[1:])
        if rest is not None:
            return [start, *rest]
    return None
