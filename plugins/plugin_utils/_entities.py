# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes, models and services as the planner sees them. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from dataclasses import dataclass

from ._catalog import GpuModel

CLASS_RANK = {"interactive": 0, "batch": 1, "auxiliary": 2}


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of a node, named by its PCI slot when that is known, else by its index."""

    index: int
    pci_address: str | None
    model: GpuModel
    numa_node: int
    nvlink_set: str | None
    excluded: bool

    @property
    def key(self) -> str:
        return self.pci_address if self.pci_address is not None else f"gpu{self.index}"

    @property
    def reference(self) -> str | int:
        """How the roles select this GPU."""
        return self.pci_address if self.pci_address is not None else self.index


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node; `cores` are those that replicas may have, each with all its hardware threads."""

    id: int
    cpus: tuple[int, ...]
    reserved: tuple[int, ...]
    cores: tuple[tuple[int, ...], ...]
    memory_mib: int  # what replicas may have
    hugepages_mib: int


@dataclass(frozen=True, slots=True)
class Hca:
    device: str
    numa_node: int
    rate_gbps: int


@dataclass(frozen=True, slots=True)
class Node:
    """A host with GPUs."""

    name: str
    groups: tuple[str, ...]
    address: str | None
    state: str
    workload: str
    gpus: tuple[Gpu, ...]
    numa_nodes: tuple[NumaNode, ...]
    threads_per_core: int
    hcas: tuple[Hca, ...]
    driver_branch: int
    driver_flavour: str
    cuda_version: str
    triton_image: str

    @property
    def lowest_capability(self) -> tuple[int, int]:
        return min((gpu.model.compute_capability for gpu in self.gpus), default=(0, 0))


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    parameters: float
    layers: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    hidden_size: int
    dtype: str
    quantization: str
    encoder: bool


@dataclass(frozen=True, slots=True)
class Device:
    """What a service asked for: exactly one of the three, or nothing at all (then the planner chooses)."""

    mig: tuple[str, ...] = ()
    gpus: int = 0
    share: int = 0

    @property
    def chosen(self) -> bool:
        return bool(self.mig or self.gpus or self.share)


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    model: Model
    service_class: str
    replicas: int
    context_tokens: int
    concurrent_requests: int
    device: Device
    tensor_parallel: int | None
    allow_pcie: bool
    dtype: str
    engine: str
    engine_version: str | None
    engine_environment: str
    pools: tuple[str, ...]
    nodes: tuple[str, ...]
    anti_affinity: str
    apart_from: tuple[str, ...]
    cpus: int
    memory_mib: int
    hugepages_mib: int
    min_available: int

    @property
    def rank(self) -> int:
        return CLASS_RANK[self.service_class]

    @property
    def needed_tokens(self) -> int:
        return self.context_tokens * self.concurrent_requests

    def admits(self, node: Node) -> bool:
        """Whether pool and pinning let the service run on a node."""
        if self.nodes and node.name not in self.nodes:
            return False
        return not self.pools or any(pool in node.groups for pool in self.pools)


@dataclass(frozen=True, slots=True)
class Settings:
    usable_fraction: float
    overhead_mib: int
    port_base: int
    max_moves: int
    allow_partial: bool
    allow_disruption: bool
    allow_unverified_image: bool


@dataclass(frozen=True, slots=True)
class Inventory:
    """A whole valid inventory; nodes and services are sorted by name, so that their order in files does not matter."""

    nodes: tuple[Node, ...]
    services: tuple[Service, ...]
    settings: Settings
