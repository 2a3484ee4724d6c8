# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Profile tables of the known GPU models, for drivers that list no profile. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml

PROFILES = Path(__file__).resolve().parents[2] / "data" / "gpu-profiles"


@functools.lru_cache(maxsize=1)
def tables() -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """MIG profiles by NVML name, and the NVML name by each name that a declaration may use."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    names: dict[str, str] = {}
    for path in sorted(PROFILES.glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        rows = [_row(profile) for profile in document.get("gpu_instance_profiles", [])]
        for name in document["nvml_names"]:
            for spelling in (name, name.removeprefix("NVIDIA "), name.removeprefix("Tesla ")):
                names.setdefault(spelling, name)
            if rows:
                by_name[name] = rows
        names.setdefault(path.stem, document["nvml_names"][0])
    return by_name, names


def _row(profile: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": profile["name"],
        "profile_id": profile["profile_id"],
        "slices": profile["slice_count"],
        "size": profile["placements"]["size"],
        "starts": profile["placements"]["starts"],
        "max_instances": profile["max_instances"],
        "memory_mib": profile["memory_mib"],
        "multiprocessors": profile["multiprocessors"],
    }
