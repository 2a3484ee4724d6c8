# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The linear program bounds what whole columns cost, and says when nothing helps."""

from __future__ import annotations

from itertools import product

from ansible_collections.heterogpu.inference.plugins.plugin_utils import _simplex
from hypothesis import given, settings
from hypothesis import strategies as st

RESOURCES = 3
Columns = list[tuple[int, dict[int, int]]]


def cheapest(columns: Columns, need: list[int], most: int) -> int | None:
    """The least costs of whole columns, each taken so often at most."""
    best: int | None = None
    for numbers in product(range(most + 1), repeat=len(columns)):
        gives = [
            sum(number * gives.get(resource, 0) for number, (_cost, gives) in zip(numbers, columns, strict=True))
            for resource in range(RESOURCES)
        ]
        if all(given >= wanted for given, wanted in zip(gives, need, strict=True)):
            cost = sum(number * cost for number, (cost, _gives) in zip(numbers, columns, strict=True))
            best = cost if best is None else min(best, cost)
    return best


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.dictionaries(st.integers(0, RESOURCES - 1), st.integers(-2, 3), min_size=1)), min_size=1, max_size=4
    ),
    st.lists(st.integers(-3, 4), min_size=RESOURCES, max_size=RESOURCES),
)
def test_no_whole_columns_cost_less(columns: Columns, need: list[int]) -> None:
    found = _simplex.solve(columns, need)
    best = cheapest(columns, need, 4)
    if found is None:
        assert best is None
        return
    assert best is None or found.least <= best + 1e-6
    for cost, gives in columns:
        assert sum(found.prices[resource] * amount for resource, amount in gives.items()) <= cost + 1e-6
    for resource in range(RESOURCES):
        assert sum(amount * columns[index][1].get(resource, 0) for index, amount in found.amounts.items()) >= need[resource] - 1e-6
    assert abs(sum(amount * columns[index][0] for index, amount in found.amounts.items()) - found.least) < 1e-6


def test_what_nothing_gives_cannot_be_met() -> None:
    assert _simplex.solve([(1, {0: 1, 1: -1})], [1, 0, 0]) is None
    assert _simplex.solve([(1, {0: 1, 1: -1})], [1, -1, 0]) is not None
