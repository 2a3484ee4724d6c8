# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Search for the fewest moves that make room. PRIVATE: internal to the collection, may change at any time.

Iterative deepening: all combinations of columns whose costs stay within one bound are tried before the next bound. Prices
from the linear program say what the rest costs at least, so that a column counts with what it costs beyond its worth. The
search stops after a fixed number of steps (never after a time): the same input gives the same plan on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _simplex
from ._columns import Problem

SLACK = 1e-6
STEPS = 10_000  # for one bound
STEPS_OF_RUN = 50_000  # for all bounds
PRICES = 100  # what so many entries of a linear program cost: one step


class Search:
    """Meets a need with as few moves as possible."""

    def __init__(self, problem: Problem, steps: int):
        self._problem = problem
        self.budget = steps
        self.cut_short = False  # whether something may have been missed
        kinds = problem.kinds
        self._price = 20 + len(problem.columns) * problem.resources // PRICES
        self._rows = [(column.moves, column.gives) for column in problem.columns]
        self._start = [len(problem.places.get(resource, ())) for resource in range(kinds, problem.resources)]
        # Kinds of groups first, larger ones before smaller ones: what is left for others is known then.
        self._order = sorted(range(kinds), key=lambda kind: (-problem.size[kind], kind))
        # Sets that are alike offer the same; of a column, which of its like it is.
        places = sorted({found.where for found in problem.types})
        self._set_of = [0] * kinds + [places.index(found.where) for found in problem.types]
        alike: dict[Any, int] = {}
        like = [*range(kinds), *(alike.setdefault(found._replace(where=("", "")), kinds + len(alike)) for found in problem.types)]
        shapes: dict[Any, int] = {}
        self._shapes: list[tuple[int, int]] = []  # set and shape of every column
        for column in problem.columns:
            shape = tuple(sorted((like[resource], amount) for resource, amount in column.gives.items()))
            self._shapes.append((self._set_of[column.takes[0][0]], shapes.setdefault(shape, len(shapes))))
        self._members: list[list[tuple[int, int]]] = [[] for _place in places]
        for found, resource in problem.types.items():
            self._members[places.index(found.where)].append((like[resource], resource - kinds))
        for members in self._members:
            members.sort()

    def run(self, wanted: list[int], most_moves: int) -> list[int] | None:
        """Return the columns that place so many replicas of the kinds with the fewest moves, or None."""
        if self.budget <= 0:
            self.cut_short = True
            return None
        self.budget -= self._price
        solution = _simplex.solve(self._rows, [*wanted, *(-count for count in self._start)])
        if solution is None or solution.least > most_moves + SLACK:
            return None
        self._worth(solution.prices)
        self._least = solution.least
        # What the solution takes as a whole is a good beginning; without it, everything is tried.
        whole = [index for index, amount in solution.amounts.items() for _again in range(int(amount + SLACK))]
        self._bound = max(0, -int(-(solution.least - SLACK) // 1))
        enough = max(0, self.budget - STEPS_OF_RUN)
        while self._bound <= most_moves and self.budget > enough:
            self._next = most_moves + 1.0
            if (whole and self._search(wanted, whole, STEPS // 4)) or self._search(wanted, [], STEPS):
                return self._trail
            # Without a branch that was too expensive, there is nothing more for the next bound.
            self._bound = max(self._bound + 1, -int(-(self._next - SLACK) // 1))
        self.cut_short = self.cut_short or self._bound <= most_moves
        return None

    def _search(self, wanted: list[int], begin: list[int], most_steps: int) -> bool:
        self._need = list(wanted)
        self._counts = list(self._start)
        self._likeness: list[Any] = [None] * len(self._members)
        self._seen: dict[Any, float] = {}
        self._trail: list[int] = list(begin)
        for index in begin:
            self._apply(index, 1)
        if min(self._counts, default=0) < 0:
            return False
        self._steps = steps = min(most_steps, self.budget)
        found = self._visit(self._bound - self._least + SLACK - sum(self._extra[index] for index in begin), -1, 0)
        self.budget -= steps - max(0, self._steps)
        if self._steps < 0 and not found and not begin:
            self.cut_short = True
            self._next = self._bound + 1.0
        return found

    def _worth(self, prices: list[float]) -> None:
        """Order the columns by what they cost beyond what they give is worth."""
        kinds = self._problem.kinds
        extra = [moves - sum(prices[resource] * amount for resource, amount in gives.items()) for moves, gives in self._rows]
        self._extra = [max(0.0, value) for value in extra]
        self._for_kind: list[list[int]] = [[] for _kind in range(kinds)]
        self._emptying: list[int] = []
        for index in sorted(range(len(extra)), key=lambda index: (round(self._extra[index], 6), self._rows[index][0], index)):
            for resource, amount in self._rows[index][1].items():
                if amount > 0 and resource < kinds:
                    self._for_kind[resource].append(index)
            if not self._problem.columns[index].added:
                self._emptying.append(index)

    # --- depth first ----------------------------------------------------------------------------------

    def _visit(self, left: float, before: int, first: int) -> bool:
        self._steps -= 1
        if self._steps < 0:
            return False
        kind = next((kind for kind in self._order if self._need[kind] > 0), None)
        if kind is None:
            return True
        if kind != before:
            first = 0  # columns for one kind are taken in their order, since any order would do
        key = (tuple(self._need), tuple(self._counts), first)
        if self._seen.get(key, -1.0) >= left or (before not in {-1, kind} and not self._worthwhile()):
            return False
        self._seen[key] = left
        for position, index in self._choices(kind, left, first):
            self._apply(index, 1)
            self._trail.append(index)
            if self._visit(left - self._extra[index], kind, position):
                return True
            self._trail.pop()
            self._apply(index, -1)
            if self._steps < 0:
                return False
        return False

    def _worthwhile(self) -> bool:
        """Whether the rest is possible within the bound, by prices for what is left now."""
        self._steps -= self._price
        need = [*self._need, *(-count for count in self._counts)]
        solution = _simplex.solve(self._rows, need)
        if solution is None:
            return False
        least = solution.least + sum(self._rows[index][0] for index in self._trail)
        if least <= self._bound + SLACK:
            return True
        self._next = min(self._next, least)
        return False

    def _apply(self, index: int, sign: int) -> None:
        kinds = self._problem.kinds
        for resource, amount in self._rows[index][1].items():
            if resource < kinds:
                self._need[resource] -= sign * amount
            else:
                self._counts[resource - kinds] += sign * amount
        self._likeness[self._shapes[index][0]] = None

    def _choices(self, kind: int, left: float, first: int) -> Iterator[tuple[int, int]]:
        """Columns that can be used now, the cheapest first, with their positions; of those alike, one."""
        seen: set[Any] = set()
        kinds = self._problem.kinds
        for columns, begin in ((self._for_kind[kind], first), (self._emptying, 0)):
            for position in range(begin, len(columns)):
                index = columns[position]
                if self._extra[index] > left:
                    self._next = min(self._next, self._bound + SLACK - left + self._extra[index])
                    break
                if all(self._counts[resource - kinds] >= number for resource, number in self._problem.columns[index].takes):
                    where, shape = self._shapes[index]
                    key = (shape, self._alike(where))
                    if key not in seen:
                        seen.add(key)
                        yield (position if columns is not self._emptying else 0), index

    def _alike(self, where: int) -> Any:
        found = self._likeness[where]
        if found is None:
            counts = self._counts
            found = self._likeness[where] = tuple((like, counts[place]) for like, place in self._members[where] if counts[place])
        return found
