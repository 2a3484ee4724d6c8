# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPU instances fit together on a GPU, from the placement tables. PRIVATE: internal to the collection, may change at any time.

A layout is a sorted tuple of (start, profile name). Instances fit together when they do not overlap in memory slices,
need no more compute slices than the GPU has, and no profile is there more often than the driver allows.
Everything is computed once for a model and remembered: a cluster has thousands of GPUs but few layouts.
"""

from __future__ import annotations

from ._catalog import GpuModel, MigProfile

Layout = tuple[tuple[int, str], ...]
EMPTY: Layout = ()


class Layouts:
    """The layouts of one GPU model."""

    def __init__(self, model: GpuModel):
        self._profiles: dict[str, MigProfile] = {profile.name: profile for profile in model.mig_profiles}
        self._compute_slices = model.compute_slices
        # "+me" profiles are never chosen by themselves, so they do not count as ways to use what is left.
        self._ordinary = [profile for profile in model.mig_profiles if "+" not in profile.name]
        self._starts: dict[tuple[Layout, str], tuple[int, ...]] = {}
        self._best: dict[tuple[Layout, str], int | None] = {}
        self._ways: dict[Layout, frozenset[tuple[str, ...]]] = {}
        self._dead: dict[Layout, int] = {}
        self._kept: dict[tuple[Layout, Layout], Layout] = {}

    def profile(self, name: str) -> MigProfile | None:
        return self._profiles.get(name)

    def feasible(self, layout: Layout) -> bool:
        """Whether a GPU can hold exactly these instances."""
        built: Layout = EMPTY
        for start, name in sorted(layout):
            if start not in self.starts(built, name):
                return False
            built = add(built, start, name)
        return True

    def starts(self, layout: Layout, name: str) -> tuple[int, ...]:
        """The slots where one more instance of the profile can begin."""
        key = (layout, name)
        found = self._starts.get(key)
        if found is None:
            found = self._starts[key] = self._find_starts(layout, name)
        return found

    def best_start(self, layout: Layout, name: str) -> int | None:
        """The slot that leaves the most other instances possible."""
        key = (layout, name)
        if key not in self._best:
            starts = self.starts(layout, name)
            self._best[key] = min(starts, key=lambda start: (*self.cost(add(layout, start, name)), -start), default=None)
        return self._best[key]

    def cost(self, layout: Layout) -> tuple[int, int]:
        """Compute slices that nothing can use any more, then (negated) how many sets of instances still can be added."""
        return self.dead(layout), -len(self._extensions(layout))

    def dead(self, layout: Layout) -> int:
        """Compute slices of the GPU that no further instance could use."""
        found = self._dead.get(layout)
        if found is None:
            used = sum(self._profiles[name].slices for _start, name in layout)
            best = max(sum(self._profiles[name].slices for name in names) for names in self._extensions(layout))
            found = self._dead[layout] = self._compute_slices - used - best
        return found

    def kept(self, used: Layout, in_force: Layout) -> Layout:
        """The instances in force that nothing uses and that can stay beside those used."""
        key = (used, in_force)
        found = self._kept.get(key)
        if found is None:
            layout = used
            for start, name in in_force:
                if (start, name) not in used and start in self.starts(layout, name):
                    layout = add(layout, start, name)
            found = self._kept[key] = tuple(entry for entry in layout if entry not in used)
        return found

    def multisets(self) -> frozenset[tuple[str, ...]]:
        """Every set of profiles that fits on an empty GPU."""
        return self._extensions(EMPTY)

    def _find_starts(self, layout: Layout, name: str) -> tuple[int, ...]:
        profile = self._profiles.get(name)
        if profile is None:
            return ()
        slices, count, taken = profile.slices, 1, 0
        for start, other_name in layout:
            other = self._profiles[other_name]
            slices += other.slices
            count += other_name == name
            taken |= ((1 << other.size) - 1) << start
        if slices > self._compute_slices or count > profile.max_instances:
            return ()
        mask = (1 << profile.size) - 1
        return tuple(start for start in profile.starts if not taken & (mask << start))

    def _extensions(self, layout: Layout) -> frozenset[tuple[str, ...]]:
        found = self._ways.get(layout)
        if found is None:
            ways: set[tuple[str, ...]] = {()}
            for profile in self._ordinary:
                for start in self.starts(layout, profile.name):
                    for rest in self._extensions(add(layout, start, profile.name)):
                        ways.add(tuple(sorted((*rest, profile.name))))
            found = self._ways[layout] = frozenset(ways)
        return found


def add(layout: Layout, start: int, name: str) -> Layout:
    return tuple(sorted((*layout, (start, name))))


def remove(layout: Layout, start: int, name: str) -> Layout:
    return tuple(entry for entry in layout if entry != (start, name))


def entry_text(start: int, name: str) -> str:
    return f"{name}@{start}"


def parse_entry(text: str) -> tuple[int, str]:
    """Read "3g.40gb@4"; raise ValueError when it is not of that form."""
    name, at, start = str(text).partition("@")
    if not at:
        raise ValueError(f"{text!r} has no start slot")
    return int(start), name
