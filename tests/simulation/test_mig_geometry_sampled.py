# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig_geometry against the simulated driver: what it calls, and what stands afterwards."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _lock, _mig_calls
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import (
    ApplyFailed,
    DriverHang,
    DriverUnavailable,
    GpuError,
    InvalidInput,
    Refused,
)
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_run import Request, run
from ansible_collections.heterogpu.inference.plugins.plugin_utils._gpu_profiles import tables

sys.path.append(str(Path(__file__).parents[1] / "unit/plugins/module_utils"))
import mig_model as model

A100 = "a100_80gb"
FIRST, SECOND, THIRD = "0000:07:00.0", "0000:0f:00.0", "0000:17:00.0"
CODES = (
    "UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "NOT_FOUND", "INSUFFICIENT_SIZE", "DRIVER_NOT_LOADED", "TIMEOUT",
    "FUNCTION_NOT_FOUND", "GPU_IS_LOST", "RESET_REQUIRED", "IN_USE", "MEMORY", "INSUFFICIENT_RESOURCES", "INVALID_STATE", "UNKNOWN",
)  # fmt: skip
GI_IDS = {8: [0], 4: [1, 2], 2: [3, 4, 5, 6], 1: list(range(7, 15))}


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lock, "PATH", str(tmp_path / "lock"))
    monkeypatch.setattr(_mig_calls, "PAUSE_S", 0.0)


def reset(pci_address: str) -> tuple[int, str]:
    """What `nvidia-smi --gpu-reset` asks of the kernel module."""
    pynvml.nvmlInit()
    code = pynvml.nvmlLib.gpuSandboxDeviceReset(pci_address.encode())
    pynvml.nvmlShutdown()
    return code, f"GPU Reset couldn't run: code {code}" if code else ""


def apply(*geometry: dict[str, Any], check_mode: bool = False, **options: Any) -> dict[str, Any]:
    by_name, names = tables()
    entries = [{"profiles": None, "mig": True, **entry} for entry in geometry]
    return run(Request(entries, **{"timeout": 20.0, "tables": by_name, "model_names": names, **options}), check_mode, reset)


def geometry_of(result: dict[str, Any]) -> list[list[str]]:
    return [[instance["device"] for instance in gpu["instances"]] for gpu in result["gpus"]]


def stored(states: dict[str, model.State | None]) -> dict[str, Any]:
    """Driver state with these layouts at once; None is MIG off."""
    rows, gpus, serial = model.table(A100), {}, 0
    for address, state in states.items():
        free = {size: list(ids) for size, ids in GI_IDS.items()}
        instances, slot = [], -1
        for (name, start), computes in sorted((state or {}).items()):
            row, ones = rows[name], []
            for number, kind in enumerate(computes):
                serial, slot = serial + 1, slot + 1
                size = row["slice_count"] if kind == model.FULL else 1
                index = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}[size]
                ones.append(
                    {"id": number, "profile_id": index, "start": number if size == 1 else 0, "size": size, "slot": slot, "created": serial,
                     "uuid": f"MIG-00000000-0000-4000-8000-{serial:012d}"}
                )  # fmt: skip
            serial += 1
            size = row["placements"]["size"]
            instances.append(
                {
                    "id": free[size].pop(0),
                    "profile_id": row["profile_id"],
                    "start": start,
                    "size": size,
                    "created": serial,
                    "compute_instances": ones,
                }
            )
        mode = int(state is not None)
        gpus[address] = {"ecc_current": 1, "mig_current": mode, "mig_pending": mode, "instances": instances}
    return {"gpus": gpus, "serial": serial}


def snapshot(node: Any) -> dict[str, Any]:
    """Modes and placements: what a rollback must restore. Ids and UUIDs are the driver's."""
    found = {}
    for address, gpu in node.state()["gpus"].items():
        instances = sorted(
            (one["profile_id"], one["start"], tuple(sorted((ci["profile_id"], ci["start"]) for ci in one["compute_instances"])))
            for one in gpu.get("instances", [])
        )
        found[address] = (gpu.get("mig_current", 0), gpu.get("mig_pending", 0), instances)
    return found


@pytest.mark.parametrize("profiles", [["4g.40gb", "3g.40gb"], {"1g.10gb": 7}, ["3c.3g.40gb", "1g.10gb+me"], ["3g.40gb@4", "2g.20gb"]])
def test_check_mode_names_what_the_run_makes_and_the_second_run_makes_nothing(simulated_node: Callable[..., Any], profiles: Any) -> None:
    node = simulated_node([A100, A100, "v100"])
    planned = apply({"gpus": "all", "profiles": profiles}, check_mode=True)
    assert node.mutations() == []
    made = apply({"gpus": "all", "profiles": profiles})
    assert geometry_of(planned) == geometry_of(made)
    assert planned["steps"] == made["steps"] and planned["diff"] == made["diff"]
    assert made["changed"] and made["disruptive"] and not made["reboot_required"]
    assert len(node.mutations()) == len(made["steps"])
    node.forget_mutations()
    again = apply({"gpus": "all", "profiles": profiles})
    assert not again["changed"] and again["gpus"] == made["gpus"] and node.mutations() == []


