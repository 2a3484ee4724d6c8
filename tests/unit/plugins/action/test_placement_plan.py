# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""placement_plan as an operator runs it: a playbook, an inventory, no node reachable."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - heterogpu.inference.placement_plan:
        directory: "{{ directory }}"
        gpu_info: "{{ facts | default({}) }}"
      register: placement
    - ansible.builtin.copy:
        content: "{{ placement | to_json }}"
        dest: "{{ directory }}/result.json"
        mode: "0600"
      when: not ansible_check_mode
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "inventories" / "hongkong", tmp_path / "inventory")
    (tmp_path / "play.yml").write_text(PLAY, encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(Path(sys.executable).parent / "ansible-playbook"),
        "-i",
        "inventory",
        "play.yml",
        "-e",
        f"directory={folder}/plan",
        *arguments,
    ]
    environment = os.environ | {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(folder / "home")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_it_plans_writes_shows_and_then_changes_nothing(folder: Path) -> None:
    checked = run(folder, "--check", "--diff")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "changed=1" in checked.stdout
    assert "a100-1/0000:87:00.0: MIG off -> 4g.40gb@0+3g.40gb@4" in checked.stdout
    assert not (folder / "plan").exists()
    first = run(folder)
    assert first.returncode == 0, first.stdout + first.stderr
    plan = (folder / "plan" / "plan.json").read_bytes()
    result = json.loads((folder / "plan" / "result.json").read_text(encoding="utf-8"))
    assert result["complete"]
    assert result["plan"] == json.loads(plan)
    assert "36 of 36 replicas placed" in result["text"]
    run(folder)
    result = json.loads((folder / "plan" / "result.json").read_text(encoding="utf-8"))
    assert not result["changed"]
    assert (folder / "plan" / "plan.json").read_bytes() == plan


def test_a_fault_names_file_variable_and_value(folder: Path) -> None:
    file = folder / "inventory" / "group_vars" / "a100.yml"
    file.write_text(file.read_text(encoding="utf-8").replace("count: 8", "count: eight"), encoding="utf-8")
    failed = run(folder)
    assert failed.returncode == 2
    expected = (
        "inventory/group_vars/a100.yml (hosts a100-1, a100-2): gpu_devices[0].count is 'eight', but must be a whole number from 1 to 16."
    )
    assert expected in failed.stdout + failed.stderr
    assert "Traceback" not in failed.stdout + failed.stderr


def test_a_broken_plan_in_force_is_said(folder: Path) -> None:
    (folder / "plan").mkdir()
    (folder / "plan" / "plan.json").write_text("{", encoding="utf-8")
    failed = run(folder)
    assert "restore it from a copy, or remove it to plan anew" in failed.stdout + failed.stderr


def test_hardware_that_differs_is_reported(folder: Path) -> None:
    gpus: list[dict[str, Any]] = [
        {"index": index, "name": "Tesla V100-PCIE-32GB", "pci_address": None, "numa_node": index // 4, "nvlinks": []} for index in range(8)
    ]
    gpus[3]["name"], gpus[5]["numa_node"] = "Tesla V100-PCIE-16GB", 0
    extra = {"facts": {"v100-1": {"gpus": gpus}, "v100-2": {"gpus": gpus[:7]}, "a100-1": {"gpus": []}}}
    assert run(folder, "-e", json.dumps(extra)).returncode == 0
    result = json.loads((folder / "plan" / "result.json").read_text(encoding="utf-8"))
    assert [difference["sentence"].split(". ")[0] for difference in result["differences"]] == [
        "v100-1: the model of GPU 3 is declared as V100-PCIE-32GB, but the node has V100-PCIE-16GB",
        "v100-1: the NUMA node of GPU 5 is declared as 1, but the node has 0",
        "v100-2: the number of GPUs is declared as 8, but the node has 7",
    ]
