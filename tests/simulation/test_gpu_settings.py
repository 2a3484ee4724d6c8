# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu_settings against the simulated driver: what it calls, and what stands afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _lock, _settings_record
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed, DriverHang, GpuError, InvalidInput
from ansible_collections.heterogpu.inference.plugins.module_utils._settings_run import Request, run

A100, FIRST, SECOND = "a100_80gb", "0000:07:00.0", "0000:0f:00.0"
EVERYTHING = {
    "gpus": "all",
    "persistence": True,
    "compute_mode": "exclusive_process",
    "power_limit_w": 250,
    "graphics_clocks_mhz": [1200, 1410],
    "memory_clocks_mhz": 1593,
}


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "version").write_text("580.95.05")
    for module, name, file in (
        (_lock, "PATH", "lock"),
        (_settings_record, "PATH", "run/locked-clocks.json"),
        (_settings_record, "MODULE_VERSION", "version"),
        (_settings_record, "PERSISTENCED", "persistenced.pid"),
    ):
        monkeypatch.setattr(module, name, str(tmp_path / file))
    return tmp_path


def apply(*settings: dict[str, Any], check_mode: bool = False, timeout: float = 20.0) -> dict[str, Any]:
    return run(Request(list(settings), timeout), check_mode)


def gpu(result: dict[str, Any], address: str = FIRST) -> dict[str, Any]:
    return next(one for one in result["gpus"] if one["pci_address"] == address)


def calls(node: Any) -> list[str]:
    return [entry["call"].removeprefix("nvmlDeviceSet") for entry in node.mutations()]


def settings_of(node: Any) -> dict[str, Any]:
    names = ("persistence_mode", "compute_mode", "power_limit_mw", "locked_gpu_clocks", "locked_memory_clocks")
    return {address: {name: state[name] for name in names if state.get(name)} for address, state in node.state().get("gpus", {}).items()}


def test_check_mode_names_what_the_run_sets_and_the_second_run_sets_nothing(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100, A100])
    planned = apply(EVERYTHING, check_mode=True)
    assert node.mutations() == [] and not Path(_settings_record.PATH).exists()
    made = apply(EVERYTHING)
    assert planned["steps"] == made["steps"] and planned["diff"] == made["diff"] and planned["gpus"] == made["gpus"]
    assert calls(node) == ["PersistenceMode", "GpuLockedClocks", "MemoryLockedClocks", "PowerManagementLimit", "ComputeMode"] * 2
    stands = {
        "persistence_mode": 1,
        "compute_mode": 3,
        "power_limit_mw": 250000,
        "locked_gpu_clocks": [1200, 1410],
        "locked_memory_clocks": [1593, 1593],
    }
    assert settings_of(node) == {FIRST: stands, SECOND: stands}
    node.forget_mutations()
    again = apply(EVERYTHING)
    assert not again["changed"] and again["steps"] == [] and node.mutations() == []
    assert gpu(again)["graphics_clocks_mhz"] == {"value": [1200, 1410], "verifiable": False}
    exact = apply(*again["exact"])
    assert not exact["changed"] and exact["exact"] == again["exact"]


def test_only_what_differs_is_set(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    apply(EVERYTHING)
    node.forget_mutations()
    result = apply({**EVERYTHING, "power_limit_w": "default"})
    assert calls(node) == ["PowerManagementLimit"]
    assert result["steps"] == [{"action": "set", "gpu": FIRST, "setting": "power_limit_w", "before": 250, "after": 400, "verifiable": True}]


def test_a_selection_leaves_the_other_gpus_alone(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100, "v100"])
    apply({"gpus": SECOND, "persistence": True, "power_limit_w": 200})
    assert settings_of(node).get(FIRST, {}) == {}
    assert settings_of(node)[SECOND] == {"persistence_mode": 1, "power_limit_mw": 200000}


@pytest.mark.parametrize("event", ["reboot", "reload", "persistenced", "reset"])
def test_clocks_are_set_once_more_when_it_is_unknown_what_they_are(simulated_node: Callable[..., Any], own_files: Path, event: str) -> None:
    node = simulated_node([A100])
    apply(EVERYTHING)
    if event == "reboot":
        node.reboot()
        Path(_settings_record.PATH).unlink()
    elif event == "reload":
        (own_files / "new").write_text("580.95.05")
        (own_files / "new").rename(own_files / "version")  # another inode
    elif event == "persistenced":
        (own_files / "persistenced.pid").write_text("4711\n")
        assert not apply(EVERYTHING)["changed"]  # it came later and has let go of nothing
        (own_files / "persistenced.pid").write_text("4712\n")
    else:
        _settings_record.forget()
    node.forget_mutations()
    planned = apply(EVERYTHING, check_mode=True)
    assert {step["setting"] for step in planned["steps"]} >= {"graphics_clocks_mhz", "memory_clocks_mhz"}
    assert next(step for step in planned["steps"] if step["setting"] == "graphics_clocks_mhz")["before"] is None
    assert apply(EVERYTHING)["changed"]
    assert not apply(EVERYTHING)["changed"]


def test_clocks_are_unknown_while_persistence_mode_is_off(simulated_node: Callable[..., Any]) -> None:
    simulated_node([A100])
    apply({"gpus": 0, "persistence": True, "graphics_clocks_mhz": 1410})
    pynvml.nvmlInit()
    pynvml.nvmlDeviceSetPersistenceMode(pynvml.nvmlDeviceGetHandleByIndex(0), 0)
    pynvml.nvmlShutdown()
    result = apply({"gpus": 0, "persistence": True, "graphics_clocks_mhz": 1410})
    assert [step["setting"] for step in result["steps"]] == ["persistence", "graphics_clocks_mhz"]