def test_the_result_gives_each_instance(simulated_node: Callable[..., Any]) -> None:
    simulated_node([A100])
    (gpu,) = apply({"gpus": 0, "profiles": ["3g.40gb@4"]})["gpus"]
    (instance,) = gpu["instances"]
    assert gpu["uuid"].startswith("GPU-") and instance["uuid"].startswith("MIG-")
    assert (instance["profile"], instance["start"], instance["slices"], instance["memory_mib"]) == ("3g.40gb", 4, 3, 40192)
    assert instance["gpu_instance_id"] in (1, 2) and instance["compute_instance_id"] == 0


@pytest.mark.parametrize("seed", range(6))
def test_sampled_pairs_of_layouts(simulated_node: Callable[..., Any], seed: int) -> None:
    source = random.Random(seed)
    node = simulated_node([A100])
    targets = [target for target in sorted(model.by_multiset(A100)) if target]
    for _number in range(10):
        state = model.some_state(A100, source.choice(model.layouts(A100)), source)
        target = source.choice(targets)
        node.set_state(stored({FIRST: state}))
        node.forget_mutations()
        result = apply({"gpus": 0, "profiles": list(target)})
        assert len(node.mutations()) == model.fewest_calls(A100, state, target), (state, target)
        assert model.multiset((one["profile"], one["start"]) for one in result["gpus"][0]["instances"]) == target
        assert all(one["uuid"] for one in result["gpus"][0]["instances"])


def test_a_busy_instance_stays_and_the_others_change(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    before = apply({"gpus": 0, "profiles": ["3g.40gb@4", "2g.20gb@0"]})["gpus"][0]["instances"][1]
    node.add_holder(FIRST, before["gpu_instance_id"], 0, pid=os.getpid())
    after = apply({"gpus": 0, "profiles": ["4g.40gb", "3g.40gb"]})["gpus"][0]["instances"]
    assert after[1] == before and after[0]["device"] == "4g.40gb@0"


def test_a_busy_instance_in_the_way_is_refused_before_the_first_call(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100, A100])
    made = apply({"gpus": [0, 1], "profiles": ["3g.40gb"]})
    node.add_holder(SECOND, made["gpus"][1]["instances"][0]["gpu_instance_id"], 0, pid=os.getpid())
    node.forget_mutations()
    with pytest.raises(Refused) as caught:
        apply({"gpus": [0, 1], "profiles": ["7g.80gb"]})
    assert f"process {os.getpid()} (" in str(caught.value) and SECOND in str(caught.value) and "3g.40gb@4" in str(caught.value)
    with pytest.raises(Refused, match=str(os.getpid())):
        apply({"gpus": "all", "mig": False})
    assert node.mutations() == []


def test_mode_changes_touch_only_gpus_whose_mode_differs(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100, A100, A100])
    apply({"gpus": 0, "profiles": ["7g.80gb"]})
    node.forget_mutations()
    result = apply({"gpus": [0, 1], "profiles": ["7g.80gb"]})
    assert {call["gpu"] for call in node.mutations()} == {SECOND} and result["mode_changes"] == [SECOND]
    node.forget_mutations()
    assert apply({"gpus": 0, "profiles": ["7g.80gb"]}, unlisted="disable")["mode_changes"] == [SECOND]
    assert [call["call"] for call in node.mutations()] == ["nvmlComputeInstanceDestroy", "nvmlGpuInstanceDestroy", "nvmlDeviceSetMigMode"]


def test_a_reset_follows_when_the_status_asks_for_it(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100, A100])
    node.set_faults({"call": "activation", "error": "RESET_REQUIRED", "gpu": SECOND})
    result = apply({"gpus": "all", "profiles": ["7g.80gb"]})
    assert geometry_of(result) == [["7g.80gb@0"]] * 2
    assert [call["gpu"] for call in node.mutations() if call["call"] == "gpuSandboxDeviceReset"] == [SECOND]


