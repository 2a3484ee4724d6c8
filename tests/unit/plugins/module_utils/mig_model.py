# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second opinion on MIG: its own rules, its own search, and a GPU that executes steps and refuses what hardware refuses.

It shares no code with the planner. State of a GPU: slot (profile, start) to its compute instances, each FULL or PARTIAL.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Offer, Profile, Slot
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_state import ComputeInstance, Gpu, Instance

PROFILES = Path(__file__).parents[4] / "data" / "gpu-profiles"
FULL, PARTIAL = "full", "partial"
Layout = frozenset  # of (profile, start)
State = dict  # of (profile, start) to tuple of FULL or PARTIAL


@cache
def table(model: str) -> dict[str, dict[str, Any]]:
    document = yaml.safe_load((PROFILES / f"{model}.yaml").read_text(encoding="utf-8"))
    return {row["name"]: row for row in document["gpu_instance_profiles"]}


@cache
def offer(model: str) -> Offer:
    return Offer(
        tuple(
            Profile(
                name=name,
                profile_id=row["profile_id"],
                slices=row["slice_count"],
                size=row["placements"]["size"],
                starts=tuple(row["placements"]["starts"]),
                max_instances=row["max_instances"],
                memory_mib=row["memory_mib"] or 0,
                multiprocessors=row["multiprocessors"] or 0,
            )
            for name, row in table(model).items()
        )
    )


def allowed(model: str, layout: Iterable[tuple[str, int]]) -> bool:
    rows, slots = table(model), list(layout)
    covered = [start + offset for name, start in slots for offset in range(rows[name]["placements"]["size"])]
    compute = sum(rows[name]["slice_count"] for name, _start in slots)
    most = max(row["slice_count"] for row in rows.values())
    counts = Counter(name for name, _start in slots)
    return (
        len(covered) == len(set(covered))
        and compute <= most
        and all(count <= rows[name]["max_instances"] for name, count in counts.items())
        and sum(name.endswith("+me") for name, _start in slots) <= 1
        and all(start in rows[name]["placements"]["starts"] for name, start in slots)
    )


@cache
def layouts(model: str) -> tuple[Layout, ...]:
    """Every layout that can stand, grown one instance at a time."""
    slots = [(name, start) for name, row in table(model).items() for start in row["placements"]["starts"]]
    found: set[Any] = {frozenset()}
    fringe: list[Any] = [frozenset()]
    while fringe:
        layout = fringe.pop()
        for slot in slots:
            grown = layout | {slot}
            if grown not in found and allowed(model, grown):
                found.add(grown)
                fringe.append(grown)
    return tuple(sorted(found, key=lambda layout: (len(layout), sorted(layout))))


