# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The small language in which the inventory is described, and the check of a value against it.

PRIVATE: internal to the collection, may change at any time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

_TYPE_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "list": "a list",
    "dict": "a mapping",
    "map": "a mapping",
}


@dataclass(frozen=True)
class Field:
    """One variable, or one key of a variable."""

    name: str
    type: str  # string, integer, number, boolean, list, dict (known keys), map (free keys), either
    help: str
    default: Any = None
    default_text: str = ""  # what happens when it is left out, where that is not a plain value
    required: bool = False
    unit: str = ""
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    pattern: str = ""
    items: Field | None = None  # elements of a list, values of a map
    keys: tuple[Field, ...] = ()
    either: tuple[Field, ...] = ()
    exactly_one_key: bool = False
    not_empty: bool = False
    unique_by: str = ""
    scope: str = "all"  # all (group_vars/all) or node (a pool's group_vars, or host_vars)
    example: Any = None


@dataclass(frozen=True, order=True)
class Fault:
    """A value that its description does not allow."""

    path: str
    sentence: str


def number(value: Any) -> float | None:
    """Return the number a value stands for; YAML 1.1 reads 8.03e9 as text, so text that is a number counts."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value if isfinite(value) else None
    if isinstance(value, str) and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value.strip()):
        parsed = float(value)
        return int(parsed) if re.fullmatch(r"[+-]?\d+", value.strip()) else parsed
    return None


def faults(field: Field, value: Any, path: str = "") -> Iterator[Fault]:
    """Yield every fault of a value, deepest first, each with the path of the key that has it."""
    path = path or field.name
    if field.type == "either":
        yield from _either_faults(field, value, path)
        return
    if not _has_type(field.type, value):
        quotes = " in quotes" if field.type == "string" and number(value) is not None else ""
        yield Fault(path, f"{path} is {_shown(value)}, but must be {_expected(field)}{quotes}.")
        return
    if field.type in {"integer", "number"}:
        yield from _number_faults(field, value, path)
    elif field.type == "string":
        yield from _string_faults(field, value, path)
    elif field.type == "list":
        yield from _list_faults(field, value, path)
    elif field.type == "map":
        yield from _map_faults(field, value, path)
    elif field.type == "dict":
        yield from _dict_faults(field, value, path)


def _has_type(kind: str, value: Any) -> bool:
    if kind == "integer":
        parsed = number(value)
        return parsed is not None and float(parsed).is_integer()
    if kind == "number":
        return number(value) is not None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str)
    if kind == "list":
        return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    return isinstance(value, Mapping)


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    text = repr(str(value) if isinstance(value, str) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _expected(field: Field) -> str:
    if field.choices:
        return "one of " + ", ".join(str(choice) for choice in field.choices)
    words = _TYPE_WORDS[field.type]
    if field.unit:
        words += f" in {field.unit}"
    if field.minimum is not None and field.maximum is not None:
        words += f" from {figure(field.minimum)} to {figure(field.maximum)}"
    elif field.minimum is not None:
        words += f" of {figure(field.minimum)} or more"
    return words


def figure(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def _number_faults(field: Field, value: Any, path: str) -> Iterator[Fault]:
    parsed = number(value)
    if parsed is None:
        raise AssertionError("checked by the schema before")
    too_small = field.minimum is not None and parsed < field.minimum
    too_large = field.maximum is not None and parsed > field.maximum
    if too_small or too_large or (field.choices and parsed not in field.choices):
        yield Fault(path, f"{path} is {_shown(value)}, but must be {_expected(field)}.")


def _string_faults(field: Field, value: str, path: str) -> Iterator[Fault]:
    if field.choices:
        if value not in field.choices:
            yield Fault(path, f"{path} is {_shown(value)}, but must be {_expected(field)}.")
    elif field.pattern and not re.fullmatch(field.pattern, value):
        yield Fault(path, f"{path} is {_shown(value)}, but must look like {field.example!r}.")
    elif not value.strip():
        yield Fault(path, f"{path} is empty, but must be {_expected(field)}.")


def _list_faults(field: Field, value: Sequence[Any], path: str) -> Iterator[Fault]:
    if field.not_empty and not value:
        yield Fault(path, f"{path} is an empty list, but needs at least one entry.")
    if field.items is None:
        return
    seen: dict[Any, int] = {}
    for index, entry in enumerate(value):
        label = str(index)
        if field.unique_by and isinstance(entry, Mapping):
            identity = entry.get(field.unique_by)
            if isinstance(identity, (str, int)):
                label = str(identity)
                if identity in seen:
                    yield Fault(f"{path}[{label}]", f"{path} has two entries with the {field.unique_by} {identity!r}; give each its own.")
                seen[identity] = index
        yield from faults(field.items, entry, f"{path}[{label}]")


def _map_faults(field: Field, value: Mapping[Any, Any], path: str) -> Iterator[Fault]:
    if field.not_empty and not value:
        yield Fault(path, f"{path} is an empty mapping, but needs at least one entry.")
    for key, entry in value.items():
        if not isinstance(key, str) or (field.pattern and not re.fullmatch(field.pattern, key)):
            yield Fault(path, f"{path} has the key {_shown(key)}, but a name there must look like {field.example!r}.")
        elif field.items is not None:
            yield from faults(field.items, entry, f"{path}.{key}")


def _dict_faults(field: Field, value: Mapping[Any, Any], path: str) -> Iterator[Fault]:
    known = {key.name: key for key in field.keys}
    for key in value:
        if key not in known:
            yield Fault(f"{path}.{key}", f"{path} has the unknown key {_shown(key)}; the keys are {', '.join(sorted(known))}.")
    if field.exactly_one_key and len(set(value) & set(known)) != 1:
        yield Fault(path, f"{path} must have exactly one of the keys {', '.join(sorted(known))}, but has {_shown(dict(value))}.")
    for key in field.keys:
        if key.name in value:
            entry = value[key.name]
            if entry is None and not key.required:
                yield Fault(f"{path}.{key.name}", f"{path}.{key.name} is empty; give it {_wanted(key)} or leave the key out.")
            else:
                yield from faults(key, entry, f"{path}.{key.name}")
        elif key.required:
            yield Fault(f"{path}.{key.name}", f"{path} lacks the key {key.name}, {_wanted(key)}: {key.help}")


def _wanted(field: Field) -> str:
    return " or ".join(_expected(choice) for choice in field.either) if field.type == "either" else _expected(field)


def _either_faults(field: Field, value: Any, path: str) -> Iterator[Fault]:
    fitting = [choice for choice in field.either if _has_type(choice.type, value)]
    if not fitting:
        yield Fault(path, f"{path} is {_shown(value)}, but must be {_wanted(field)}.")
        return
    first: list[Fault] = []
    for choice in fitting:
        found = list(faults(choice, value, path))
        if not found:
            return
        first = first or found
    yield from first
