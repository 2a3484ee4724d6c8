# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MIG side of a GPU. PRIVATE: internal to the collection, may change at any time.

GPU instances are listed by profile, not by MIG device: one without a compute instance is no MIG device and would be missed.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _mig_probe
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import Refused
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Profile
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_state import ComputeInstance, Instance
from ansible_collections.heterogpu.inference.plugins.module_utils._nvml import Reader

# NVML_COMPUTE_INSTANCE_PROFILE_*: compute slices of each.
COMPUTE_SLICES = {0: 1, 1: 2, 2: 3, 3: 4, 4: 7, 5: 8, 6: 6, 7: 1}


def blank() -> dict[str, Any]:
    return dict.fromkeys(("capable", "mode_current", "mode_pending", "instances"))


def read(reader: Reader, minor: int | None) -> dict[str, Any]:
    mode = reader.get("nvmlDeviceGetMigMode")
    if mode is None:
        # An answer that is neither a mode nor "not supported" leaves open whether the GPU is capable.
        return blank() if "nvmlDeviceGetMigMode" in reader.errors else {**blank(), "capable": False, "instances": []}
    current, pending = ("enabled" if one else "disabled" for one in mode)
    instances = _instances(reader, minor) if current == "enabled" else []
    return {"capable": True, "mode_current": current, "mode_pending": pending, "instances": instances}


def _instances(reader: Reader, minor: int | None) -> list[dict[str, Any]] | None:
    try:
        offer = _mig_probe.read_offer(reader.nvml, reader.device)
        if offer is None:
            return None
        # Who uses an instance is not asked here: the GPU's processes name their instance.
        found = _mig_probe.instances(reader.nvml, reader.device, offer, [], {}, minor=minor)
    except Refused:
        return None  # listing instances needs root
    except reader.nvml.NVMLError as error:
        reader.note("MIG instances", error)
        return None
    return [_instance(one, offer.by_name[one.slot.profile]) for one in sorted(found, key=lambda one: one.slot.start)]


def _instance(instance: Instance, profile: Profile) -> dict[str, Any]:
    return {
        "profile": profile.name,
        "start": instance.slot.start,
        "size": profile.size,
        "slices": profile.slices,
        "memory_mib": profile.memory_mib,
        "gpu_instance_id": instance.gpu_instance_id,
        "compute_instances": [_compute_instance(one, profile) for one in instance.compute_instances],
        "uuid": instance.compute_instances[0].uuid if instance.complete else None,
    }


def _compute_instance(compute: ComputeInstance, profile: Profile) -> dict[str, Any]:
    slices = COMPUTE_SLICES.get(compute.profile_index)
    part = None if slices is None else f"{slices}c.{profile.name}"
    return {
        "compute_instance_id": compute.compute_instance_id,
        "profile": profile.name if compute.full else part,
        "full": compute.full,
        "start": compute.start,
        "uuid": compute.uuid,
    }