def test_passed_through_gpus_wait_for_a_reboot_and_are_not_asked_twice(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100], passthrough=True)
    first = apply({"gpus": 0, "profiles": ["7g.80gb"]})
    assert first["changed"] and first["reboot_required"]
    node.forget_mutations()
    second = apply({"gpus": 0, "profiles": ["7g.80gb"]})
    assert not second["changed"] and second["reboot_required"] and node.mutations() == []
    node.reboot()
    third = apply({"gpus": 0, "profiles": ["7g.80gb"]})
    assert geometry_of(third) == [["7g.80gb@0"]] and not third["reboot_required"]


def test_v100s_are_refused_by_name(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100, "v100"])
    with pytest.raises(InvalidInput, match=r"GPU 1 \(0000:0f:00\.0, Tesla V100"):
        apply({"gpus": [0, 1], "profiles": ["7g.80gb"]})
    assert node.mutations() == []


def test_an_old_driver_lists_no_profile_with_mig_off(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100], driver="535.183.06")
    with pytest.raises(Refused, match="lists no MIG profile"):
        apply({"gpus": 0, "profiles": ["3g.40gb"]}, tables={})
    with pytest.raises(InvalidInput, match=r"no MIG profile 9g\.90gb"):
        apply({"gpus": 0, "profiles": ["9g.90gb"]})
    assert node.mutations() == []
    planned = apply({"gpus": 0, "profiles": ["3g.40gb", "1g.20gb"]}, check_mode=True)
    assert geometry_of(planned) == geometry_of(apply({"gpus": 0, "profiles": ["3g.40gb", "1g.20gb"]}))


@pytest.mark.parametrize("driver", ["535.183.06", "580.95.05"])
def test_a_plan_from_declared_hardware_is_what_the_driver_then_gets(simulated_node: Callable[..., Any], driver: str) -> None:
    node = simulated_node([A100, A100, "v100"], driver=driver)
    selection = [{"gpus": [0], "profiles": ["2g.20gb", "3g.40gb", "1g.20gb"]}, {"gpus": 1, "profiles": ["1g.10gb+me", "3g.40gb"]}]
    models = [{"model": "A100-SXM4-80GB", "count": 2}, {"model": "V100-PCIE-32GB", "count": 1}]
    node.unload_driver()
    with pytest.raises(DriverUnavailable, match="modprobe nvidia"):
        apply(*selection, declared_models=models)
    planned = apply(*selection, check_mode=True, declared_models=models)
    assert planned["source"] == "declared" and {gpu["source"] for gpu in planned["gpus"]} == {"declared"}
    node.load_driver()
    assert geometry_of(apply(*selection)) == geometry_of(planned)


