# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lower bounds by linear programming. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

EPSILON = 1e-7
PIVOTS = 2000


class Solution(NamedTuple):
    """What fractions of columns would do, and the prices that follow."""

    least: float  # what meeting the need costs at least
    prices: list[float]
    amounts: dict[int, float]  # of the columns


def solve(columns: Sequence[tuple[int, Mapping[int, int]]], need: Sequence[int]) -> Solution | None:
    """Minimise the costs of columns (cost, what one yields) taken, so that the need of everything is met.

    With prices p, p x need is a lower bound of the costs of meeting any need, since p x yield <= cost for every column.
    None when no combination, not even of fractions, meets the need. The dual simplex method, on sparse rows: costs are
    never negative, so that taking nothing is where it starts.
    """
    rows: list[dict[int, float]] = [{} for _need in need]
    cost: dict[int, float] = {}
    for index, (price, gives) in enumerate(columns):
        if price:
            cost[index] = float(price)
        for resource, amount in gives.items():
            rows[resource][index] = -float(amount)
    slack = len(columns)
    for resource in range(len(need)):
        rows[resource][slack + resource] = 1.0
    right = [-float(amount) for amount in need]
    basis = [slack + resource for resource in range(len(need))]
    for _pivot in range(PIVOTS):
        out = min(range(len(need)), key=lambda resource: (right[resource], resource), default=-1)
        if out < 0 or right[out] >= -EPSILON:
            prices = [max(0.0, cost.get(slack + resource, 0.0)) for resource in range(len(need))]
            amounts = {index: max(0.0, amount) for index, amount in sorted(zip(basis, right, strict=True)) if index < slack}
            return Solution(sum(price * amount for price, amount in zip(prices, need, strict=True)), prices, amounts)
        row = rows[out]
        into = min(
            ((cost.get(index, 0.0) / -value, value, index) for index, value in row.items() if value < -EPSILON), default=(0.0, 0.0, -1)
        )[2]
        if into < 0:
            return None
        _pivot_on(rows, right, cost, out, into)
        basis[out] = into
    return Solution(0.0, [0.0 for _need in need], {})  # a bound of nothing is still one


def _pivot_on(rows: list[dict[int, float]], right: list[float], cost: dict[int, float], out: int, into: int) -> None:
    row = rows[out]
    pivot = row[into]
    for index in row:
        row[index] /= pivot
    right[out] /= pivot
    entries = list(row.items())
    for other, target in enumerate(rows):
        factor = target.get(into)
        if factor is not None and other != out:
            _subtract(target, entries, factor)
            target.pop(into, None)
            right[other] -= factor * right[out]
    factor = cost.get(into)
    if factor is not None:
        _subtract(cost, entries, factor)
        cost.pop(into, None)


def _subtract(target: dict[int, float], entries: list[tuple[int, float]], factor: float) -> None:
    for index, value in entries:
        left = target.get(index, 0.0) - factor * value
        if -1e-11 < left < 1e-11:
            target.pop(index, None)
        else:
            target[index] = left
