# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health faults of GPUs: for the driver's library, and where the kernel would show them."""

from __future__ import annotations

import json
import os
from typing import Any

from . import modules, mounts, pci
from .tree import Tree

KMSG = "/dev/kmsg"
NUMBERS = (
    "remapped_rows_correctable",
    "remapped_rows_uncorrectable",
    "retired_pages_single_bit",
    "retired_pages_double_bit",
    "ecc_corrected",
    "ecc_uncorrected",
    "nvlink_errors",
    "pcie_replays",
    "pcie_generation",
    "pcie_width",
    "temperature_c",
    "clocks_event_reasons",
)
SWITCHES = ("lost", "remapped_rows_pending", "remapped_rows_failed", "retired_pages_pending")
LISTS = ("nvlinks_down", "xids")


class WrongFault(Exception):
    pass


def parse(words: list[str]) -> dict[str, Any]:
    """KEY=VALUE words. Lists are separated by commas, switches are on or off."""
    faults: dict[str, Any] = {}
    for word in words:
        key, _equals, text = word.partition("=")
        try:
            if key in NUMBERS:
                faults[key] = int(text, 0)
            elif key in LISTS:
                faults[key] = [int(part) for part in text.split(",") if part]
            elif key in SWITCHES and text in ("on", "off", ""):
                faults[key] = text != "off"
            else:
                raise ValueError
        except ValueError:
            known = ", ".join(sorted((*NUMBERS, *SWITCHES, *LISTS)))
            raise WrongFault(f"{word!r} is no health fault; write KEY=VALUE with one of {known}.") from None
    return faults


def read() -> dict[str, dict[str, Any]]:
    path = f"{modules.RUN}/health.json"
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def write(health: dict[str, dict[str, Any]]) -> None:
    """The faults of all GPUs, in the place of those before."""
    path = f"{modules.RUN}/health.json"
    with open(f"{path}.new", "w", encoding="utf-8") as stream:
        json.dump(health, stream)
    os.replace(f"{path}.new", path)
    _show_links(Tree(f"{modules.RUN}/sys"), modules.hardware(), health)
    _show_xids(health)


def _show_links(sys: Tree, hardware: dict[str, Any], health: dict[str, dict[str, Any]]) -> None:
    """The link that a GPU has now, in sysfs."""
    for gpu in hardware["gpus"]:
        faults, device = health.get(gpu["pci_address"], {}), f"bus/pci/devices/{gpu['pci_address']}"
        if os.path.isdir(sys.path(device)):
            sys.file(f"{device}/current_link_width", faults.get("pcie_width", gpu["pcie_width"]))
            sys.file(f"{device}/current_link_speed", pci.GTS[faults.get("pcie_generation", gpu["pcie_generation"])])


def kernel_log(health: dict[str, dict[str, Any]]) -> str:
    """Records as /dev/kmsg has them."""
    lines = [
        f"4,{100000 + number},{number},-;NVRM: Xid (PCI:{address.rpartition('.')[0]}): {xid}, pid='<unknown>', name=<unknown>, simulated"
        for number, (address, xid) in enumerate((address, xid) for address in sorted(health) for xid in health[address].get("xids", []))
    ]
    return "".join(f"{line}\n" for line in lines)


def _show_xids(health: dict[str, dict[str, Any]]) -> None:
    """The kernel's log is that of the machine, which all nodes share: while a node has Xids, it reads a log of its own."""
    text, own = kernel_log(health), f"{modules.RUN}/kmsg"
    with open(own, "w", encoding="ascii") as stream:
        stream.write(text)
    mounted = os.path.ismount(KMSG) or os.path.isfile(KMSG)
    if text and not mounted:
        mounts.bind(own, KMSG)
    elif not text and mounted:
        mounts.unmount(KMSG)
