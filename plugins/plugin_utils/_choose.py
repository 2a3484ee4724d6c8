# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The best device for one more replica. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._candidates import Option, versions_of
from ._entities import Service
from ._state import Assignment, Cluster

Options = Mapping[str, Mapping[str, tuple[Option, ...]]]
Choice = tuple[Any, str, Assignment]


class Chooser:
    """Chooses devices; among a thousand nodes few differ, so what holds for one is remembered for all in the same state."""

    def __init__(self, cluster: Cluster, options: Options):
        self.cluster = cluster
        self.options = options
        self._numbers: dict[tuple[Any, ...], int] = {}
        self.packed = False  # whether room is so short that it is filled, not spread over
        self._version = -1
        self._first: list[str] = []
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

    def somewhere(self, service: Service) -> bool:
        """Whether any node has a device for one more replica."""
        return any(self.on_node(node, service) for node in self._to_look_at(service))

    def _to_look_at(self, service: Service) -> Iterable[str]:
        """Of nodes of one make in one state, the first; of a pinned service, all its nodes."""
        nodes = self.options[service.name]
        if service.nodes:
            return nodes
        if self._version != self.cluster.version:
            first: dict[tuple[Any, ...], str] = {}
            for name, state in self.cluster.nodes.items():
                if state.number < 0:
                    state.number = self._numbers.setdefault(state.likeness(), len(self._numbers))
                first.setdefault((state.number, self._makes[name]), name)
            self._first, self._version = list(first.values()), self.cluster.version
        return (name for name in self._first if name in nodes)
