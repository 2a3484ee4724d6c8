# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs a selection of the declaration means. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _mig_names, _pci
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Wanted
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_state import Gpu


@dataclass(frozen=True)
class Declared:
    """What is declared for one GPU."""

    mig: bool
    wanted: tuple[Wanted, ...]
    where: str


def declared(geometry: list[dict[str, Any]], gpus: list[Gpu], unlisted: str, allow_empty: bool) -> dict[str, Declared]:
    """PCI address to declaration. Every mistake of the declaration is found before anything is touched."""
    found: dict[str, Declared] = {}
    for number, entry in enumerate(geometry):
        where = f"geometry[{number}]"
        entry_declares = _declaration(entry, where, allow_empty)
        for gpu in _select(entry.get("gpus"), gpus, where):
            if gpu.pci_address in found:
                raise InvalidInput(f"{where}: {gpu.label} is already declared by {found[gpu.pci_address].where}; name each GPU once.")
            if entry_declares.mig and not gpu.capable:
                raise InvalidInput(
                    f"{where}: {gpu.label} has no MIG; take it out of the selection, or select `all`, which means all MIG-capable GPUs."
                )
            if entry_declares.mig or gpu.capable:
                found[gpu.pci_address] = entry_declares
    if unlisted == "disable":
        for gpu in gpus:
            if gpu.capable and gpu.pci_address not in found:
                found[gpu.pci_address] = Declared(False, (), "unlisted")
    return found


def _declaration(entry: dict[str, Any], where: str, allow_empty: bool) -> Declared:
    profiles = entry.get("profiles")
    mig = entry.get("mig")
    if mig is None:
        mig = True
    wanted = tuple(_mig_names.parse_all(profiles if profiles is not None else [], where))
    if not mig:
        if wanted:
            raise InvalidInput(f"{where}: `mig: false` and profiles exclude each other; remove one of them.")
        return Declared(False, (), where)
    if not wanted and not allow_empty:
        raise InvalidInput(
            f"{where}: MIG mode without instances runs nothing and confuses its users; "
            "name profiles, write `mig: false`, or set allow_empty."
        )
    return Declared(True, wanted, where)


def items(selection: Any, where: str) -> list[str]:
    """The names in a selection."""
    if selection is None or selection == "":
        raise InvalidInput(f"{where}: `gpus` is missing; write all, an index, a UUID, a PCI address, or a list of these.")
    return [str(item).strip() for item in (selection if isinstance(selection, (list, tuple)) else str(selection).split(","))]


def _select(selection: Any, gpus: list[Gpu], where: str) -> list[Gpu]:
    names = items(selection, where)
    if names == ["all"]:
        capable = [gpu for gpu in gpus if gpu.capable]
        if not capable:
            models = ", ".join(sorted({gpu.name for gpu in gpus})) or "none at all"
            raise InvalidInput(f"{where}: no GPU of this node has MIG (its GPUs are {models}); remove the selection.")
        return capable
    return [one(name, gpus, where) for name in names]


def one(text: str, gpus: list[Any], where: str) -> Any:
    """The GPU of a name: index, UUID or PCI address."""
    address = _pci.normalise(text)
    for gpu in gpus:
        if text in (str(gpu.index), gpu.uuid) or (address and address == gpu.pci_address):
            return gpu
    known = ", ".join(f"{gpu.index} ({gpu.pci_address})" for gpu in gpus) or "none"
    raise InvalidInput(f"{where}: this node has no GPU {text!r}; its GPUs are {known}.")
