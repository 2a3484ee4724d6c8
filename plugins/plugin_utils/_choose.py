# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The best device for one more replica. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from typing import Any

from ._candidates import Option, versions_of
from ._entities import Service
from ._state import Assignment, Cluster

Options = Mapping[str, Mapping[str, tuple[Option, ...]]]
Choice = tuple[Any, str, Assignment]
State = tuple[int, tuple[Any, ...]]


class Chooser:
    """Chooses devices; among a thousand nodes few differ, so what holds for one is remembered for all in the same state."""

    def __init__(self, cluster: Cluster, options: Options):
        self.cluster = cluster
        self.options = options
        self._numbers: dict[tuple[Any, ...], int] = {}
        self.packed = False  # whether room is so short that it is filled, not spread over
        # Nodes by their make and the state that they are in, and of each the first.
        self._state_of: dict[str, State] = {}
        self._alike: dict[State, list[str]] = {}
        self._first: dict[State, str] = {}
        self._hosts: dict[str, dict[State, bool]] = {}
        self._taken: dict[State, frozenset[str]] = {}
        self._room: frozenset[str] | None = None
        # Pools and versions decide, beside the state, what a node can host.
        self._makes = {name: (state.node.groups, *versions_of(state.node)) for name, state in cluster.nodes.items()}
        self._known: dict[tuple[Any, ...], tuple[Any, Assignment] | None] = {}

    def on_node(self, node: str, service: Service) -> Choice | None:
        """The best device of a node for one more replica of a service, with its key."""
        options = self.options[service.name].get(node)
        if not options:
            return None
        state = self.cluster.nodes[node]
        if state.number < 0:
            state.number = self._numbers.setdefault(state.likeness(), len(self._numbers))
        key = (service.name, state.number, id(options), self.packed)
        if key in self._known:
            found = self._known[key]
        else:
            apart = self.cluster.apart[service.name]
            found = self._known[key] = min(
                state.choices(service, options, apart, packed=self.packed), default=None, key=lambda choice: choice[0]
            )
        if found is None:
            return None
        return found[0], node, found[1] if found[1].node == node else found[1].on(node)

    def anywhere(self, service: Service) -> Choice | None:
        """The best device of all nodes."""
        best: Choice | None = None
        for node in self._to_look_at(service):
            choice = self.on_node(node, service)
            if choice and (best is None or choice[:2] < best[:2]):
                best = choice
        return best

    def with_room(self) -> frozenset[str]:
        """Services for one more replica of which any node has a device."""
        self._look_around()
        if self._room is None:
            pinned = (name for name, service in self.cluster.services.items() if service.nodes and any(self._to_look_at(service)))
            self._room = frozenset(pinned).union(*(self._takes(state) for state in self._first))
        return self._room

    def _to_look_at(self, service: Service) -> Iterator[str]:
        """Of nodes of one make in one state, the first, if it has a device; of a pinned service, all its nodes that have one."""
        nodes = self.options[service.name]
        if service.nodes:
            return (node for node in nodes if self.on_node(node, service))
        self._look_around()
        known = self._hosts.setdefault(service.name, {})
        for state, node in self._first.items():
            if state not in known:
                known[state] = self.on_node(node, service) is not None
        return (node for state, node in self._first.items() if known[state])

    def _takes(self, state: State) -> frozenset[str]:
        """Services, those that are pinned left out, for which a node in a state has a device."""
        found = self._taken.get(state)
        if found is None:
            node = self._first[state]
            services = self.cluster.services.items()
            found = frozenset(name for name, service in services if not service.nodes and self.on_node(node, service))
            self._taken[state] = found
        return found

    def _look_around(self) -> None:
        """Sort nodes that have changed in with those of their make in the same state."""
        touched = self.cluster.touched
        if not touched:
            return
        self._room = None
        stale: set[State] = set()
        for name in sorted(touched):
            state = self.cluster.nodes[name]
            if state.number < 0:
                state.number = self._numbers.setdefault(state.likeness(), len(self._numbers))
            now = (state.number, self._makes[name])
            if (before := self._state_of.get(name)) != now:
                self._state_of[name] = now
                heappush(self._alike.setdefault(now, []), name)
                stale.add(now)
                if before is not None:
                    stale.add(before)
        touched.clear()
        for now in stale:
            alike = self._alike[now]
            while alike and self._state_of[alike[0]] != now:
                heappop(alike)
            if alike:
                self._first[now] = alike[0]
            else:
                del self._alike[now]
                self._first.pop(now, None)
