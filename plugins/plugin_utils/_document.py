# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as a document: one shape, one order, the same bytes for the same input.

PRIVATE: internal to the collection, may change at any time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from . import _cpulist
from ._candidates import Candidates, Option
from ._entities import CLASS_RANK, Inventory, Node, Service
from ._mig_layouts import EMPTY, entry_text
from ._numa import HostShare, nearest_hcas
from ._refusals import Refusal, device_key, key_text
from ._state import Assignment, Cluster, GpuState, NodeState, ReplicaId, linked
from ._sticky import SCHEMA, Record

# A container with more goes over several lines, as does one that is longer than a line.
MOST_KEYS = 12
MOST_ENTRIES = 40
WIDTH = 150


def replica_document(node: Node, service: Service, replica: ReplicaId, assignment: Assignment, share: HostShare) -> dict[str, Any]:
    """What the roles need of one replica."""
    option = assignment.option
    gpus = [node.gpus[index] for index in assignment.gpus]
    numa_nodes = sorted({gpu.numa_node for gpu in gpus})
    device: dict[str, Any]
    if option.profile:
        device = {"pci_address": gpus[0].pci_address, "profile": option.profile.name, "start": assignment.start}
    else:
        device = {"gpus": [gpu.reference for gpu in gpus]}
        if option.share:
            device["share"] = option.share
    device["indexes"] = [gpu.index for gpu in gpus]
    nccl = "none" if len(gpus) == 1 else "nvlink" if linked(gpus) else "pcie"
    return {
        "name": f"{replica[0]}-{replica[1]}",
        "service": service.name,
        "service_class": service.service_class,
        "model": service.model.name,
        "device": device,
        "device_key": key_text(node, assignment),
        "gpu_model": option.model.key,
        "http_port": share.http_port,
        "grpc_port": share.http_port + 1,
        "metrics_port": share.http_port + 2,
        "numa_node": numa_nodes[0],
        "numa_nodes": numa_nodes,
        "cpus": _cpulist.text(share.cpus),
        "memory_mib": service.memory_mib,
        "hugepages_mib": service.hugepages_mib,
        "tensor_parallel": len(gpus),
        "dtype": service.dtype,
        "engine": service.engine,
        "context_tokens": service.context_tokens,
        "concurrent_requests": service.concurrent_requests,
        "usable_memory_mib": option.fit.available_mib,
        "nccl_class": nccl,
        "nccl_hcas": nearest_hcas(node, set(numa_nodes)) if len(gpus) > 1 else [],
    }


def node_document(state: NodeState, replicas: list[Mapping[str, Any]], drain: list[dict[str, Any]], address: bool = True) -> dict[str, Any]:
    """The part of a plan that concerns one node; the node keeps it as its record."""
    node = state.node
    document: dict[str, Any] = {
        "state": node.state,
        "workload": node.workload,
        "groups": list(node.groups),
        "driver": {
            "branch": node.driver_branch,
            "flavour": node.driver_flavour,
            "cuda": node.cuda_version,
            "triton_image": node.triton_image,
        },
        "gpus": [_gpu(gpu) for gpu in state.gpus],
        "numa_nodes": [
            {
                "id": numa.id,
                "cpus": _cpulist.text(numa.cpus),
                "reserved_cpus": _cpulist.text(numa.reserved),
                "free_cpus": state.cores[numa.id] * node.threads_per_core,
                "free_memory_mib": state.memory[numa.id],
                "free_hugepages_mib": state.hugepages[numa.id],
            }
            for numa in node.numa_nodes
        ],
        "hcas": [{"device": hca.device, "numa_node": hca.numa_node, "rate_gbps": hca.rate_gbps} for hca in node.hcas],
        "geometry": [entry for gpu in state.gpus for entry in _geometry(gpu)],
        "unused_instances": [
            f"{gpu.gpu.key}/{entry_text(start, name)}"
            for gpu in state.gpus
            if gpu.mig
            for start, name in gpu.layouts.kept(gpu.used, gpu.in_force or EMPTY)
        ],
        "replicas": replicas,
        "drain": drain,
    }
    if node.address:
        document["address"] = node.address
    return document


def _gpu(state: GpuState) -> dict[str, Any]:
    gpu = state.gpu
    use = "excluded" if gpu.excluded else "mig" if state.mig else "whole" if state.whole else "shared" if state.units else "unused"
    return {
        "index": gpu.index,
        "pci_address": gpu.pci_address,
        "model": gpu.model.key,
        "numa_node": gpu.numa_node,
        "nvlink_set": gpu.nvlink_set,
        "use": use,
    }


