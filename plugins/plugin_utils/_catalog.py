# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU models and compatibility rules, read from the YAML files under data/. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class CatalogError(Exception):
    """A data file of the collection that cannot be used."""


@dataclass(frozen=True, slots=True)
class MigProfile:
    """What the planner needs of a GPU instance profile."""

    name: str
    slices: int
    size: int
    starts: tuple[int, ...]
    max_instances: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A GPU model of the catalog."""

    key: str
    compute_capability: tuple[int, int]
    usable_memory_mib: int
    compute_slices: int
    mig_profiles: tuple[MigProfile, ...]

    @property
    def mig_capable(self) -> bool:
        return bool(self.mig_profiles)

    def profile(self, name: str) -> MigProfile | None:
        return next((profile for profile in self.mig_profiles if profile.name == name), None)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a GPU generation cannot do, and what to do instead.

    A rule looks at facts ("dtype", "driver_branch", ...). It applies to GPUs in its range of compute capability
    when every fact named in `when` has one of the values there, and is broken when the fact it limits is outside.
    """

    id: str
    subject: str  # node or service
    below: tuple[int, int] | None
    at_least: tuple[int, int] | None
    when: tuple[tuple[str, tuple[str, ...]], ...]
    fact: str
    at_most: str | None
    minimum: str | None
    one_of: tuple[str, ...]
    unless: str
    sentence: str
    remedy: str
    source: str

    def broken(self, capability: tuple[int, int], facts: Mapping[str, str]) -> bool:
        return self._applies(capability, facts) and self._exceeded(facts)

    def _applies(self, capability: tuple[int, int], facts: Mapping[str, str]) -> bool:
        in_range = (not self.below or capability < self.below) and (not self.at_least or capability >= self.at_least)
        lifted = bool(self.unless) and facts.get(self.unless) == "true"
        return in_range and not lifted and all(facts.get(fact) in values for fact, values in self.when)

    def _exceeded(self, facts: Mapping[str, str]) -> bool:
        if not self.fact:
            return True
        value = facts.get(self.fact)
        if value is None:
            return False
        return (
            (bool(self.one_of) and value not in self.one_of)
            or (self.at_most is not None and version(value) > version(self.at_most))
            or (self.minimum is not None and version(value) < version(self.minimum))
        )


class Catalog:
    """All GPU models by every name they go by, and all rules."""

    def __init__(self, models: Mapping[str, GpuModel], rules: Iterable[Rule], engines: Mapping[str, str]):
        self._models = dict(models)
        self.rules = tuple(rules)
        self.vllm_by_image = dict(engines)

    def model(self, name: str) -> GpuModel | None:
        return self._models.get(_plain(name))

    def keys(self) -> list[str]:
        return sorted({model.key for model in self._models.values()})


def version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, for comparison: "0.5.3.post1" is (0, 5, 3)."""
    parts: list[int] = []
    for part in str(text).split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    return tuple(parts)


def capability(text: str) -> tuple[int, int]:
    major, _dot, minor = str(text).partition(".")
    return int(major), int(minor or 0)


def load(directory: Path) -> Catalog:
    """Read data/gpu-profiles/*.yaml and data/compat.yml."""
    models: dict[str, GpuModel] = {}
    for path in sorted((directory / "gpu-profiles").glob("*.yaml")):
        document = _read(path)
        for name, model in _models(path, document).items():
            models.setdefault(name, model)
    compat = _read(directory / "compat.yml")
    engines = {str(row["tag"]): str(row["vllm"]) for row in compat["triton_containers"]["rows"] if version(str(row.get("vllm", "")))}
    return Catalog(models, [_rule(row) for row in compat["rules"]], engines)


def _read(path: Path) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as error:
        raise CatalogError(f"The catalog file {path} cannot be read: {error}; reinstall the collection.") from error


def _plain(name: str) -> str:
    return re.sub(r"^(nvidia|tesla)[ _-]+", "", str(name).strip().lower()).replace(" ", "-")


def _models(path: Path, document: Mapping[str, Any]) -> dict[str, GpuModel]:
    names = [re.sub(r"^(NVIDIA|Tesla) ", "", str(name)).replace(" ", "-") for name in document["nvml_names"]]
    profiles = tuple(_profile(row) for row in document.get("gpu_instance_profiles", ()) if row.get("memory_mib") and row.get("placements"))
    found: dict[str, GpuModel] = {}
    for name, original in zip(names, document["nvml_names"], strict=True):
        usable = document.get("usable_memory_mib")
        if isinstance(usable, Mapping):
            usable = usable.get(original, usable.get(name))
        if not isinstance(usable, int):
            continue  # a model without a figure for its memory cannot be planned with
        model = GpuModel(name, capability(document["compute_capability"]), usable, int(document.get("compute_slices") or 0), profiles)
        found.setdefault(_plain(name), model)
        found.setdefault(_plain(path.stem), model)
    return found


def _profile(row: Mapping[str, Any]) -> MigProfile:
    placements = row["placements"]
    return MigProfile(
        name=str(row["name"]),
        slices=int(row["slice_count"]),
        size=int(placements["size"]),
        starts=tuple(placements["starts"]),
        max_instances=int(row["max_instances"]),
        memory_mib=int(row["memory_mib"]),
    )


def _rule(row: Mapping[str, Any]) -> Rule:
    require = row.get("require", {})
    return Rule(
        id=row["id"],
        subject=row["subject"],
        below=capability(row["below_compute_capability"]) if "below_compute_capability" in row else None,
        at_least=capability(row["at_least_compute_capability"]) if "at_least_compute_capability" in row else None,
        when=tuple((fact, tuple(str(value) for value in values)) for fact, values in sorted(row.get("when", {}).items())),
        fact=require.get("fact", ""),
        at_most=require.get("at_most"),
        minimum=require.get("at_least"),
        one_of=tuple(str(value) for value in require.get("one_of", ())),
        unless=row.get("unless", ""),
        sentence=row["sentence"],
        remedy=row["remedy"],
        source=row["source"],
    )
