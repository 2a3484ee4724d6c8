# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which settings are declared for which GPU. PRIVATE: internal to the collection, may change at any time.

Every mistake that shows without asking a GPU is found here, before anything is touched.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _mig_select
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput
from ansible_collections.heterogpu.inference.plugins.module_utils._settings_state import (
    CLOCKS,
    COMPUTE_MODES,
    ORDER,
    UNLOCKED,
    Declared,
    Gpu,
)

DEFAULT = "default"


def declared(settings: list[dict[str, Any]], gpus: list[Gpu]) -> dict[str, Declared]:
    """PCI address to declaration."""
    found: dict[str, Declared] = {}
    for number, entry in enumerate(settings):
        where = f"settings[{number}]"
        one = Declared(where, _values(entry, where))
        for gpu in _select(entry.get("gpus"), gpus, where):
            if gpu.pci_address in found:
                raise InvalidInput(f"{where}: {gpu.label} is already declared by {found[gpu.pci_address].where}; name each GPU once.")
            found[gpu.pci_address] = one
    return found


def _select(selection: Any, gpus: list[Gpu], where: str) -> list[Gpu]:
    items = _mig_select.items(selection, where)
    return list(gpus) if items == ["all"] else [_mig_select.one(item, gpus, where) for item in items]


def _values(entry: dict[str, Any], where: str) -> dict[str, Any]:
    unknown = sorted(set(entry) - {"gpus", *ORDER})
    if unknown:
        raise InvalidInput(f"{where}: there is no setting {unknown[0]!r}; the settings are {', '.join(ORDER)}.")
    values = {name: _value(name, entry[name], where) for name in ORDER if entry.get(name) is not None}
    if not values:
        raise InvalidInput(f"{where}: no setting is declared; name at least one of {', '.join(ORDER)}, or remove the entry.")
    return values


def _value(name: str, value: Any, where: str) -> Any:
    if name in CLOCKS:
        return _clocks(name, value, where)
    if name == "power_limit_w":
        return _power(value, where)
    if name == "compute_mode":
        if value not in COMPUTE_MODES:
            raise InvalidInput(f"{where}: compute_mode is {value!r}; write one of {', '.join(COMPUTE_MODES)}.")
        return value
    if not isinstance(value, bool):
        raise InvalidInput(f"{where}: {name} is {value!r}; write true or false.")
    return value


def _power(value: Any, where: str) -> Any:
    """Milliwatts, NVML's unit, or `default`."""
    if value == DEFAULT:
        return value
    try:
        watts = float(value) if not isinstance(value, bool) else 0.0
    except (TypeError, ValueError):
        watts = 0.0
    if not 0 < watts < 1e6:
        raise InvalidInput(f"{where}: power_limit_w is {value!r}; write a number of watts, or `default`.")
    return round(watts * 1000)


def _clocks(name: str, value: Any, where: str) -> tuple[int, ...]:
    """Lowest and highest clock in MHz; a single number is both."""
    if value == "unlocked":
        return UNLOCKED
    items = value if isinstance(value, (list, tuple)) else [value]
    numbers = [_whole(item) for item in items]
    pair = tuple(number for number in (numbers * 2 if len(numbers) == 1 else numbers) if number)
    if len(pair) != 2 or len(numbers) > 2 or pair[0] > pair[1]:
        raise InvalidInput(
            f"{where}: {name} is {value!r}; write the lowest and the highest clock in MHz such as [1200, 1410], one number for both, "
            "or `unlocked`."
        )
    return pair


def _whole(item: Any) -> int | None:
    text = str(item).strip()
    return int(text) if text.isdigit() and not isinstance(item, bool) else None
