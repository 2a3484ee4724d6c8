# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another GPU in a slot, or none: a description of the node's own in the place of the one that the sandbox was started with."""

from __future__ import annotations

import json
import os
import uuid
from typing import Any

from . import modules, mounts

OWN = "/var/lib/gpu-sandbox/hardware.json"


def take_over() -> None:
    """Put the node's own description, if it has one, where programs look for it."""
    if os.path.exists(OWN):
        mounts.bind(OWN, modules.HARDWARE)


def replace(hardware: dict[str, Any], address: str) -> dict[str, Any]:
    """Same model, another board: identity and everything that InfoROM keeps are its own."""
    return {**hardware, "gpus": [_another(gpu) if gpu["pci_address"] == address else gpu for gpu in hardware["gpus"]]}


def _another(gpu: dict[str, Any]) -> dict[str, Any]:
    new = uuid.uuid5(uuid.UUID(gpu["uuid"].removeprefix("GPU-")), "replacement")
    return {**gpu, "uuid": f"GPU-{new}", "serial": str(1320000000000 + new.int % 999999999)}


def remove(hardware: dict[str, Any], address: str) -> dict[str, Any]:
    """The slot is empty; those behind move up, as the driver numbers what it finds."""
    left = [gpu for gpu in hardware["gpus"] if gpu["pci_address"] != address]
    return {**hardware, "gpus": [{**gpu, "minor_number": index} for index, gpu in enumerate(left)]}


def keep(hardware: dict[str, Any]) -> None:
    """For the next start: a new file under the name leaves the one that is in use now as it is."""
    with open(f"{OWN}.new", "w", encoding="utf-8") as stream:
        json.dump(hardware, stream)
    os.replace(f"{OWN}.new", OWN)


def restore() -> None:
    if os.path.exists(OWN):
        os.unlink(OWN)
