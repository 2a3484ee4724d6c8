# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be done with every GPU, without names. PRIVATE: internal to the collection, may change at any time.

Services that accept the same devices are of one kind, and GPUs that hold the same kinds in the same way are of one type. A
column is one thing to do with a GPU of a type: what leaves it (each a move), and what can come instead. What columns give
and take are resources: replicas of the kinds, and GPUs of the types. Resources are numbered, kinds first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from ._candidates import Option
from ._catalog import GpuModel
from ._mig_layouts import EMPTY, Layout, Layouts, add
from ._state import WHOLE, Cluster, GpuState, NodeState, ReplicaId

Options = Mapping[str, Mapping[str, tuple[Option, ...]]]
MOST_COLUMNS = 8000


class Form(NamedTuple):
    """A device without its place: an instance, a share, or whole GPUs."""

    profile: str
    share: int
    gpus: int


class Item(NamedTuple):
    """A movable replica on a GPU."""

    kind: int
    form: Form
    start: int


Where = tuple[str, str]  # node and NVLink set; empty where groups do not matter


class Type(NamedTuple):
    """How GPUs of a set are filled; of a group of whole GPUs, all of them together."""

    where: Where
    board: int
    layout: Layout = EMPTY  # instances that stay, whatever happens
    units: int = 0  # shares that stay
    items: tuple[Item, ...] = ()

    @property
    def group(self) -> int:
        return self.items[0].form.gpus if self.items and self.items[0].form.gpus > 1 else 0


class Column(NamedTuple):
    """One thing to do with a GPU of a type, or with several to put a group on them."""

    takes: tuple[tuple[int, int], ...]  # resources: GPUs of these types, and how many
    removed: tuple[Item, ...]
    added: tuple[tuple[int, Form], ...]
    gives: dict[int, int]

    @property
    def moves(self) -> int:
        return len(self.removed)


class Board(NamedTuple):
    """GPUs of one model in nodes that offer the same to every service."""

    model: GpuModel
    layouts: Layouts
    accepted: dict[Form, tuple[int, ...]]  # kinds


class TooMany(Exception):
    """There is too much that could be done."""


