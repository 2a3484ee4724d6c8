# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules between CUDA, driver and GPUs, from the files under data/. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml

_DATA = Path(__file__).resolve().parents[2] / "data"


@functools.lru_cache(maxsize=1)
def rules() -> dict[str, Any]:
    """What cuda_toolkit takes as _rules."""
    compat = yaml.safe_load((_DATA / "compat.yml").read_text(encoding="utf-8"))
    toolkit = compat["cuda_toolkit"]
    return {
        "toolkits": [
            {key: value for key, value in row.items() if key in ("cuda", "min_driver") or key.startswith("sm_")} for row in toolkit["rows"]
        ],
        "minor": {series.partition(".")[0]: floor.removeprefix(">=") for series, floor in toolkit["minor_version_compat"].items()},
        "compat": [{key: row[key] for key in ("cuda", "package", "kernel_drivers")} for row in compat["cuda_compat"]["rows"]],
    }


@functools.lru_cache(maxsize=1)
def capabilities() -> dict[str, str]:
    """Compute capability by PCI device id, as sysfs writes it."""
    found = {}
    for path in sorted((_DATA / "gpu-profiles").glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        for number in document["pci_device_ids"]:
            # NVML's spelling has the vendor behind the device: 0x20B210DE.
            found[number[:6].lower()] = str(document["compute_capability"])
    return found
