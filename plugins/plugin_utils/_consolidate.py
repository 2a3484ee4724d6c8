# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cut several GPUs anew together, so that one more replica fits. PRIVATE: internal to the collection, may change at any time.

Filling GPUs one after the other can strand a slice on each: three 2g.20gb leave one slice, two 2g.20gb and a 3g.40gb none.
Where evicting single replicas does not help, the instances of a few GPUs are packed anew as a whole. Only replicas that this
run has placed are touched: what is in force moves one by one, and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

from ._catalog import GpuModel
from ._choose import Chooser
from ._mig_layouts import EMPTY, Layout, Layouts, add
from ._state import Assignment, GpuState, NodeState, ReplicaId

MOST_GPUS = 8  # packed anew together
MOST_KINDS = 6  # of differently filled GPUs that are combined
STEPS = 20000
MEMORY_SLICES = 8

Fill = tuple[str, ...]  # the services on a GPU, sorted
Board = tuple[NodeState, GpuState]


class Size(NamedTuple):
    """The least that a replica of a service takes of a GPU."""

    slices: int
    memory: int


class Consolidation:
    """Packs instances of several GPUs anew."""

    def __init__(self, chooser: Chooser, in_force: frozenset[ReplicaId]):
        self._chooser = chooser
        self._cluster = chooser.cluster
        self._in_force = in_force
        self._steps = 0

    def make_room(self, replica: ReplicaId) -> bool:
        """Place the replica by packing GPUs anew; leave everything as it was when that does not work."""
        if self._cluster.services[replica[0]].anti_affinity != "none":
            return False
        self._steps = STEPS
        options = [option for options in self._chooser.options[replica[0]].values() for option in options if option.gpus <= 1]
        models = {option.model.key: option.model for option in options if option.model.mig_capable}
        return any(self._on_model(model, replica) for _key, model in sorted(models.items()))

    def compress(self) -> None:
        """Use as few GPUs with MIG as is found possible."""
        self._steps = STEPS
        models = {state.gpu.model.key: state.gpu.model for node in self._cluster.nodes.values() for state in node.gpus if state.used}
        for _key, model in sorted(models.items()):
            while self._on_model(model, None):
                pass

    def _on_model(self, model: GpuModel, replica: ReplicaId | None) -> bool:
        boards = self._boards(model, replica)
        if not boards:
            return False
        layouts = next(iter(boards.values()))[0][1].layouts
        need = self._size(replica[0], model) if replica else None
        wanted = need or Size(model.compute_slices, MEMORY_SLICES)
        spare = {fill: self._spare(fill, model) for fill in boards}
        kinds = sorted(boards, key=lambda fill: (-spare[fill].slices, fill))[:MOST_KINDS]
        for count in range(1, MOST_GPUS + 1):
            for chosen in combinations_with_replacement(kinds, count):
                numbers = Counter(chosen)
                slices, memory = sum(spare[fill].slices for fill in chosen), sum(spare[fill].memory for fill in chosen)
                if slices < wanted.slices or memory < wanted.memory or any(number > len(boards[fill]) for fill, number in numbers.items()):
                    continue
                demand = Counter(service for fill in chosen for service in fill)
                if replica and need:
                    demand[replica[0]] += 1
                packed = self._pack(demand, count if need else count - 1, model, layouts)
                if packed is not None:
                    picked = [board for fill, number in sorted(numbers.items()) for board in boards[fill][:number]]
                    if self._realise(replica, packed, picked):
                        return True
                if self._steps <= 0:
                    return False
        return False

    def _boards(self, model: GpuModel, replica: ReplicaId | None) -> dict[Fill, list[Board]]:
        """GPUs with instances that this run has placed and may place otherwise, by what is on them."""
        found: dict[Fill, list[Board]] = {}
        options = self._chooser.options[replica[0]] if replica else None
        apart = self._cluster.apart[replica[0]] if replica else frozenset()
        for name, node in self._cluster.nodes.items():
            if not node.accepts or apart & set(node.services) or (options is not None and not options.get(name)):
                continue
            for state in node.gpus:
                tenants = state.tenants
                movable = bool(state.used) and not state.gpu.excluded and not self._in_force.intersection(tenants)
                if movable and state.gpu.model is model and all(self._free_to_go(tenant[0]) for tenant in tenants):
                    found.setdefault(tuple(sorted(tenant[0] for tenant in tenants)), []).append((node, state))
        return found

    def _free_to_go(self, name: str) -> bool:
        service = self._cluster.services[name]
        return service.anti_affinity == "none" and not self._cluster.apart[name] and not service.nodes and not service.pools

    def _profiles(self, name: str, model: GpuModel) -> set[str]:
        return {
            option.profile.name
            for options in self._chooser.options[name].values()
            for option in options
            if option.profile and option.model is model
        }

    def _size(self, name: str, model: GpuModel) -> Size | None:
        """The least that an instance for the service takes; None when it takes a whole GPU."""
        profiles = [profile for profile in model.mig_profiles if profile.name in self._profiles(name, model)]
        if not profiles:
            return None
        return Size(min(profile.slices for profile in profiles), min(profile.size for profile in profiles))

    def _spare(self, fill: Fill, model: GpuModel) -> Size:
        sizes = [self._size(name, model) or Size(model.compute_slices, MEMORY_SLICES) for name in fill]
        return Size(model.compute_slices - sum(size.slices for size in sizes), MEMORY_SLICES - sum(size.memory for size in sizes))

    # --- packing ----------------------------------------------------------------------------------

    def _pack(self, demand: Counter[str], gpus: int, model: GpuModel, layouts: Layouts) -> list[Fill] | None:
        """Divide the demand into so many fills that are each possible on one GPU."""
        names = sorted(demand)
        accepted = {name: self._profiles(name, model) for name in names}
        patterns = sorted(
            {fill for layout in layouts.multisets() for fill in _fills(layout, accepted)}, key=lambda fill: (-len(fill), fill)
        )
        sizes = {name: self._size(name, model) or Size(model.compute_slices, MEMORY_SLICES) for name in names}
        failed: set[tuple[int, int, tuple[int, ...]]] = set()

        def search(left: Counter[str], free: int, first: int) -> list[Fill] | None:
            if not left.total():
                return []
            key = (free, first, tuple(left[name] for name in names))
            short = sum(sizes[name].slices * number for name, number in left.items()) > model.compute_slices * free
            self._steps -= 1
            if short or not free or key in failed or self._steps <= 0:
                return None
            for index in range(first, len(patterns)):
                pattern = Counter(patterns[index])
                if pattern <= left:
                    rest = search(left - pattern, free - 1, index)
                    if rest is not None:
                        return [patterns[index], *rest]
            failed.add(key)
            return None

        return search(Counter(demand), gpus, 0)

    def _realise(self, replica: ReplicaId | None, packed: Sequence[Fill], boards: Sequence[Board]) -> bool:
        """Place what was packed on the boards, or put everything back when a node lacks CPUs or memory."""
        removed: dict[ReplicaId, Assignment] = {}
        for node, state in boards:
            for tenant in sorted(state.tenants):
                removed[tenant] = self._cluster.remove(tenant)
            if state.tenants:
                raise AssertionError(node.node.name)
        waiting: dict[str, list[ReplicaId]] = {}
        for tenant in sorted({*removed, *((replica,) if replica else ())}, reverse=True):
            waiting.setdefault(tenant[0], []).append(tenant)
        placed: list[ReplicaId] = []
        for fill, (node, state) in zip(packed, boards, strict=False):
            for name, assignment in self._cut(fill, node, state, EMPTY):
                if not node.possible(self._cluster.services[name], assignment):
                    break
                placed.append(waiting[name].pop())
                self._cluster.place(placed[-1], assignment)
        left = [tenant for tenants in waiting.values() for tenant in tenants]
        if replica and left == [replica] and (choice := self._chooser.anywhere(self._cluster.services[replica[0]])):
            placed.append(replica)
            left = []
            self._cluster.place(replica, choice[2])
        if not left:
            return True
        for tenant in placed:
            self._cluster.remove(tenant)
        for tenant, assignment in removed.items():
            self._cluster.place(tenant, assignment)
        return False

    def _cut(self, fill: Fill, node: NodeState, state: GpuState, layout: Layout) -> list[tuple[str, Assignment]]:
        """Instances for all services of a fill; nothing when that is impossible here."""
        if not fill:
            return []
        service = self._cluster.services[fill[0]]
        for option in self._chooser.options[fill[0]].get(node.node.name, ()):
            profile = option.profile
            parts = node.parts(service, (state.gpu.numa_node,))
            if profile is None or option.model is not state.gpu.model or parts is None:
                continue
            for start in state.layouts.starts(layout, profile.name):
                rest = self._cut(fill[1:], node, state, add(layout, start, profile.name))
                if rest or len(fill) == 1:
                    return [(fill[0], Assignment(node.node.name, option, (state.gpu.index,), start, parts)), *rest]
        return []


def _fills(layout: tuple[str, ...], accepted: dict[str, set[str]]) -> Iterator[Fill]:
    """Every way to give the instances of a layout to services, each taking one that it accepts."""
    found: set[Fill] = {()}
    for profile in layout:
        takers = [name for name, profiles in accepted.items() if profile in profiles]
        if not takers:
            return
        found = {tuple(sorted((*fill, name))) for fill in found for name in takers}
    yield from (fill for fill in found if fill)