def test_unlocked_clocks(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    apply(EVERYTHING)
    result = apply({**EVERYTHING, "graphics_clocks_mhz": "unlocked", "memory_clocks_mhz": "unlocked"})
    assert result["changed"] and "locked_gpu_clocks" not in settings_of(node)[FIRST]
    assert gpu(result)["memory_clocks_mhz"]["value"] == "unlocked"


def test_ecc_waits_for_the_reboot(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    first = apply({"gpus": 0, "ecc": False})
    assert first["changed"] and first["reboot_required"] and first["disruptive"]
    second = apply({"gpus": 0, "ecc": False})
    assert not second["changed"] and second["reboot_required"] and not second["disruptive"]
    node.reboot()
    third = apply({"gpus": 0, "ecc": False})
    assert not third["changed"] and not third["reboot_required"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"gpus": 0, "power_limit_w": 1000, "persistence": True}, "write a number from 100 to 400"),
        ({"gpus": 0, "power_limit_w": "much"}, "write a number of watts, or `default`"),
        ({"gpus": 0, "graphics_clocks_mhz": [1410, 1200]}, "write the lowest and the highest clock"),
        ({"gpus": 0, "graphics_clocks_mhz": [1200, 1300, 1410]}, "write the lowest and the highest clock"),
        ({"gpus": 0, "graphics_clocks_mhz": 2000, "persistence": True}, "its highest clock is 1410 MHz"),
        ({"gpus": 0, "memory_clocks_mhz": 800, "persistence": True}, "it has 1593 MHz"),
        ({"gpus": 0, "power_limit_w": 300}, "declare `persistence: true` too"),
        ({"gpus": 0, "compute_mode": "exclusive"}, "write one of default"),
        ({"gpus": 0}, "no setting is declared"),
        ({"gpus": 0, "fan": 1}, "there is no setting 'fan'"),
        ({"gpus": 9, "persistence": True}, "this node has no GPU '9'"),
        ({"persistence": True}, "`gpus` is missing"),
    ],
)
def test_mistakes_are_refused_before_any_call(simulated_node: Callable[..., Any], settings: dict[str, Any], sentence: str) -> None:
    node = simulated_node([A100])
    with pytest.raises(InvalidInput, match=sentence):
        apply(settings)
    assert node.mutations() == []


def test_a_gpu_is_named_once(simulated_node: Callable[..., Any]) -> None:
    simulated_node([A100])
    with pytest.raises(InvalidInput, match="is already declared by settings"):
        apply({"gpus": "all", "persistence": True}, {"gpus": FIRST, "ecc": True})


def test_compute_mode_belongs_to_whole_gpus(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    node.set_state({"gpus": {FIRST: {"mig_current": 1, "mig_pending": 1, "instances": [], "ecc_current": 1}}, "serial": 0})
    with pytest.raises(InvalidInput, match="cannot become exclusive_process while the GPU is in MIG mode"):
        apply({"gpus": 0, "compute_mode": "exclusive_process"})
    assert not apply({"gpus": 0, "compute_mode": "default"})["changed"]


def test_what_a_v100_cannot_do_is_said_and_the_rest_taken_back(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node(["v100"])
    with pytest.raises(ApplyFailed, match=r"V100.* does not support locked memory clocks.*remove memory_clocks_mhz.*were restored"):
        apply({**EVERYTHING, "memory_clocks_mhz": 877, "graphics_clocks_mhz": 1380})
    assert settings_of(node) == {FIRST: {}}


@pytest.mark.parametrize("nth", range(1, 11))
def test_a_failing_call_takes_back_all_before_it(simulated_node: Callable[..., Any], nth: int) -> None:
    node = simulated_node([A100, A100])
    apply({"gpus": 0, "persistence": True, "power_limit_w": 300, "graphics_clocks_mhz": 1200})
    before = settings_of(node)
    node.set_faults({"call": "nvmlDeviceSet*", "nth": nth, "error": "UNKNOWN"})
    wanted = {**EVERYTHING, "ecc": False}
    with pytest.raises(ApplyFailed, match="NVML answered UNKNOWN") as caught:
        apply(wanted)
    assert settings_of(node) == before | {SECOND: {}}
    assert ("Nothing was changed" in str(caught.value)) == (nth == 1)
    node.clear_faults()
    assert apply(wanted)["changed"]
    assert not apply(wanted)["changed"]


def test_a_setting_that_did_not_happen_is_found(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    node.set_faults({"call": "nvmlDeviceGetPowerManagementLimit", "nth": 2, "error": "NOT_SUPPORTED"})
    with pytest.raises(ApplyFailed, match=r"power limit of GPU 0 .* is unknown after it was set to 250 W without an error.*restored"):
        apply(EVERYTHING)
    assert settings_of(node) == {FIRST: {}}


def test_without_root_nothing_is_changed(simulated_node: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    simulated_node([A100])
    monkeypatch.setenv("GPU_SANDBOX_UID", "1000")
    with pytest.raises(ApplyFailed, match="needs root"):
        apply(EVERYTHING)


def test_a_hanging_driver_is_left(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    node.set_faults({"call": "nvmlDeviceSetPowerManagementLimit", "hang": True})
    with pytest.raises(DriverHang, match="set power limit of GPU 0") as caught:
        apply(EVERYTHING, timeout=1.0)
    assert "Calls that had succeeded before: set persistence mode" in str(caught.value)


def test_check_mode_without_a_driver_plans_nothing_and_a_run_fails(simulated_node: Callable[..., Any]) -> None:
    node = simulated_node([A100])
    node.unload_driver()
    planned = apply(EVERYTHING, check_mode=True)
    assert planned["changed"] and planned["source"] == "none"
    with pytest.raises(GpuError, match="not loaded"):
        apply(EVERYTHING)