def test_hopper_loses_its_mode_with_the_driver_and_gets_it_back(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node(["h100_80gb"])
    first = apply({"gpus": "all", "profiles": ["1g.20gb", "3g.40gb"]})
    node.reboot()
    again = apply({"gpus": "all", "profiles": ["1g.20gb", "3g.40gb"]})
    assert again["changed"] and geometry_of(again) == geometry_of(first)


def test_without_root_the_way_out_is_named(simulated_node: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    node = simulated_node([A100])
    monkeypatch.setenv("GPU_SANDBOX_UID", "1000")
    with pytest.raises(GpuError, match="become: true"):
        apply({"gpus": 0, "profiles": ["7g.80gb"]})
    assert node.mutations() == []


# --- failures in the middle ---
START: dict[str, model.State | None] = {
    FIRST: {("1g.10gb", 0): (model.FULL,), ("2g.20gb", 2): (model.PARTIAL,), ("1g.10gb", 5): (), ("1g.10gb", 6): (model.FULL,)},
    SECOND: None,
    THIRD: {("3g.40gb", 4): (model.PARTIAL, model.PARTIAL), ("1g.20gb", 0): (model.FULL,)},
}
CHANGE: tuple[dict[str, Any], ...] = (
    {"gpus": FIRST, "profiles": ["4g.40gb", "1g.10gb"]},
    {"gpus": SECOND, "profiles": ["3g.40gb"]},
    {"gpus": THIRD, "mig": False},
)


def calls_of_the_change(node: Any) -> list[tuple[str, int]]:
    """Each mutating call of the change as (function, its number among the calls of that function)."""
    node.set_state(stored(START))
    apply(*CHANGE)
    seen: Counter[str] = Counter()
    calls = []
    for call in node.mutations():
        seen[call["call"]] += 1
        calls.append((call["call"], seen[call["call"]]))
    return calls


@pytest.mark.parametrize("code", CODES)
def test_an_error_at_any_call_restores_what_was(simulated_node: Callable[..., Any], code: str) -> None:
    node = simulated_node([A100, A100, A100])
    calls = calls_of_the_change(node)
    assert len(calls) == 16
    for function, number in calls:
        node.set_state(stored(START))
        before = snapshot(node)
        node.set_faults({"call": function, "nth": number, "error": code})
        try:
            apply(*CHANGE)
        except ApplyFailed as error:
            assert snapshot(node) == before, (function, number, str(error))
            assert code in str(error) and "restored" in str(error) and "new MIG UUIDs" in str(error)
        else:
            assert code == "IN_USE" and "Destroy" in function, f"{code} at call {number} of {function} was overlooked"


@pytest.mark.parametrize("status", ["IN_USE", "RESET_REQUIRED", "UNKNOWN", "GPU_IS_LOST"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_mode_that_stays_pending_is_taken_back(simulated_node: Callable[..., Any], status: str, number: int) -> None:
    node = simulated_node([A100, A100, A100])
    node.set_state(stored(START))
    before = snapshot(node)
    wrong = (SECOND, THIRD)[number - 1]
    # The reset fails as well; taking the pending mode back needs neither.
    node.set_faults(
        {"call": "activation", "error": status, "gpu": wrong, "times": "always"}, {"call": "gpuSandboxDeviceReset", "error": "UNKNOWN"}
    )
    with pytest.raises(ApplyFailed, match=r"restored"):
        apply(*CHANGE)
    assert snapshot(node) == before


def test_a_transient_in_use_is_retried(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    apply({"gpus": 0, "profiles": ["7g.80gb"]})
    node.set_faults(
        {"call": "nvmlComputeInstanceDestroy", "error": "IN_USE", "times": 2},
        {"call": "nvmlGpuInstanceDestroy", "error": "IN_USE", "times": 3},
    )
    assert geometry_of(apply({"gpus": 0, "profiles": ["3g.40gb"]})) == [["3g.40gb@4"]]


def test_a_rollback_that_fails_says_what_stands(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    apply({"gpus": 0, "profiles": ["3g.40gb@4", "2g.20gb@0"]})
    node.set_faults({"call": "nvmlDeviceCreateGpuInstance*", "error": "UNKNOWN", "times": "always"})
    with pytest.raises(ApplyFailed, match=rf"Restoring the former geometry failed too .*What stands now: {FIRST}: MIG enabled, 3g\.40gb@4"):
        apply({"gpus": 0, "profiles": ["3g.40gb", "1g.20gb"]})


def test_a_compute_instance_that_fails_leaves_no_empty_gpu_instance(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    node.set_state(stored({FIRST: {}}))
    node.set_faults({"call": "nvmlGpuInstanceCreateComputeInstance", "error": "INSUFFICIENT_RESOURCES"})
    with pytest.raises(ApplyFailed, match=r"compute instance of 7g\.80gb@0 on 0000:07:00\.0 failed: NVML answered INSUFFICIENT_RESOURCES"):
        apply({"gpus": 0, "profiles": ["7g.80gb"]})
    assert snapshot(node)[FIRST] == (1, 1, [])


def test_a_gpu_that_cannot_be_read_is_named(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    node.set_faults({"call": "nvmlDeviceGetName", "error": "GPU_IS_LOST", "times": "always"})
    with pytest.raises(GpuError, match="GPU 0 cannot be read: NVML answered GPU_IS_LOST"):
        apply({"gpus": 0, "profiles": ["7g.80gb"]})


def test_a_driver_that_hangs_ends_in_a_sentence(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    node.set_state(stored({FIRST: {}}))
    node.set_faults({"call": "nvmlGpuInstanceCreateComputeInstance", "hang": True})
    with pytest.raises(DriverHang) as caught:
        apply({"gpus": 0, "profiles": ["7g.80gb"]}, timeout=1.0)
    text = str(caught.value)
    assert "create the compute instance of 7g.80gb@0 on 0000:07:00.0" in text
    assert "had succeeded before: create GPU instance 7g.80gb@0 on 0000:07:00.0" in text


# --- concurrent runs ---
def test_a_run_that_holds_the_node_keeps_another_out(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    with _lock.exclusive(1.0), pytest.raises(Refused, match=rf"Another run \(process {os.getpid()}\)"):
        apply({"gpus": 0, "profiles": ["7g.80gb"]}, timeout=0.1)
    assert node.mutations() == []
    apply({"gpus": 0, "profiles": ["7g.80gb"]})


def test_runs_at_the_same_time_make_the_changes_once(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100, A100])
    context = multiprocessing.get_context("fork")
    runs = [context.Process(target=apply, args=({"gpus": "all", "profiles": ["4g.40gb", "3g.40gb"]},)) for _number in range(3)]
    for process in runs:
        process.start()
    for process in runs:
        process.join()
    assert [process.exitcode for process in runs] == [0, 0, 0]
    assert len(node.mutations()) == 10
