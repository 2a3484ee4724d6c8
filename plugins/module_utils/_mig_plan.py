# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cheapest way from the geometry that stands to the declared one. PRIVATE: internal to the collection, may change at any time.

Creating or destroying a GPU instance or a compute instance is one call each. What can stay stays; what is busy must stay.
Pure: the plan is made from data before anything is touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _mig_layout
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput, Refused
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Offer, Slot, Wanted
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_state import Gpu, Instance, step


def check(gpu: Gpu, offer: Offer, wanted: list[Wanted], where: str) -> None:
    """Refuse a geometry that this GPU can never have, with the nearest ones that it can."""
    for one in wanted:
        profile = offer.by_name.get(one.profile)
        if profile is None:
            raise InvalidInput(f"{where}: {gpu.label} has no MIG profile {one.profile}; it offers {', '.join(offer.names)}.")
        if one.start is not None and one.start not in profile.starts:
            starts = ", ".join(map(str, profile.starts))
            raise InvalidInput(
                f"{where}: {one.profile} cannot start at slice {one.start} on {gpu.label}; its possible starts are {starts}."
            )
    if _place_all(offer, wanted) is None:
        names = [one.profile for one in wanted]
        options = " or ".join("+".join(geometry) for geometry in _mig_layout.nearest(offer, names))
        fixed = [str(one) for one in wanted if one.start is not None]
        if tuple(sorted(names)) in _mig_layout.feasible(offer):
            reason = f"the given start slices {', '.join(fixed)} leave no placement for the rest"
        else:
            reason = _mig_layout.arithmetic(offer, names)
        raise InvalidInput(
            f"{where}: {'+'.join(map(str, wanted))} is not possible on {gpu.label}, because {reason}; "
            f"the nearest possible geometries are {options}."
        )


def _place_all(offer: Offer, wanted: list[Wanted], standing: tuple[Slot, ...] = ()) -> tuple[Slot, ...] | None:
    """Fixed starts first, each beside the others, then the rest around them."""
    placed: tuple[Slot, ...] = ()
    for one in wanted:
        if one.start is not None:
            slot = Slot(one.profile, one.start)
            if not offer.fits(slot, (*standing, *placed)):
                return None
            placed = (*placed, slot)
    rest = offer.place(tuple(one.profile for one in wanted if one.start is None), (*standing, *placed))
    return None if rest is None else (*placed, *rest)


def keep_cost(instance: Instance) -> int:
    """Calls to make a kept GPU instance complete: its wrong compute instances go, one full one comes."""
    return 0 if instance.complete else len(instance.compute_instances) + 1


def drop_cost(instance: Instance) -> int:
    return len(instance.compute_instances) + 1


def _choices(gpu: Gpu) -> Iterator[tuple[int, tuple[Instance, ...]]]:
    """Every set of instances to keep with what keeping and dropping costs, cheapest with most kept first."""
    everything = gpu.instances
    ranked = []
    for count in range(len(everything), -1, -1):
        for kept in combinations(everything, count):
            dropped = [instance for instance in everything if instance not in kept]
            if any(instance.busy for instance in dropped) or any(instance.busy and not instance.complete for instance in kept):
                continue
            # Each instance of the target that is not kept costs two calls, and all targets have the same size.
            cost = sum(map(keep_cost, kept)) + sum(map(drop_cost, dropped)) - 2 * len(kept)
            ranked.append((cost, -count, tuple(slot.start for slot in (one.slot for one in kept)), kept))
    for cost, _count, _starts, kept in sorted(ranked, key=lambda choice: choice[:3]):
        yield cost, kept


def _remaining(wanted: list[Wanted], kept: tuple[Instance, ...]) -> list[Wanted] | None:
    """What is still to be created when `kept` stays, or None if the target has no place for one of them."""
    rest = list(wanted)
    floating = []
    for instance in kept:
        fixed = Wanted(instance.slot.profile, instance.slot.start)
        if fixed in rest:
            rest.remove(fixed)
        else:
            floating.append(Wanted(instance.slot.profile, None))
    for one in floating:
        if one not in rest:
            return None
        rest.remove(one)
    return rest


def resolve(gpu: Gpu, offer: Offer, wanted: list[Wanted], where: str) -> list[Slot]:
    """The slots of the declared geometry that cost the fewest calls from what stands now."""
    for _cost, kept in _choices(gpu):
        rest = _remaining(wanted, kept)
        if rest is None:
            continue
        placed = _place_all(offer, rest, tuple(instance.slot for instance in kept))
        if placed is not None:
            return sorted((*(instance.slot for instance in kept), *placed), key=lambda slot: slot.start)
    raise Refused(_busy_text(gpu, wanted, where))


def _busy_text(gpu: Gpu, wanted: list[Wanted], where: str) -> str:
    target = Counter(one.profile for one in wanted)
    busy = [instance for instance in gpu.instances if instance.busy]
    who = "; ".join(f"{instance.slot} is used by {', '.join(instance.busy)}" for instance in busy)
    geometry = "+".join(str(one) for one in wanted) or "no instance"
    kept = Counter(instance.slot.profile for instance in busy)
    reason = "would have to go" if kept - target else "stands where the rest of the geometry has no placement beside it"
    return (
        f"{where}: {gpu.label} cannot be brought to {geometry} now, because an instance in use {reason}: {who}; "
        "stop these processes (or drain the node) and run again. Nothing was changed."
    )


def instance_steps(gpu: Gpu, slots: list[Slot]) -> list[dict[str, Any]]:
    """Calls from the standing instances to exactly `slots`, each with one full compute instance; destruction first."""
    wanted = set(slots)
    destroy: list[dict[str, Any]] = []
    repair: list[dict[str, Any]] = []
    for instance in sorted(gpu.instances, key=lambda one: one.slot.start):
        facts = {"device": str(instance.slot), "gpu_instance_id": instance.gpu_instance_id}
        stays = instance.slot in wanted
        if stays and instance.complete:
            continue
        for compute in instance.compute_instances:
            destroy.append(step("destroy_compute_instance", gpu, **facts, compute_instance_id=compute.compute_instance_id))
        if stays:
            repair.append(step("create_compute_instance", gpu, device=str(instance.slot)))
        else:
            destroy.append(step("destroy_gpu_instance", gpu, **facts))
    create: list[dict[str, Any]] = []
    for slot in sorted(wanted - set(gpu.slots), key=lambda one: one.start):
        create.append(step("create_gpu_instance", gpu, device=str(slot)))
        create.append(step("create_compute_instance", gpu, device=str(slot)))
    return destroy + repair + create
