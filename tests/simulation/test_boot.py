# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program at boot against the simulated driver: it brings back what the modules applied, or says why not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import (
    _boot,
    _device_files,
    _devices,
    _lock,
    _mig_run,
    _services,
    _settings_record,
    _settings_run,
)
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _boot_files, _gpu_profiles

FIRST, SECOND, V100 = "0000:07:00.0", "0000:0f:00.0", "0000:17:00.0"
GEOMETRY = [{"gpus": 0, "profiles": ["4g.40gb", "3g.40gb"], "mig": True}]
SETTINGS = [
    {"gpus": [FIRST, V100], "persistence": True, "power_limit_w": 250, "graphics_clocks_mhz": 1200},
    {"gpus": SECOND, "persistence": True, "compute_mode": "exclusive_process"},
]


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "version").write_text("580.95.05")
    for module, name, file in (
        (_boot, "DECLARATION", "boot.json"),
        (_boot, "KNOWLEDGE", "knowledge.json"),
        (_devices, "PATH", "run/devices.json"),
        (_device_files, "CDI_UNIT", "absent.service"),
        (_lock, "PATH", "lock"),
        (_services, "NOTE", "run/paused.json"),
        (_settings_record, "PATH", "run/locked-clocks.json"),
        (_settings_record, "MODULE_VERSION", "version"),
        (_settings_record, "PERSISTENCED", "persistenced.pid"),
    ):
        monkeypatch.setattr(module, name, str(tmp_path / file))
    monkeypatch.setattr(_boot, "RETRY_S", 0.05)
    (tmp_path / "knowledge.json").write_text(json.dumps({"pynvml": None, "profile_tables": _gpu_profiles.tables()[0]}))
    return tmp_path


def declare(folder: Path, geometry: list[Any], settings: list[Any], **options: Any) -> None:
    chosen = {"paused_services": [], "driver_timeout": 1, "timeout": 20, **options}
    (folder / "boot.json").write_text(_boot_files.declaration(geometry, settings, **chosen)["content"])


def apply(folder: Path, **options: Any) -> dict[str, Any]:
    """What the role does; the boot's declaration is what the modules return."""
    geometry = _mig_run.run(_mig_run.Request(GEOMETRY, tables=_gpu_profiles.tables()[0]), False, _boot.reset_gpu)
    settings = _settings_run.run(_settings_run.Request(SETTINGS), False)
    declare(folder, geometry["exact"], settings["exact"], **options)
    return geometry


def boot(node: Any, folder: Path) -> int:
    node.forget_mutations()
    return _boot.main()


def state(node: Any) -> dict[str, Any]:
    """What a boot must bring back: neither ids nor UUIDs of instances."""
    gpus = json.loads(json.dumps(node.state()["gpus"]))
    for gpu in gpus.values():
        gpu["instances"] = sorted([one["profile_id"], one["start"], len(one["compute_instances"])] for one in gpu["instances"])
    return gpus


def reboot(node: Any, folder: Path) -> None:
    node.reboot()
    for path in (folder / "run").glob("*"):
        path.unlink()