class Problem:
    """Kinds, types and columns of a cluster."""

    def __init__(self, cluster: Cluster, options: Options):
        self.cluster = cluster
        self.options = options
        self.kind_of: dict[str, int] = {}
        self.boards: list[Board] = []
        self.types: dict[Type, int] = {}
        self.columns: list[Column] = []
        self.linked = False  # whether groups matter
        self.places: dict[int, list[tuple[NodeState, tuple[GpuState, ...]]]] = {}
        self._fills_of: dict[tuple[int, Layout, int, bool], list[tuple[tuple[int, Form], ...]]] = {}
        self._sort_services()
        self._sort_gpus()
        for found in list(self.types):
            self._columns_of(found)
        self._columns_of_groups()

    @property
    def resources(self) -> int:
        return self.kinds + len(self.types)

    def empty(self, found: Type) -> int:
        return self.types[Type(found.where, found.board)]

    # --- kinds --------------------------------------------------------------------------------------

    def _sort_services(self) -> None:
        cluster = self.cluster
        offers: dict[tuple[tuple[tuple[str, Form], ...], ...], int] = {}
        names = sorted(cluster.services)
        self._offer: dict[str, int] = {}
        for name, state in cluster.nodes.items():
            if state.accepts and state.movable:
                offer = tuple(_forms(self.options[service].get(name, ())) for service in names)
                self._offer[name] = offers.setdefault(offer, len(offers))
        kinds: dict[tuple[tuple[tuple[str, Form], ...], ...], int] = {}
        self._forms: dict[int, tuple[tuple[tuple[str, Form], ...], ...]] = {}
        for position, name in enumerate(names):
            service = cluster.services[name]
            signature = tuple(offer[position] for offer in offers)
            groups = any(form.gpus > 1 for offer in signature for _model, form in offer)
            if service.anti_affinity != "none" or cluster.apart[name] or (groups and service.allow_pcie) or not any(signature):
                continue  # neighbours and links over PCIe are beyond this view
            self.kind_of[name] = kinds.setdefault(signature, len(kinds))
            self.linked = self.linked or groups
        self._forms = {kind: signature for signature, kind in kinds.items()}
        self.kinds = len(kinds)
        self.size = [max(_share_of(form) for offer in self._forms[kind] for _model, form in offer) for kind in range(self.kinds)]

    # --- types --------------------------------------------------------------------------------------

    def _sort_gpus(self) -> None:
        boards: dict[tuple[int, str], int] = {}
        for name, offer in self._offer.items():
            node = self.cluster.nodes[name]
            groups: set[ReplicaId] = set()
            for state in node.gpus:
                model = state.gpu.model
                if state.gpu.excluded:
                    continue
                board = boards.setdefault((offer, model.key), len(boards))
                if board == len(self.boards):
                    self.boards.append(self._board(offer, state))
                where = (name, state.gpu.nvlink_set or "") if self.linked else ("", "")
                self._resource(Type(where, board))
                found = self._type(Type(where, board), node, state)
                if found is None:
                    continue
                gpus: tuple[GpuState, ...] = (state,)
                if found.group:
                    (replica,) = state.tenants
                    if replica in groups:
                        continue
                    groups.add(replica)
                    gpus = tuple(node.gpus[index] for index in node.placed[replica].gpus)
                self.places.setdefault(self._resource(found), []).append((node, gpus))

    def _board(self, offer: int, state: GpuState) -> Board:
        accepted: dict[Form, list[int]] = {}
        for kind in range(self.kinds):
            for model, form in self._forms[kind][offer]:
                if model == state.gpu.model.key:
                    accepted.setdefault(form, []).append(kind)
        return Board(state.gpu.model, state.layouts, {form: tuple(kinds) for form, kinds in sorted(accepted.items())})

    def _resource(self, found: Type) -> int:
        return self.types.setdefault(found, self.kinds + len(self.types))

    def _type(self, empty: Type, node: NodeState, state: GpuState) -> Type | None:
        layout: Layout = EMPTY
        units = 0
        items: list[Item] = []
        for replica in sorted(state.tenants):
            assignment = node.placed[replica]
            form = _form(assignment.option)
            if replica[0] in self.kind_of:
                items.append(Item(self.kind_of[replica[0]], form, assignment.start))
            elif form.gpus:
                return None
            elif form.share:
                units += WHOLE // form.share
            else:
                layout = add(layout, assignment.start, form.profile)
        return empty._replace(layout=layout, units=units, items=tuple(sorted(items)))

    # --- columns ------------------------------------------------------------------------------------

    def _columns_of(self, found: Type) -> None:
        source = self.types[found]
        if found.group:
            # A group that goes elsewhere leaves GPUs that can be cut.
            gives = {source: -1, self.empty(found): found.group, found.items[0].kind: -1}
            self._add(Column(((source, 1),), found.items, (), gives))
            return
        best: dict[tuple[tuple[int, int], ...], Column] = {}
        for kept in _subsets(found.items):
            removed = tuple((Counter(found.items) - Counter(kept)).elements())
            for fill in self._fills(found, kept):
                gives = _count(removed, fill)
                vector = tuple(sorted(gives.items()))
                if any(amount > 0 for _resource, amount in vector) and (vector not in best or len(best[vector].removed) > len(removed)):
                    best[vector] = Column(((source, 1),), removed, fill, gives)
        chosen: list[Column] = []
        for column in sorted(best.values(), key=lambda column: (column.moves, -sum(column.gives.values()))):
            if not any(_dominates(other.gives, column.gives) for other in chosen):
                chosen.append(column)
        for column in chosen:
            self._add(column._replace(gives=column.gives | {source: -1}))

    def _columns_of_groups(self) -> None:
        """Every way to clear GPUs of a set for a group: empty ones are taken first, since those that are not could be cut as well."""
        sets: dict[tuple[Where, int], list[Type]] = {}
        for found in self.types:
            if found.where[1] and not found.layout and not found.units:
                sets.setdefault((found.where, found.board), []).append(found)
        for (_where, board), types in sorted(sets.items()):
            accepted = [(form, kind) for form, kinds in self.boards[board].accepted.items() if form.gpus > 1 for kind in kinds]
            for size in sorted({form.gpus for form, _kind in accepted}):
                for takes in self._choices(sorted(types), size):
                    removed = tuple(item for found, number in takes for _again in range(number) for item in found.items)
                    left = sum(number * max(1, found.group) for found, number in takes) - size
                    for form, kind in accepted:
                        if form.gpus == size:
                            gives = Counter({self.types[found]: -number for found, number in takes})
                            gives[self.empty(types[0])] += left
                            for item in removed:
                                gives[item.kind] -= 1
                            gives[kind] += 1
                            if gives[kind] > 0:
                                taken = tuple((self.types[found], number) for found, number in takes)
                                self._add(Column(taken, removed, ((kind, form),), {key: gives[key] for key in sorted(gives) if gives[key]}))

    def _choices(self, types: list[Type], size: int) -> Iterator[tuple[tuple[Type, int], ...]]:
        """Sets of GPUs and groups that are just enough for a group of a size."""
        if size <= 0:
            yield ()
            return
        if not types:
            return
        first, each = types[0], max(1, types[0].group)
        # Empty GPUs may come from groups that go elsewhere, too.
        most = size if not first.items else len(self.places.get(self.types[first], ()))
        for number in range(min(most, -(-size // each)) + 1):
            for rest in self._choices(types[1:], size - number * each):
                yield ((first, number), *rest) if number else rest

    def _add(self, column: Column) -> None:
        if len(self.columns) == MOST_COLUMNS:
            raise TooMany
        self.columns.append(column)

    def _fills(self, found: Type, kept: tuple[Item, ...]) -> list[tuple[tuple[int, Form], ...]]:
        """Ways to use what is left of a GPU to the full."""
        layout = found.layout
        units = found.units
        for item in kept:
            if item.form.profile:
                layout = add(layout, item.start, item.form.profile)
            elif item.form.share:
                units += WHOLE // item.form.share
            else:
                return []
        key = (found.board, layout, units, not kept)
        if key not in self._fills_of:
            self._fills_of[key] = list(self._every_fill(self.boards[found.board], layout, units))
        return self._fills_of[key]

    def _every_fill(self, board: Board, layout: Layout, units: int) -> Iterator[tuple[tuple[int, Form], ...]]:
        accepted = board.accepted
        if not layout and not units and Form("", 0, 1) in accepted:
            yield from (((kind, Form("", 0, 1)),) for kind in accepted[Form("", 0, 1)])
        if not units:
            forms = {form.profile: form for form in accepted if form.profile}
            fills: set[tuple[tuple[int, Form], ...]] = set()
            for names in _maximal(board.layouts, layout, tuple(sorted(forms))):
                found: set[tuple[tuple[int, Form], ...]] = {()}
                for name in names:
                    found = {tuple(sorted((*fill, (kind, forms[name])))) for fill in found for kind in accepted[forms[name]]}
                fills |= found
            yield from sorted(fill for fill in fills if fill)
        if not layout:
            shares = [(kind, form) for form, kinds in accepted.items() if form.share for kind in kinds]
            yield from (fill for fill in _share_fills(shares, WHOLE - units) if fill)


def _forms(options: Iterable[Option]) -> tuple[tuple[str, Form], ...]:
    return tuple(sorted({(option.model.key, _form(option)) for option in options}))


def _form(option: Option) -> Form:
    return Form(option.profile.name if option.profile else "", option.share, option.gpus)


def _share_of(form: Form) -> float:
    """How much of a GPU, or how many, a device takes."""
    if form.profile:
        return int(form.profile.partition("g")[0]) / 8
    return float(form.gpus) if form.gpus else 1 / form.share


def _count(removed: Iterable[Item], added: Iterable[tuple[int, Form]]) -> dict[int, int]:
    gives: dict[int, int] = {}
    for kind, _form_added in added:
        gives[kind] = gives.get(kind, 0) + 1
    for item in removed:
        gives[item.kind] = gives.get(item.kind, 0) - 1
    return {resource: amount for resource, amount in sorted(gives.items()) if amount}


def _dominates(one: Mapping[int, int], other: Mapping[int, int]) -> bool:
    return all(one.get(resource, 0) >= amount for resource, amount in other.items()) and all(
        amount >= 0 or resource in other for resource, amount in one.items()
    )


def _subsets(items: tuple[Item, ...]) -> Iterator[tuple[Item, ...]]:
    counts = sorted(Counter(items).items())
    for numbers in product(*(range(number + 1) for _item, number in counts)):
        yield tuple(item for (item, _most), number in zip(counts, numbers, strict=True) for _again in range(number))


def _maximal(layouts: Layouts, layout: Layout, names: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Sets of profiles that can be added to a layout, after which nothing else can."""
    found: set[tuple[str, ...]] = set()
    seen = {layout}
    waiting: list[tuple[Layout, tuple[str, ...]]] = [(layout, ())]
    while waiting:
        now, added = waiting.pop()
        last = True
        for name in names:
            for start in layouts.starts(now, name):
                last = False
                after = add(now, start, name)
                if after not in seen:
                    seen.add(after)
                    waiting.append((after, tuple(sorted((*added, name)))))
        if last:
            found.add(added)
    return found


def _share_fills(shares: list[tuple[int, Form]], units: int) -> Iterator[tuple[tuple[int, Form], ...]]:
    """Sets of shares that leave no room for another."""
    if not shares:
        yield ()
        return
    share, rest = shares[0], shares[1:]
    each = WHOLE // share[1].share
    most = units // each
    for number in range(most if not rest else 0, most + 1):
        for fill in _share_fills(rest, units - number * each):
            yield (*(share for _again in range(number)), *fill)
