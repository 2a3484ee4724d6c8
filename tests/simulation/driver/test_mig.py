# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated driver refuses as the hardware does, seen by unmodified pynvml."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pynvml as nv
import pytest


@contextmanager
def session() -> Iterator[None]:
    nv.nvmlInit()
    try:
        yield
    finally:
        nv.nvmlShutdown()


@contextmanager
def refused(code: int) -> Iterator[None]:
    with pytest.raises(nv.NVMLError) as caught:
        yield
    assert caught.value.value == code


def profile_ids(device: Any) -> dict[str, int]:
    found = {}
    for index in range(nv.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = nv.nvmlDeviceGetGpuInstanceProfileInfo(device, index, version=2)
        except nv.NVMLError_NotSupported:
            continue
        name = info.name.decode() if isinstance(info.name, bytes) else info.name
        found[name.removeprefix("MIG ")] = info.id
    return found


def create(device: Any, profile: str, start: int | None = None) -> Any:
    identity = profile_ids(device)[profile]
    if start is None:
        return nv.nvmlDeviceCreateGpuInstance(device, identity)
    sizes = {"1g.10gb": 1, "1g.10gb+me": 1, "1g.20gb": 2, "2g.20gb": 2, "3g.40gb": 4, "4g.40gb": 4, "7g.80gb": 8}
    placement = nv.c_nvmlGpuInstancePlacement_t(start, sizes[profile])
    return nv.nvmlDeviceCreateGpuInstanceWithPlacement(device, identity, ctypes.byref(placement))


def placed(instance: Any) -> tuple[int, int, int]:
    info = nv.nvmlGpuInstanceGetInfo(instance)
    return info.id, info.placement.start, info.placement.size


@pytest.fixture
def a100(simulated_node: Callable[..., Any]) -> Iterator[Any]:
    simulated_node(["a100_80gb", "v100"])
    with session():
        device = nv.nvmlDeviceGetHandleByIndex(0)
        assert nv.nvmlDeviceSetMigMode(device, 1) == nv.NVML_SUCCESS
        yield device


def test_profiles_have_two_id_spaces(a100: Any) -> None:
    assert profile_ids(a100) == {
        "1g.10gb": 19, "1g.10gb+me": 20, "1g.20gb": 15, "2g.20gb": 14, "3g.40gb": 9, "4g.40gb": 5, "7g.80gb": 0,
    }  # fmt: skip


def test_the_first_3g_goes_to_the_upper_half(a100: Any) -> None:
    assert placed(create(a100, "3g.40gb"))[1:] == (4, 4)
    assert placed(create(a100, "4g.40gb"))[1:] == (0, 4)


def test_ids_come_from_the_range_of_the_size(a100: Any) -> None:
    assert placed(create(a100, "3g.40gb"))[0] in (1, 2)
    assert placed(create(a100, "2g.20gb"))[0] in range(3, 7)
    assert placed(create(a100, "1g.10gb"))[0] in range(7, 15)


def test_refuses_overlap_sum_maximum_and_a_second_media_instance(a100: Any) -> None:
    create(a100, "1g.10gb+me", 0)
    with refused(nv.NVML_ERROR_INSUFFICIENT_RESOURCES):
        create(a100, "1g.10gb+me", 1)
    with refused(nv.NVML_ERROR_INSUFFICIENT_RESOURCES):
        create(a100, "2g.20gb", 0)
    create(a100, "3g.40gb", 4)
    create(a100, "2g.20gb", 2)
    create(a100, "1g.10gb", 1)
    with refused(nv.NVML_ERROR_INSUFFICIENT_RESOURCES):
        create(a100, "1g.10gb")


def test_a_placement_that_the_profile_lacks_is_an_invalid_argument(a100: Any) -> None:
    with refused(nv.NVML_ERROR_INVALID_ARGUMENT):
        create(a100, "3g.40gb", 2)


def test_a_mig_device_needs_a_compute_instance(a100: Any) -> None:
    instance = create(a100, "3g.40gb")
    with refused(nv.NVML_ERROR_NOT_FOUND):
        nv.nvmlDeviceGetMigDeviceHandleByIndex(a100, 0)
    compute = nv.nvmlGpuInstanceCreateComputeInstance(instance, nv.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE)
    uuid = nv.nvmlDeviceGetUUID(nv.nvmlDeviceGetMigDeviceHandleByIndex(a100, 0))
    assert uuid.startswith("MIG-")
    with refused(nv.NVML_ERROR_IN_USE):
        nv.nvmlGpuInstanceDestroy(instance)
    nv.nvmlComputeInstanceDestroy(compute)
    nv.nvmlGpuInstanceCreateComputeInstance(instance, nv.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE)
    assert nv.nvmlDeviceGetUUID(nv.nvmlDeviceGetMigDeviceHandleByIndex(a100, 0)) != uuid


def test_v100_has_no_mig(a100: Any) -> None:
    v100 = nv.nvmlDeviceGetHandleByIndex(1)
    with refused(nv.NVML_ERROR_NOT_SUPPORTED):
        nv.nvmlDeviceGetMigMode(v100)
    with refused(nv.NVML_ERROR_NOT_SUPPORTED):
        nv.nvmlDeviceSetMigMode(v100, 1)
    assert nv.nvmlDeviceGetMaxMigDeviceCount(v100) == 0


def test_reboot_keeps_the_mode_and_loses_the_instances(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node(["a100_80gb", "h100_80gb"])
    with session():
        for index in (0, 1):
            nv.nvmlDeviceSetMigMode(nv.nvmlDeviceGetHandleByIndex(index), 1)
        create(nv.nvmlDeviceGetHandleByIndex(0), "3g.40gb")
    node.reboot()
    with session():
        ampere, hopper = (nv.nvmlDeviceGetHandleByIndex(index) for index in (0, 1))
        assert nv.nvmlDeviceGetMigMode(ampere) == [1, 1]
        assert nv.nvmlDeviceGetMigMode(hopper) == [0, 0]
        with refused(nv.NVML_ERROR_NOT_FOUND):
            nv.nvmlDeviceGetGpuInstanceById(ampere, 1)


def test_a_busy_gpu_leaves_the_mode_pending(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node(["a100_80gb"])
    node.add_holder("0000:07:00.0")
    with session():
        device = nv.nvmlDeviceGetHandleByIndex(0)
        assert nv.nvmlDeviceSetMigMode(device, 1) == nv.NVML_ERROR_IN_USE
        assert nv.nvmlDeviceGetMigMode(device) == [0, 1]


def test_a_gpu_of_a_vm_asks_for_a_reset(simulated_node: Callable[..., Any]) -> None:
    simulated_node(["a100_80gb"], passthrough=True)
    with session():
        device = nv.nvmlDeviceGetHandleByIndex(0)
        assert nv.nvmlDeviceSetMigMode(device, 1) == nv.NVML_ERROR_RESET_REQUIRED
        assert nv.nvmlDeviceGetMigMode(device) == [0, 1]


def test_nvlinks_need_the_fabric_manager_of_the_same_version(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node(["a100_80gb", "a100_80gb"], nvlinks=12)
    for version, state in ((None, 1), ("535.183.06", 0)):
        node.start_fabric_manager(version)
        with session():
            assert nv.nvmlDeviceGetNvLinkState(nv.nvmlDeviceGetHandleByIndex(0), 0) == state


def test_old_drivers_list_no_profile_while_mig_is_off(simulated_node: Callable[..., Any]) -> None:
    simulated_node(["a100_80gb"], driver="535.183.06")
    with session():
        device = nv.nvmlDeviceGetHandleByIndex(0)
        assert profile_ids(device) == {}
        nv.nvmlDeviceSetMigMode(device, 1)
        assert len(profile_ids(device)) == 7


def test_a_driver_that_is_absent_or_of_another_version_is_named(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node(["a100_80gb"])
    node.load_driver("535.183.06")
    with refused(nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH):
        nv.nvmlInit()
    node.unload_driver()
    with refused(nv.NVML_ERROR_DRIVER_NOT_LOADED):
        nv.nvmlInit()


def test_ordinary_users_read_and_change_nothing(simulated_node: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    simulated_node(["a100_80gb"])
    monkeypatch.setenv("GPU_SANDBOX_UID", "1000")
    with session():
        device = nv.nvmlDeviceGetHandleByIndex(0)
        assert nv.nvmlDeviceGetMigMode(device) == [0, 0]
        with refused(nv.NVML_ERROR_NO_PERMISSION):
            nv.nvmlDeviceSetMigMode(device, 1)
        with refused(nv.NVML_ERROR_NO_PERMISSION):
            nv.nvmlDeviceSetPersistenceMode(device, 1)


def test_faults_hit_the_nth_call_and_change_nothing(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node(["a100_80gb"])
    node.set_faults({"call": "nvmlDeviceCreateGpuInstance*", "nth": 2, "error": "IN_USE"})
    with session():
        device = nv.nvmlDeviceGetHandleByIndex(0)
        nv.nvmlDeviceSetMigMode(device, 1)
        create(device, "1g.10gb")
        with refused(nv.NVML_ERROR_IN_USE):
            create(device, "1g.10gb")
        create(device, "1g.10gb")
    assert [entry["result"] for entry in node.mutations()] == ["SUCCESS", "SUCCESS", "IN_USE", "SUCCESS"]
