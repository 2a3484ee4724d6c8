# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu-sandbox: faults, holders and exchanged GPUs, below a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _hardware import node
from gpu_sandbox import control, health, holders, modules, mounts, swap
from gpu_sandbox.pci import PciTree
from gpu_sandbox.tree import Tree

FIRST, SECOND = "0000:07:00.0", "0000:0f:00.0"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Its mounts are recorded in `mounted`, one line each."""
    hardware = node()
    (tmp_path / "hardware.json").write_text(json.dumps(hardware), encoding="utf-8")
    PciTree(Tree(str(tmp_path / "sys")), hardware).build()
    (tmp_path / "nvidia3").touch()
    monkeypatch.setattr(modules, "RUN", str(tmp_path))
    monkeypatch.setattr(modules, "DEV", str(tmp_path))
    monkeypatch.setattr(modules, "HARDWARE", str(tmp_path / "hardware.json"))
    monkeypatch.setattr(swap, "OWN", str(tmp_path / "own.json"))
    monkeypatch.setattr(health, "KMSG", str(tmp_path / "no-kmsg"))
    monkeypatch.setattr(control, "MUTATIONS", str(tmp_path / "mutations.jsonl"))
    monkeypatch.setattr(mounts, "bind", lambda source, target: (tmp_path / "mounted").write_text(f"{source} {target}\n", encoding="utf-8"))
    yield tmp_path
    holders.clear()


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_health_faults_add_up_and_vanish(machine: Path) -> None:
    assert control.main(["health", "set", "0", "ecc_uncorrected=3", "remapped_rows_failed=on"]) == 0
    assert control.main(["health", "set", FIRST, "nvlinks_down=1,4", "remapped_rows_failed=off"]) == 0
    assert control.main(["health", "set", "1", "lost"]) == 0
    expected = {FIRST: {"ecc_uncorrected": 3, "remapped_rows_failed": False, "nvlinks_down": [1, 4]}, SECOND: {"lost": True}}
    assert document(machine / "health.json") == expected
    assert control.main(["health", "clear", "0"]) == 0
    assert document(machine / "health.json") == {SECOND: {"lost": True}}
    assert control.main(["health", "clear"]) == 0
    assert document(machine / "health.json") == {}


def test_slow_link_shows_in_sysfs(machine: Path) -> None:
    device = machine / "sys/bus/pci/devices" / FIRST
    control.main(["health", "set", "0", "pcie_width=8", "pcie_generation=3"])
    assert (device / "current_link_width").read_text(encoding="ascii") == "8\n"
    assert (device / "current_link_speed").read_text(encoding="ascii") == "8.0 GT/s PCIe\n"
    assert (device / "max_link_width").read_text(encoding="ascii") == "16\n"
    control.main(["health", "clear"])
    assert (device / "current_link_width").read_text(encoding="ascii") == "16\n"


def test_xids_are_in_a_kernel_log_of_the_nodes_own(machine: Path) -> None:
    control.main(["health", "set", "0", "xids=79,48"])
    lines = (machine / "kmsg").read_text(encoding="ascii").splitlines()
    assert [line.partition(";")[2][:35] for line in lines] == ["NVRM: Xid (PCI:0000:07:00): 79, pid", "NVRM: Xid (PCI:0000:07:00): 48, pid"]
    assert (machine / "mounted").read_text(encoding="utf-8") == f"{machine}/kmsg {machine}/no-kmsg\n"


def test_without_xids_the_kernels_log_stays(machine: Path) -> None:
    control.main(["health", "set", "0", "lost"])
    assert not (machine / "mounted").exists()


def test_listed_holder(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert control.main(["holders", "add", "1", "--gpu-instance", "3", "--memory-mib", "900"]) == 0
    pid = int(capsys.readouterr().out)
    os.kill(pid, 0)
    expected = {"kind": "nvml", "gpu": SECOND, "pid": pid, "used_memory_mib": 900, "gpu_instance_id": 3, "compute_instance_id": 0}
    assert document(machine / "holders.json") == [expected]
    assert control.main(["holders", "clear"]) == 0
    assert document(machine / "holders.json") == []
    assert os.waitpid(pid, 0)[0] == pid


def test_holder_by_device_file_is_not_listed(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert control.main(["holders", "add", "3", "--device-file"]) == 0
    pid = int(capsys.readouterr().out)
    assert os.readlink(f"/proc/{pid}/fd/0") == str(machine / "nvidia3")
    assert holders.read() == []
    holders.clear()
    os.waitpid(pid, 0)


def test_faults_and_latency(machine: Path) -> None:
    (machine / "fault-counters.json").write_text('{"0": 2}', encoding="utf-8")
    assert control.main(["faults", "set", '[{"call": "nvmlInit_v2", "error": "UNKNOWN"}]']) == 0
    assert document(machine / "faults.json") == [{"call": "nvmlInit_v2", "error": "UNKNOWN"}]
    assert not (machine / "fault-counters.json").exists()
    assert control.main(["latency", "set", "2000"]) == 0
    assert document(machine / "latency.json") == {"microseconds": 2000}
    assert control.main(["faults", "clear"]) == 0
    assert control.main(["latency", "clear"]) == 0
    assert not (machine / "faults.json").exists()
    assert not (machine / "latency.json").exists()


def test_mutations_are_shown_and_forgotten(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert control.main(["mutations"]) == 0
    (machine / "mutations.jsonl").write_text('{"call": "x"}\n', encoding="utf-8")
    assert control.main(["mutations"]) == 0
    assert capsys.readouterr().out == '{"call": "x"}\n'
    assert control.main(["mutations", "--clear"]) == 0
    assert not (machine / "mutations.jsonl").exists()


def test_replaced_gpu_is_another_in_the_same_slot(machine: Path) -> None:
    assert control.main(["slot", "replace", "1"]) == 0
    before, after = document(machine / "hardware.json"), document(machine / "own.json")
    differing = [index for index, (old, new) in enumerate(zip(before["gpus"], after["gpus"])) if old != new]
    assert differing == [1]
    old, new = before["gpus"][1], after["gpus"][1]
    assert {key for key in old if old[key] != new[key]} == {"uuid", "serial"}
    assert control.main(["slot", "restore"]) == 0
    assert not (machine / "own.json").exists()


def test_empty_slot_moves_the_numbers_up(machine: Path) -> None:
    assert control.main(["slot", "remove", FIRST]) == 0
    gpus = document(machine / "own.json")["gpus"]
    assert [gpu["minor_number"] for gpu in gpus] == list(range(7))
    assert gpus[0]["pci_address"] == SECOND


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["health", "set", "9", "lost"], "no GPU 9"),
        (["health", "set", "0", "broken=1"], "'broken=1' is no health fault"),
        (["health", "set", "0", "pcie_width=wide"], "'pcie_width=wide' is no health fault"),
        (["faults", "set", "oops"], "no JSON"),
        (["faults", "set", '{"call": "x"}'], "list of objects"),
        (["latency", "set", "long"], "'long' is no time"),
        (["slot", "replace", "0000:aa:00.0"], "no GPU 0000:aa:00.0"),
    ],
)
def test_wrong_use_is_one_sentence_and_changes_nothing(
    machine: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(machine.iterdir())
    assert control.main(words) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1
    assert sorted(machine.iterdir()) == before


def test_outside_of_a_node_it_says_so(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (machine / "hardware.json").unlink()
    assert control.main(["health", "set", "0", "lost"]) == 2
    assert "works only in a node of the sandbox" in capsys.readouterr().err
