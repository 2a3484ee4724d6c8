# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The map from a device's key to its UUID. PRIVATE: internal to the collection, may change at any time.

A MIG UUID is new each time its instance is made, so what is configured names PCI address, profile and start, and looks the UUID up here.
"""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _whole_file

PATH = "/run/heterogpu/devices.json"


def of(gpus: list[dict[str, Any]]) -> dict[str, str | None]:
    """From the GPUs as mig_geometry returns them. A GPU in MIG mode runs nothing outside of its instances, so it is no device itself."""
    found: dict[str, str | None] = {}
    for gpu in gpus:
        if gpu["mig_mode"] != "enabled":
            found[gpu["pci_address"]] = gpu["uuid"]
        for instance in gpu["instances"]:
            found[f"{gpu['pci_address']}/{instance['device']}"] = instance["uuid"]
    return found


def text(devices: dict[str, str | None]) -> str:
    return json.dumps(devices, indent=2, sort_keys=True) + "\n"


def is_current(devices: dict[str, str | None]) -> bool:
    try:
        with open(PATH, encoding="utf-8") as stream:
            return stream.read() == text(devices)
    except OSError:
        return False  # there is none yet


def write(devices: dict[str, str | None]) -> bool:
    """Whether the file was another one."""
    if is_current(devices):
        return False
    _whole_file.write(PATH, text(devices))
    return True