def test_a_reboot_is_undone(simulated_node: Callable[..., Any], own_files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = simulated_node(["a100_80gb", "a100_80gb", "v100"])
    geometry = apply(own_files)
    before = state(node)
    reboot(node, own_files)
    assert boot(node, own_files) == 0, capsys.readouterr().err
    assert state(node) == before
    devices = json.loads((own_files / "run/devices.json").read_text())
    assert set(devices) == set(geometry["devices"]) == {f"{FIRST}/4g.40gb@0", f"{FIRST}/3g.40gb@4", SECOND, V100}
    assert all(devices.values()) and devices[f"{FIRST}/4g.40gb@0"] != geometry["devices"][f"{FIRST}/4g.40gb@0"]
    assert (own_files / "run/devices.json").read_text() == _boot_files.devices(devices)["content"]


def test_nothing_is_changed_when_all_is_in_place(
    simulated_node: Callable[..., Any], own_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = simulated_node(["a100_80gb", "a100_80gb", "v100"])
    apply(own_files)
    assert boot(node, own_files) == 0
    capsys.readouterr()
    assert boot(node, own_files) == 0
    assert node.mutations() == []
    assert capsys.readouterr() == ("", "")


def test_the_mode_of_hopper_comes_back_too(simulated_node: Callable[..., Any], own_files: Path) -> None:
    node = simulated_node(["h100_80gb"])
    declare(own_files, [{"gpus": FIRST, "mig": True, "profiles": ["3g.40gb@4", "1g.10gb@0"]}], [])
    assert boot(node, own_files) == 0
    reboot(node, own_files)
    assert state(node).get(FIRST, {}).get("mig_current", 0) == 0 if node.state() else True
    assert boot(node, own_files) == 0
    assert len(state(node)[FIRST]["instances"]) == 2


def test_the_driver_may_be_late(simulated_node: Callable[..., Any], own_files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = simulated_node(["a100_80gb", "a100_80gb", "v100"])
    apply(own_files, driver_timeout=20)
    before = state(node)
    reboot(node, own_files)
    node.set_faults({"call": "nvmlInit_v2", "times": 5, "error": "DRIVER_NOT_LOADED"})
    assert boot(node, own_files) == 0
    assert state(node) == before
    assert "Waiting up to 20 s for the driver" in capsys.readouterr().out


def test_a_driver_that_never_comes_ends_the_wait(
    simulated_node: Callable[..., Any], own_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = simulated_node(["a100_80gb", "a100_80gb", "v100"])
    apply(own_files, driver_timeout=0.2)
    node.unload_driver()
    assert boot(node, own_files) == 1
    assert "kernel module is not loaded" in capsys.readouterr().err
    assert not (own_files / "run/devices.json").exists()


@pytest.mark.parametrize(
    ("geometry", "sentence"),
    [
        ([{"gpus": FIRST, "mig": True, "profiles": ["9g.90gb"]}], "has no MIG profile 9g.90gb"),
        ([{"gpus": FIRST, "mig": True, "profiles": ["4g.40gb@0", "4g.40gb@0"]}], "is not possible"),
        ([{"gpus": "0000:ff:00.0", "mig": True, "profiles": ["1g.10gb"]}], "this node has no GPU"),
        ([{"gpus": V100, "mig": True, "profiles": ["1g.10gb"]}], "has no MIG"),
    ],
)
def test_an_impossible_declaration_fails_in_one_sentence_and_the_rest_is_done(
    simulated_node: Callable[..., Any], own_files: Path, capsys: pytest.CaptureFixture[str], geometry: Any, sentence: str
) -> None:
    node = simulated_node(["a100_80gb", "a100_80gb", "v100"])
    apply(own_files)
    exact = json.loads((own_files / "boot.json").read_text())
    reboot(node, own_files)
    (own_files / "boot.json").write_text(json.dumps({**exact, "geometry": geometry}))
    assert boot(node, own_files) == 1
    error = capsys.readouterr().err.strip()
    assert sentence in error and "\n" not in error
    assert state(node)[V100]["power_limit_mw"] == 250000
    assert set(json.loads((own_files / "run/devices.json").read_text())) == {SECOND, V100}


def test_a_declaration_of_another_shape_is_refused(
    simulated_node: Callable[..., Any], own_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = simulated_node(["a100_80gb"])
    declare(own_files, [["4g.40gb"]], [])
    assert boot(node, own_files) == 1
    assert "is not as the role mig writes it" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "", "[]", '{"version": 7}', "{"])
def test_a_file_that_is_none_of_ours_is_refused(own_files: Path, capsys: pytest.CaptureFixture[str], content: str | None) -> None:
    if content is not None:
        (own_files / "boot.json").write_text(content)
    assert _boot.main() == 1
    error = capsys.readouterr().err.strip()
    assert "run the role mig of this node again" in error and "\n" not in error


def test_a_hanging_driver_ends_the_boot(simulated_node: Callable[..., Any], own_files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = simulated_node(["a100_80gb", "a100_80gb", "v100"])
    apply(own_files, timeout=1)
    reboot(node, own_files)
    node.set_faults({"call": "nvmlDeviceCreateGpuInstance*", "hang": True})
    assert boot(node, own_files) == 1
    assert "did not answer within 1 s" in capsys.readouterr().err


def test_what_goes_to_the_node_runs_there_by_itself(tmp_path: Path) -> None:
    """With the node's Python only: neither the collection nor Ansible nor pynvml is found."""
    for entry in _boot_files.program():
        path = tmp_path / entry["path"].removeprefix("/usr/local/lib/heterogpu/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(entry["content"])
    module = f"{_boot_files.PACKAGE}._boot"
    command = f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); runpy.run_module({module!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("/etc/heterogpu/boot.json cannot be read"), done.stderr
    assert done.stderr.count("\n") == 1


def test_a_full_disk_is_said(simulated_node: Callable[..., Any], own_files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = simulated_node(["v100"])
    declare(own_files, [], [])
    (own_files / "run").write_text("no folder")
    assert boot(node, own_files) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines and all(line.startswith("A file cannot be written") for line in lines)


def test_check_mode_of_a_node_without_driver_and_without_declaration(simulated_node: Callable[..., Any]) -> None:
    simulated_node(["v100"]).unload_driver()
    planned = _mig_run.run(_mig_run.Request([]), True, _boot.reset_gpu)
    assert not planned["changed"] and planned["devices"] == {}
