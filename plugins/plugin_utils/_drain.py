# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service has left when a node is drained. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._entities import Service


def drain_table(counts: Mapping[str, Mapping[str, int]], services: Mapping[str, Service]) -> dict[str, list[dict[str, Any]]]:
    """Return, for every node, the services on it with the replicas that are left without the node.

    `counts` says how many replicas of each service every node has.
    """
    totals: dict[str, int] = {}
    for on_node in counts.values():
        for service, count in on_node.items():
            totals[service] = totals.get(service, 0) + count
    table: dict[str, list[dict[str, Any]]] = {}
    for node, on_node in counts.items():
        rows = []
        for service in sorted(name for name, count in on_node.items() if count):
            left = totals[service] - on_node[service]
            wanted = services[service].min_available if service in services else 0
            rows.append({"service": service, "replicas_left": left, "min_available": wanted, "enough": left >= wanted})
        table[node] = rows
    return table
