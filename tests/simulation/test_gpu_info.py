# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu_info against the simulated driver: what a GPU has, what it has not, and what fails."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _gpu_facts, _node_facts

A100, V100 = "a100_80gb", "v100"
FIRST = "0000:07:00.0"


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The machine's own files are an empty tree: what is read is NVML's."""
    (tmp_path / "machine").mkdir()
    return lambda timeout=20.0, **options: _node_facts.read(None, timeout, root=str(tmp_path / "machine"), **options)


def create(device: Any, profile: int, compute: int | None) -> None:
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(device)
    pynvml.nvmlDeviceSetMigMode(handle, 1)
    info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, profile)
    instance = pynvml.nvmlDeviceCreateGpuInstance(handle, info.id)
    if compute is not None:
        pynvml.nvmlGpuInstanceCreateComputeInstance(instance, compute)
    pynvml.nvmlShutdown()


def test_gpus_of_several_models_in_one_node(simulated_node: Callable[..., Any], read: Any) -> None:
    simulated_node([A100, V100])
    facts = read(required=True)
    ampere, volta = facts["gpus"]
    assert facts["driver"]["state"] == "ok" and facts["driver"]["loaded_version"] == "580.95.05"
    assert (ampere["architecture"], ampere["compute_capability"], ampere["memory_mib"]) == ("ampere", "8.0", 81920)
    assert (volta["architecture"], volta["compute_capability"]) == ("volta", "7.0")
    assert ampere["mig"] == {"capable": True, "mode_current": "disabled", "mode_pending": "disabled", "instances": []}
    assert volta["mig"] == {"capable": False, "mode_current": None, "mode_pending": None, "instances": []}
    # Ampere remaps rows, Volta retires pages.
    assert ampere["health"]["remapped_rows_pending"] is False and ampere["health"]["retired_pages_pending"] is None
    assert volta["health"]["remapped_rows_pending"] is None and volta["health"]["retired_pages_pending"] is False
    assert ampere["errors"] == volta["errors"] == {} and ampere["lost"] is volta["lost"] is False


def test_a_gpu_instance_without_compute_instance_is_seen(simulated_node: Callable[..., Any], read: Any) -> None:
    simulated_node([A100])
    create(0, pynvml.NVML_GPU_INSTANCE_PROFILE_3_SLICE, pynvml.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE)
    create(0, pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE, None)
    create(0, pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE, pynvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE)
    found = read()["gpus"][0]["mig"]["instances"]
    computes = {(one["profile"], tuple(ci["profile"] for ci in one["compute_instances"]), one["uuid"] is not None) for one in found}
    assert computes == {("3g.40gb", ("3g.40gb",), True), ("2g.20gb", (), False), ("2g.20gb", ("1c.2g.20gb",), False)}
    assert [one["start"] for one in found] == sorted(one["start"] for one in found)


def test_who_is_not_root_gets_null_for_what_needs_it(
    simulated_node: Callable[..., Any], read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated_node([A100])
    create(0, pynvml.NVML_GPU_INSTANCE_PROFILE_3_SLICE, pynvml.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE)
    monkeypatch.setenv("GPU_SANDBOX_UID", "1000")
    (gpu,) = read(required=True)["gpus"]
    assert gpu["mig"]["mode_current"] == "enabled" and gpu["mig"]["instances"] is None
    assert gpu["uuid"] and gpu["memory_mib"] and gpu["errors"] == {}


def test_one_failing_fact_is_one_null(simulated_node: Callable[..., Any], read: Any) -> None:
    node = simulated_node([A100])
    node.set_faults({"call": "nvmlDeviceGetTemperature*", "error": "UNKNOWN", "times": "always"})
    (gpu,) = read(required=True)["gpus"]
    assert gpu["errors"] == {"nvmlDeviceGetTemperature": "UNKNOWN"} and gpu["health"]["temperature_c"] is None
    assert gpu["lost"] is False and gpu["settings"]["power_limit_w"] == 400.0


def test_a_lost_gpu_does_not_hide_the_others(simulated_node: Callable[..., Any], read: Any) -> None:
    node = simulated_node([A100, A100])
    node.set_faults({"call": "nvmlDeviceGetEccMode*", "gpu": FIRST, "error": "GPU_IS_LOST", "times": "always"})
    first, second = read()["gpus"]
    assert first["lost"] is True and first["pci_address"] == FIRST and first["uuid"] is not None
    assert second["lost"] is False and second["settings"]["ecc_mode_current"] is True
    with pytest.raises(_node_facts.GpuError, match=f"lost the GPU at {FIRST}"):
        read(required=True)


def test_health_faults_are_read(simulated_node: Callable[..., Any], read: Any) -> None:
    node = simulated_node([A100], nvlinks=12)
    node.set_health(**{FIRST: {"remapped_rows_failed": True, "ecc_uncorrected": 3, "nvlink_errors": 2}})
    health = read()["gpus"][0]["health"]
    assert (health["remapped_rows_failed"], health["ecc_uncorrected"], health["nvlink_errors"]) == (True, 3, 24)


def test_processes_name_their_instance(simulated_node: Callable[..., Any], read: Any) -> None:
    node = simulated_node([A100])
    node.add_holder(FIRST, pid=os.getpid(), used_memory_mib=512)
    (process,) = read()["gpus"][0]["processes"]
    assert (process["pid"], process["used_memory_mib"], process["gpu_instance_id"]) == (os.getpid(), 512, None)
    assert process["command"]


@pytest.mark.parametrize(("loaded", "state"), [(None, "not_loaded"), ("580.173.02", "mismatch")])
def test_an_unusable_driver_is_a_state(simulated_node: Callable[..., Any], read: Any, loaded: str | None, state: str) -> None:
    node = simulated_node([A100])
    node.unload_driver()
    if loaded:
        node.load_driver(loaded)
    facts = read()
    assert facts["driver"]["state"] == state and facts["driver"]["message"].endswith(".") and facts["gpus"] == []


def test_a_hang_is_a_state_and_keeps_what_was_read(simulated_node: Callable[..., Any], read: Any) -> None:
    node = simulated_node([A100, A100])
    node.set_faults({"call": "nvmlDeviceGetMemoryInfo*", "gpu": "0000:0f:00.0", "hang": True, "times": "always"})
    facts = read(timeout=2.0)
    assert facts["driver"]["state"] == "hung" and "reading GPU 1" in facts["driver"]["message"]
    assert [gpu["pci_address"] for gpu in facts["gpus"]] == [FIRST]


class Counting:
    """NVML that counts what it is asked for."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[Any, ...]] = Counter()

    def __dir__(self) -> list[str]:
        return dir(pynvml)

    def __getattr__(self, name: str) -> Any:
        value = getattr(pynvml, name)
        if not name.startswith("nvmlDeviceGet"):
            return value

        def call(*arguments: Any) -> Any:
            self.calls[(name, *(one for one in arguments if isinstance(one, int)))] += 1
            return value(*arguments)

        return call


def test_each_fact_is_asked_for_once(simulated_node: Callable[..., Any]) -> None:
    simulated_node([A100], nvlinks=12)
    create(0, pynvml.NVML_GPU_INSTANCE_PROFILE_3_SLICE, None)
    pynvml.nvmlInit()
    counting = Counting()
    record = _gpu_facts.read(counting, 0, pynvml.nvmlDeviceGetHandleByIndex(0))
    pynvml.nvmlShutdown()
    assert record["mig"]["instances"] and len(record["nvlinks"]) == 12
    assert {call: count for call, count in counting.calls.items() if count > 1} == {}