def multiset(layout: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    return tuple(sorted(name for name, _start in layout))


@cache
def by_multiset(model: str) -> dict[tuple[str, ...], tuple[Layout, ...]]:
    found: dict[tuple[str, ...], list[Layout]] = {}
    for layout in layouts(model):
        found.setdefault(multiset(layout), []).append(layout)
    return {target: tuple(places) for target, places in sorted(found.items())}


def compute_states(model: str, profile: str) -> list[tuple[str, ...]]:
    """Full, none, and one to `slices` partial ones; a profile of one slice has no partial ones."""
    slices = table(model)[profile]["slice_count"]
    return [(FULL,), ()] + [(PARTIAL,) * count for count in range(1, slices + 1) if slices > 1]


def states_of(model: str, layout: Layout) -> Iterator[State]:
    slots = sorted(layout)
    for computes in product(*(compute_states(model, name) for name, _start in slots)):
        yield dict(zip(slots, computes))


def some_state(model: str, layout: Layout, source: random.Random) -> State:
    return {slot: (FULL,) if source.random() < 0.5 else source.choice(compute_states(model, slot[0])) for slot in sorted(layout)}


def fewest_calls(model: str, state: State, target: tuple[str, ...], busy: frozenset = frozenset()) -> int | None:
    """Try every final layout. What a slot costs does not depend on the others, because all destruction can go first."""
    best = None
    for final in by_multiset(model)[target]:
        if any(slot not in final or state[slot] != (FULL,) for slot in busy):
            continue
        cost = 2 * len(final - state.keys())
        for slot, computes in state.items():
            if slot not in final or computes != (FULL,):
                cost += len(computes) + 1
        best = cost if best is None else min(best, cost)
    return best


def shortest_paths(model: str, state: State) -> dict[tuple[str, ...], int]:
    """Breadth first over single calls: the distance to every multiset of complete instances. For small GPUs."""
    first = frozenset(state.items())
    distance, queue = {first: 0}, deque([first])
    found: dict[tuple[str, ...], int] = {}
    while queue:
        here = queue.popleft()
        standing = dict(here)
        if all(computes == (FULL,) for computes in standing.values()):
            found.setdefault(multiset(standing), distance[here])
        for following in _neighbours(model, standing):
            key = frozenset(following.items())
            if key not in distance:
                distance[key] = distance[here] + 1
                queue.append(key)
    return found


def _neighbours(model: str, standing: State) -> Iterator[State]:
    for slot, computes in standing.items():
        if computes:
            yield {**standing, slot: computes[1:]}
        else:
            yield {**standing, slot: (FULL,)}
            yield {other: value for other, value in standing.items() if other != slot}
    for name, row in table(model).items():
        for start in row["placements"]["starts"]:
            if (name, start) not in standing and allowed(model, [*standing, (name, start)]):
                yield {**standing, (name, start): ()}


def as_gpu(model: str, state: State, busy: frozenset = frozenset(), **facts: Any) -> Gpu:
    rows = table(model)
    instances = []
    for number, ((name, start), computes) in enumerate(sorted(state.items())):
        slices = rows[name]["slice_count"]
        ones = tuple(
            ComputeInstance(index, slices - 1 if kind == FULL else 0, 0 if kind == FULL else index, kind == FULL)
            for index, kind in enumerate(computes)
        )
        users = ("process 4711 (tritonserver)",) if (name, start) in busy else ()
        instances.append(Instance(number + 1, Slot(name, start), ones, users))
    known = {"capable": True, "mode": True, "pending": True, "offer": offer(model), **facts}
    return Gpu(0, "0000:07:00.0", "NVIDIA A100-SXM4-80GB", instances=tuple(instances), **known)


class ExecutingGpu:
    """Executes steps one by one and refuses what the driver refuses."""

    def __init__(self, model: str, state: State, gpu: Gpu, busy: frozenset = frozenset()) -> None:
        self.model, self.state, self.busy = model, dict(state), busy
        self.slots = {instance.gpu_instance_id: tuple(instance.slot) for instance in gpu.instances}
        self.computes = {
            (instance.gpu_instance_id, compute.compute_instance_id) for instance in gpu.instances for compute in instance.compute_instances
        }

    def execute(self, step: dict[str, Any]) -> None:
        profile, _at, start = step["device"].rpartition("@")
        slot = (profile, int(start))
        action = step["action"]
        if action == "create_gpu_instance":
            assert slot not in self.state and allowed(self.model, [*self.state, slot]), f"INSUFFICIENT_RESOURCES at {step}"
            self.state[slot] = ()
        elif action == "create_compute_instance":
            assert self.state[slot] == (), f"INSUFFICIENT_RESOURCES at {step}"
            self.state[slot] = (FULL,)
        elif action == "destroy_compute_instance":
            assert slot not in self.busy, f"IN_USE at {step}"
            assert self.slots[step["gpu_instance_id"]] == slot
            self.computes.remove((step["gpu_instance_id"], step["compute_instance_id"]))
            self.state[slot] = self.state[slot][1:]
        else:
            assert action == "destroy_gpu_instance"
            assert slot not in self.busy and self.state[slot] == (), f"IN_USE at {step}"
            assert self.slots[step["gpu_instance_id"]] == slot
            del self.state[slot]
