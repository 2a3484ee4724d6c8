# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes copies of an inventory that differ from it in one place."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Path = tuple[Any, ...]
DELETE = object()

WRONG: tuple[Any, ...] = (
    None, "", " ", "x", "null", "-1", "1e400", "8; rm", "ünïcode\n", 0, -1, 1, 7, 65536, 10**12, 10**30, 0.5, -0.0,
    float("inf"), float("nan"),
    True, False, [], [None], [[]], [{}], ["x"], [0], [1], {}, {"x": 1}, {1: 2}, {"": None}, "true", "0-3",
)  # fmt: skip


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """Every place of a document, the whole excepted."""
    if at:
        yield at
    if isinstance(value, dict):
        for key in value:
            yield from paths(value[key], (*at, key))
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from paths(entry, (*at, index))


def mutants(document: dict[str, Any]) -> Iterator[tuple[Path, str, dict[str, Any]]]:
    """Yield where, what kind of fault, and the document with that fault."""
    for path in paths(document):
        yield path, "deleted", _with(document, path, DELETE)
        for wrong in WRONG:
            yield path, f"set to {wrong!r}", _with(document, path, wrong)
        value = _at(document, path)
        if isinstance(value, dict):
            yield path, "unknown key", _with(document, path, value | {"unknown": 1})
            for key in value:
                yield (
                    path,
                    f"misspelt {key}",
                    _with(document, path, {f"{name}x" if name == key else name: entry for name, entry in value.items()}),
                )
        elif isinstance(value, list):
            yield path, "doubled", _with(document, path, value + value)
            yield path, "shortened", _with(document, path, value[:-1])
            yield path, "reversed", _with(document, path, value[::-1])
            yield path, "wrapped", _with(document, path, [value])
        elif isinstance(value, str):
            yield path, "longer", _with(document, path, value + "x")
            yield path, "upper case", _with(document, path, value.upper())
            yield path, "list", _with(document, path, [value])
        elif isinstance(value, (int, float)):
            yield path, "as text", _with(document, path, str(value))
            yield path, "doubled", _with(document, path, value * 2)
            yield path, "negative", _with(document, path, -value)
            yield path, "fraction", _with(document, path, value + 0.5)


def _at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def _with(document: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    parent = _at(changed, path[:-1])
    if value is DELETE:
        del parent[path[-1]]
    else:
        parent[path[-1]] = copy.deepcopy(value)
    return changed
