# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What works but deserves a remark. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ._candidates import Candidates, Option, article
from ._entities import Inventory, Service
from ._mig_layouts import EMPTY
from ._refusals import key_text
from ._state import Cluster, linked


def warnings_of(inventory: Inventory, cluster: Cluster, candidates: Mapping[str, Candidates]) -> list[dict[str, Any]]:
    """Return all warnings in a stable order."""
    found: list[dict[str, Any]] = []
    for service in inventory.services:
        found += _waste(service, candidates[service.name])
    for name in sorted(cluster.nodes):
        found += _on_node(cluster, name)
    return found


def _waste(service: Service, candidates: Candidates) -> Iterator[dict[str, Any]]:
    """A named profile is used as it is named, even where a smaller one would do."""
    if not service.device.mig:
        return
    options: dict[str, Option] = {option.text(): option for some in candidates.options.values() for option in some}
    seen: set[str] = set()
    for _text, option in sorted(options.items()):
        asked = option.profile
        if asked is None or option.model.key in seen:
            continue
        seen.add(option.model.key)
        named = [profile for profile in option.model.mig_profiles if profile.name in service.device.mig]
        smallest = min(named, key=lambda profile: (profile.memory_mib, profile.slices))
        need = -(-option.fit.needed_mib * asked.memory_mib // max(option.fit.available_mib, 1))
        smaller = [
            profile
            for profile in option.model.mig_profiles
            if "+" not in profile.name and profile.memory_mib < smallest.memory_mib and profile.memory_mib >= need
        ]
        if smaller:
            best = min(smaller, key=lambda profile: (profile.memory_mib, -profile.slices))
            yield {
                "code": "larger_than_needed",
                "service": service.name,
                "sentence": f"{service.name} asks for {' or '.join(service.device.mig)}, "
                f"but on {article(option.model)} {option.model.key} it would fit {best.name} as well.",
            }
        if (
            len(named) == 1
            and named[0].name.startswith("3g.")
            and any(profile.name == "4" + named[0].name[1:] for profile in option.model.mig_profiles)
        ):
            twin = "4" + named[0].name[1:]
            yield {
                "code": "wastes_a_slice",
                "service": service.name,
                "sentence": f"{service.name} asks for {named[0].name} only: two of them leave one of seven compute slices "
                f"of {article(option.model)} {option.model.key} unused. With mig: [{twin}, {named[0].name}] all seven are used.",
            }


def _on_node(cluster: Cluster, name: str) -> Iterator[dict[str, Any]]:
    state = cluster.nodes[name]
    for replica in sorted(state.placed):
        assignment = state.placed[replica]
        gpus = [state.node.gpus[index] for index in assignment.gpus]
        numa_nodes = sorted({gpu.numa_node for gpu in gpus})
        label = f"{replica[0]}-{replica[1]} on {key_text(state.node, assignment)}"
        if len(numa_nodes) > 1:
            where = " and ".join(str(numa) for numa in numa_nodes)
            yield {"code": "spans_numa_nodes", "service": replica[0], "node": name, "sentence": f"{label} spans the NUMA nodes {where}."}
        if len(gpus) > 1 and not linked(gpus):
            yield {
                "code": "pcie_tensor_parallel",
                "service": replica[0],
                "node": name,
                "sentence": f"{label} is split over GPUs without NVLink between them.",
            }
    for gpu in state.gpus:
        if gpu.mig and not gpu.gpu.excluded and gpu.used:
            dead = gpu.layouts.dead(gpu.used)
            beside = " and ".join(profile for _start, profile in gpu.used)
            if dead and not gpu.layouts.kept(gpu.used, gpu.in_force or EMPTY):
                yield {
                    "code": "unusable_slices",
                    "node": name,
                    "sentence": f"{dead} of the compute slices of {name}/{gpu.gpu.key} cannot be used beside {beside}.",
                }
