# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What clocks were locked to, since NVML cannot be asked. PRIVATE: internal to the collection, may change at any time.

The record is true only as long as the driver keeps the GPU: every load of it begins with unlocked clocks, and so does a GPU after its
reset, or after persistence mode was off while nobody used it. The record lies under /run, and says to what it belongs: the boot, the
load, and the persistence daemon, which lets go of all GPUs when it stops.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _whole_file
from ansible_collections.heterogpu.inference.plugins.module_utils._settings_state import CLOCKS, Clocks

PATH = "/run/heterogpu/locked-clocks.json"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
MODULE_VERSION = "/sys/module/nvidia/version"
PERSISTENCED = "/run/nvidia-persistenced/nvidia-persistenced.pid"
_IDENTITY = ("boot_id", "driver_load", "persistenced")


def identity() -> dict[str, Any]:
    """The kernel gives the file a new inode number whenever the module is loaded."""
    try:
        load: Any = [os.stat(MODULE_VERSION).st_ino, _text(MODULE_VERSION)]
    except OSError:
        load = None
    return {"boot_id": _text(BOOT_ID), "driver_load": load, "persistenced": _text(PERSISTENCED)}


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="ascii") as stream:
            return stream.read().strip()
    except OSError:
        return None


def read() -> dict[str, dict[str, Clocks]]:
    """Locked clocks by PCI address and kind; nothing where the record is of another boot or load, or is no record."""
    try:
        with open(PATH, encoding="utf-8") as stream:
            document = json.load(stream)
        now = identity()
        if document["persistenced"] is None:  # a daemon that came later has let go of nothing
            now["persistenced"] = None
        if {name: document[name] for name in _IDENTITY} != now:
            return {}
        return {
            address: {kind: tuple(int(number) for number in kinds[kind]) for kind in CLOCKS if kind in kinds}
            for address, kinds in document["gpus"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def adopt() -> None:
    """From now on the record belongs to the daemon that runs."""
    gpus = read()
    if gpus and _text(PERSISTENCED) is not None:
        with open(PATH, encoding="utf-8") as stream:
            if json.load(stream)["persistenced"] is None:
                _write(gpus)


def note(address: str, kind: str, clocks: Clocks | None) -> None:
    """`clocks` is None where it is unknown what stands."""
    gpus: dict[str, dict[str, Clocks]] = read()
    kinds = gpus.setdefault(address, {})
    if clocks is None:
        kinds.pop(kind, None)
    else:
        kinds[kind] = clocks
    _write(gpus)


def forget() -> None:
    """A GPU was reset, and the daemons that keep the others may have been stopped for it."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(PATH)


def _write(gpus: dict[str, dict[str, Clocks]]) -> None:
    _whole_file.write_json(PATH, {**identity(), "gpus": gpus})
