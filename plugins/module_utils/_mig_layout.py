# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MIG profiles, slots and layouts: what can stand beside what on one GPU. PRIVATE: internal to the collection, may change at any time.

The rules are NVML's own facts about the GPU: possible placements, compute slices, the profile's maximum, one instance with
the media engines. Pure: nothing here talks to a driver.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Profile:
    """A GPU instance profile of one GPU as its driver reports it."""

    name: str
    profile_id: int
    slices: int
    size: int
    starts: tuple[int, ...]
    max_instances: int
    memory_mib: int
    multiprocessors: int

    @property
    def media(self) -> bool:
        return "+me" in self.name


class Slot(NamedTuple):
    """One instance at its place: 3g.40gb@4."""

    profile: str
    start: int

    def __str__(self) -> str:
        return f"{self.profile}@{self.start}"


class Wanted(NamedTuple):
    """One declared instance; `start` is None where the place does not matter."""

    profile: str
    start: int | None

    def __str__(self) -> str:
        return self.profile if self.start is None else f"{self.profile}@{self.start}"


@dataclass(frozen=True)
class Offer:
    """All profiles of a GPU, in the order in which an operator reads them: largest first."""

    profiles: tuple[Profile, ...]

    def __post_init__(self) -> None:
        ordered = sorted(self.profiles, key=lambda profile: (-profile.slices, -profile.size, profile.name))
        object.__setattr__(self, "profiles", tuple(ordered))

    @functools.cached_property
    def by_name(self) -> dict[str, Profile]:
        return {profile.name: profile for profile in self.profiles}

    @property
    def compute_slices(self) -> int:
        return max((profile.slices for profile in self.profiles), default=0)

    @property
    def names(self) -> list[str]:
        return [profile.name for profile in self.profiles]

    def fits(self, slot: Slot, others: tuple[Slot, ...]) -> bool:
        """Whether `slot` can be created beside `others`, which are a possible layout themselves."""
        profile = self.by_name[slot.profile]
        if slot.start not in profile.starts:
            return False
        compute, same = profile.slices, 1
        for other in others:
            beside = self.by_name[other.profile]
            if slot.start < other.start + beside.size and other.start < slot.start + profile.size:
                return False
            if profile.media and beside.media:
                return False
            compute += beside.slices
            same += other.profile == slot.profile
        return compute <= self.compute_slices and same <= profile.max_instances

    def place(self, wanted: tuple[str, ...], standing: tuple[Slot, ...]) -> tuple[Slot, ...] | None:
        """Slots for `wanted` beside `standing`, or None. The same question always has the same answer."""
        ordered = tuple(sorted(wanted, key=self.names.index))
        return _place(self, ordered, tuple(sorted(standing, key=lambda slot: slot.start)))

    def layouts(self) -> Iterator[tuple[Slot, ...]]:
        """Every possible layout, the empty one included."""
        slots = [Slot(profile.name, start) for profile in self.profiles for start in profile.starts]
        stack: list[tuple[int, tuple[Slot, ...]]] = [(0, ())]
        while stack:
            first, layout = stack.pop()
            yield layout
            for index in range(first, len(slots)):
                if self.fits(slots[index], layout):
                    stack.append((index + 1, (*layout, slots[index])))


# Halves of the GPU are filled from the top, so that 0:4 stays free for the profile that can only be there.
def _starts(offer: Offer, profile: Profile) -> tuple[int, ...]:
    rivals = any(
        other.size == profile.size and len(other.starts) < len(profile.starts) and other is not profile for other in offer.profiles
    )
    return tuple(reversed(profile.starts)) if rivals and len(profile.starts) == 2 else profile.starts


@functools.lru_cache(maxsize=65536)
def _place(offer: Offer, wanted: tuple[str, ...], standing: tuple[Slot, ...]) -> tuple[Slot, ...] | None:
    if not wanted:
        return ()
    profile = offer.by_name[wanted[0]]
    for start in _starts(offer, profile):
        slot = Slot(profile.name, start)
        if offer.fits(slot, standing):
            rest = _place(offer, wanted[1:], tuple(sorted((*standing, slot), key=lambda one: one.start)))
            if rest is not None:
                return (slot, *rest)
    return None


@functools.lru_cache(maxsize=16)
def feasible(offer: Offer) -> frozenset[tuple[str, ...]]:
    """Every feasible geometry as a sorted tuple of names."""
    return frozenset(tuple(sorted(slot.profile for slot in layout)) for layout in offer.layouts())


def nearest(offer: Offer, wanted: list[str], most: int = 3) -> list[list[str]]:
    """The feasible geometries that differ least from `wanted`; among equals those that use more of the GPU."""
    target = Counter(wanted)

    def rank(geometry: tuple[str, ...]) -> tuple[int, int, int, tuple[str, ...]]:
        have = Counter(geometry)
        changes = sum(((target - have) + (have - target)).values())
        profiles = [offer.by_name[name] for name in geometry]
        return (changes, -sum(p.slices for p in profiles), -sum(p.size for p in profiles), geometry)

    ranked = sorted((geometry for geometry in feasible(offer) if geometry), key=rank)
    return [sorted(geometry, key=offer.names.index) for geometry in ranked[:most]]


def arithmetic(offer: Offer, wanted: list[str]) -> str:
    """Why a geometry cannot be, in slices."""
    profiles = [offer.by_name[name] for name in wanted]
    compute, memory = sum(p.slices for p in profiles), sum(p.size for p in profiles)
    total = max((p.size for p in offer.profiles), default=0)
    if compute > offer.compute_slices:
        return f"it needs {compute} compute slices and the GPU has {offer.compute_slices}"
    if memory > total:
        return f"it needs {memory} memory slices and the GPU has {total}"
    for name, count in sorted(Counter(wanted).items()):
        if count > offer.by_name[name].max_instances:
            return f"{name} can exist {offer.by_name[name].max_instances} times and is asked for {count} times"
    if sum(p.media for p in profiles) > 1:
        return "only one instance can have the media engines (+me)"
    return "its instances have no placement beside each other, because each may start only at certain slices"
