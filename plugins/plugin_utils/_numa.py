# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give every replica its CPUs and ports. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from dataclasses import dataclass

from ._entities import Node
from ._state import NodeState, ReplicaId
from ._sticky import Record

PORTS_OF_A_REPLICA = 3  # HTTP, gRPC, metrics
LAST_PORT = 65535


@dataclass(frozen=True, slots=True)
class HostShare:
    """CPUs and first port of a replica."""

    cpus: tuple[int, ...]
    http_port: int


def host_shares(state: NodeState, records: dict[ReplicaId, Record], port_base: int) -> dict[ReplicaId, HostShare]:
    """Assign CPU sets and ports on one node; a replica that stays keeps its own where they still serve."""
    cpus = _keep_cpus(state, records)
    taken = {cpu for kept in cpus.values() for cpu in kept}
    free = {numa.id: [core for core in numa.cores if not taken.intersection(core)] for numa in state.node.numa_nodes}
    ports = {replica: record.http_port for replica, record in records.items() if replica in state.placed}
    used = {port + offset for port in ports.values() for offset in range(PORTS_OF_A_REPLICA)}
    following = port_base
    shares: dict[ReplicaId, HostShare] = {}
    for replica in sorted(state.placed):
        if replica not in cpus:
            own: list[int] = []
            for part in state.placed[replica].parts:
                cores = free[part.numa_node]
                own += [cpu for core in cores[: part.cores] for cpu in core]
                del cores[: part.cores]
            cpus[replica] = tuple(sorted(own))
        if replica not in ports:
            while any(following + offset in used for offset in range(PORTS_OF_A_REPLICA)):
                following += 1
            ports[replica] = following
            used.update(range(following, following + PORTS_OF_A_REPLICA))
            following += PORTS_OF_A_REPLICA
        shares[replica] = HostShare(cpus[replica], ports[replica])
    return shares


def _keep_cpus(state: NodeState, records: dict[ReplicaId, Record]) -> dict[ReplicaId, tuple[int, ...]]:
    """CPU sets that can stay: right in number, of the right NUMA nodes, and nobody else's."""
    kept: dict[ReplicaId, tuple[int, ...]] = {}
    taken: set[int] = set()
    cores_of = {numa.id: numa.cores for numa in state.node.numa_nodes}
    for replica in sorted(records):
        assignment = state.placed.get(replica)
        if assignment is None:
            continue
        old = set(records[replica].cpus)
        wanted = {cpu for part in assignment.parts for core in _within(cores_of[part.numa_node], old)[: part.cores] for cpu in core}
        whole = all(len(_within(cores_of[part.numa_node], old)) == part.cores for part in assignment.parts)
        if whole and wanted == old and not taken & old:
            kept[replica] = tuple(sorted(old))
            taken |= old
    return kept


def _within(cores: tuple[tuple[int, ...], ...], cpus: set[int]) -> list[tuple[int, ...]]:
    return [core for core in cores if cpus.issuperset(core)]


def port_shortage(state: NodeState, shares: dict[ReplicaId, HostShare]) -> bool:
    """Whether a node has more replicas than ports."""
    return any(share.http_port + PORTS_OF_A_REPLICA - 1 > LAST_PORT for share in shares.values())


def nearest_hcas(node: Node, numa_nodes: set[int]) -> list[str]:
    """The adapters on the NUMA nodes of a replica, or all when none is there."""
    near = [hca.device for hca in node.hcas if hca.numa_node in numa_nodes]
    return near or [hca.device for hca in node.hcas]
