# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one GPU's MIG side looks like, as plain data. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Offer, Slot


@dataclass(frozen=True)
class ComputeInstance:
    compute_instance_id: int
    profile_index: int
    start: int
    full: bool
    uuid: str | None = None


@dataclass(frozen=True)
class Instance:
    gpu_instance_id: int
    slot: Slot
    compute_instances: tuple[ComputeInstance, ...] = ()
    busy: tuple[str, ...] = ()
    """Who uses it, in words: process 4711 (tritonserver)."""

    @property
    def complete(self) -> bool:
        return len(self.compute_instances) == 1 and self.compute_instances[0].full


@dataclass(frozen=True)
class Gpu:
    """One GPU. `offer` is None while nothing is known about its profiles."""

    index: int
    pci_address: str
    name: str
    uuid: str | None = None
    numa_node: int | None = None
    minor_number: int | None = None
    capable: bool = False
    mode: bool = False
    pending: bool = False
    passthrough: bool = False
    offer: Offer | None = None
    instances: tuple[Instance, ...] = ()
    holders: tuple[str, ...] = ()
    """Who keeps the whole GPU from changing its mode, in words."""
    source: str = "nvml"
    slots: tuple[Slot, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "slots", tuple(instance.slot for instance in self.instances))

    @property
    def label(self) -> str:
        return f"GPU {self.index} ({self.pci_address}, {self.name})"


def step(action: str, gpu: Gpu, **facts: Any) -> dict[str, Any]:
    return {"action": action, "gpu": gpu.pci_address, **facts}


def as_result(gpu: Gpu) -> dict[str, Any]:
    """The form in which a GPU is returned to the playbook."""
    offer = gpu.offer.by_name if gpu.offer else {}
    instances = []
    for instance in sorted(gpu.instances, key=lambda one: one.slot.start):
        profile = offer.get(instance.slot.profile)
        compute = instance.compute_instances[0] if instance.compute_instances else None
        instances.append(
            {
                "device": str(instance.slot),
                "profile": instance.slot.profile,
                "start": instance.slot.start,
                "size": profile.size if profile else None,
                "slices": profile.slices if profile else None,
                "memory_mib": profile.memory_mib if profile else None,
                "gpu_instance_id": instance.gpu_instance_id if instance.gpu_instance_id >= 0 else None,
                "compute_instance_id": compute.compute_instance_id if compute and compute.compute_instance_id >= 0 else None,
                "uuid": compute.uuid if compute else None,
                "numa_node": gpu.numa_node,
            }
        )
    return {
        "index": gpu.index,
        "pci_address": gpu.pci_address,
        "name": gpu.name,
        "uuid": gpu.uuid,
        "numa_node": gpu.numa_node,
        "mig_capable": gpu.capable,
        "mig_mode": "enabled" if gpu.mode else "disabled",
        "mig_mode_pending": "enabled" if gpu.pending else "disabled",
        "source": gpu.source,
        "instances": instances,
    }