def _geometry(state: GpuState) -> Iterator[dict[str, Any]]:
    if state.gpu.excluded or not state.gpu.model.mig_capable:
        return
    layout = state.layout()
    if layout is None:
        yield {"gpus": state.gpu.reference, "mig": False}
    elif layout:
        yield {"gpus": state.gpu.reference, "profiles": [entry_text(start, name) for start, name in layout]}


def service_document(service: Service, missing: int, found: Candidates, replicas: list[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """A service with its memory arithmetic and where its replicas are."""
    options: dict[str, Option] = {option.text(): option for some in found.options.values() for option in some}
    return {
        "class": service.service_class,
        "model": service.model.name,
        "replicas": service.replicas,
        "placed": service.replicas - missing,
        "min_available": service.min_available,
        "fit": [_fit_document(option) for _text, option in sorted(options.items(), key=lambda item: (item[1].preference, item[0]))],
        "devices": [document["device_key"] for _node, document in replicas],
    }


def _fit_document(option: Option) -> dict[str, Any]:
    got = option.fit
    return {
        "device": option.text(),
        "tensor_parallel": got.tensor_parallel,
        "weights_mib": got.weights_mib,
        "overhead_mib": got.overhead_mib,
        "working_mib": got.working_mib,
        "needed_mib": got.needed_mib,
        "available_mib": got.available_mib,
        "headroom_mib": got.headroom_mib,
        "needed_tokens": got.needed_tokens,
        "tokens": got.tokens,
        "headroom_tokens": got.headroom_tokens,
    }


def refusal_document(refusal: Refusal, cluster: Cluster) -> dict[str, Any]:
    document: dict[str, Any] = {
        refusal.kind: refusal.subject,
        "code": refusal.code,
        "sentence": refusal.text(),
        "remedy": refusal.remedy.strip(),
    }
    if refusal.kind == "service":
        document |= {"replicas": refusal.wanted, "missing": refusal.missing}
    document["data"] = dict(sorted(refusal.data))
    if refusal.moves:
        document["moves"] = [
            {
                "replica": f"{move.replica[0]}-{move.replica[1]}",
                "from": device_key(cluster, move.before),
                "to": device_key(cluster, move.after),
            }
            for move in refusal.moves
        ]
    return document


def gateway_document(inventory: Inventory, by_service: Mapping[str, list[tuple[str, Mapping[str, Any]]]]) -> dict[str, Any]:
    """One pool of servers for each service; classes are ranked, the first is served first."""
    return {
        "pools": [
            {
                "service": service.name,
                "model": service.model.name,
                "class": service.service_class,
                "rank": CLASS_RANK[service.service_class],
                "servers": [
                    {
                        "name": document["name"],
                        "node": node,
                        "http_port": document["http_port"],
                        "grpc_port": document["grpc_port"],
                        "metrics_port": document["metrics_port"],
                        "max_requests": document["concurrent_requests"],
                    }
                    for node, document in by_service.get(service.name, [])
                ],
            }
            for service in inventory.services
        ]
    }


def frozen_document(record: Record) -> dict[str, Any]:
    return dict(record.document)


def render(document: Mapping[str, Any]) -> str:
    """JSON that a person can read: whatever is short stays on one line."""
    return _render(document, 0) + "\n"


_encode = json.JSONEncoder(ensure_ascii=False).encode


def _render(value: Any, depth: int) -> str:
    if not isinstance(value, (dict, list)) or not value:
        return _encode(value)
    if not _long(value):
        line = _encode(value)
        if len(line) <= WIDTH - 2 * depth:
            return line
    pad, end = "\n" + "  " * (depth + 1), "\n" + "  " * depth
    if isinstance(value, dict):
        return "{" + ",".join([f'{pad}"{key}": {_render(entry, depth + 1)}' for key, entry in value.items()]) + end + "}"
    return "[" + ",".join([pad + _render(entry, depth + 1) for entry in value]) + end + "]"


def _long(value: Any) -> bool:
    """Whether a container is surely too long for a line, without writing it out."""
    if isinstance(value, dict):
        return len(value) > MOST_KEYS or any(isinstance(entry, (dict, list)) and len(entry) > MOST_KEYS for entry in value.values())
    return (
        len(value) > MOST_ENTRIES
        or (len(value) > 1 and isinstance(value[0], dict))
        or (isinstance(value[0], list) and len(value[0]) > MOST_KEYS)
    )


def plan_document(**parts: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, **parts}
