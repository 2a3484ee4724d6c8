# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the sandbox's set-up that decide something."""

from __future__ import annotations

import importlib.util
import resource
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

SANDBOX = Path(__file__).resolve().parents[2] / "sandbox"
MIX: dict[str, Any] = {
    "sandbox": "s",
    "network": "10.9.8.0/24",
    "control": {"name": "c", "address": "10.9.8.10"},
    "nodes": [{"name": "n1", "address": "10.9.8.11", "groups": ["a100"]}, {"name": "n2", "address": "10.9.8.12"}],
}


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, SANDBOX / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def prepare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    module = load("playbooks/prepare.py")

    def compile_hardware(_mix: Path, layout: Any) -> None:
        for node in ("n1", "n2"):
            layout.write(layout.folder / "hardware" / f"{node}.json", "{}")

    monkeypatch.setattr(module, "compile_hardware", compile_hardware)
    return module


def write_mix(folder: Path, **changes: Any) -> Path:
    path = folder / "mix.yml"
    path.write_text(yaml.safe_dump({**MIX, **changes}), encoding="utf-8")
    return path


def test_a_second_layout_changes_nothing(prepare: ModuleType, tmp_path: Path) -> None:
    first = prepare.lay_out(write_mix(tmp_path), "image:1")
    second = prepare.lay_out(write_mix(tmp_path), "image:1")
    assert first["changed"] and not second["changed"]
    assert first["hosts"] == second["hosts"]


def test_only_a_node_with_other_hardware_is_made_anew(prepare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = {host["name"]: host["digest"] for host in prepare.lay_out(write_mix(tmp_path), "image:1")["hosts"]}

    def compile_other(_mix: Path, layout: Any) -> None:
        layout.write(layout.folder / "hardware" / "n1.json", '{"gpus": []}')

    monkeypatch.setattr(prepare, "compile_hardware", compile_other)
    second = {host["name"]: host["digest"] for host in prepare.lay_out(write_mix(tmp_path), "image:1")["hosts"]}
    assert [name for name in first if first[name] != second[name]] == ["n1"]


def test_known_hosts_pin_the_keys_that_the_nodes_get(prepare: ModuleType, tmp_path: Path) -> None:
    folder = Path(prepare.lay_out(write_mix(tmp_path), "image:1")["folder"])
    pinned = dict(line.split(" ", 1) for line in (folder / "known_hosts").read_text(encoding="utf-8").splitlines())
    assert set(pinned) == {"10.9.8.10,c", "10.9.8.11,n1", "10.9.8.12,n2"}
    assert (folder / "nodes/n1/ssh_host_ed25519_key.pub").read_text(encoding="utf-8").startswith(pinned["10.9.8.11,n1"])
    assert len(set(pinned.values())) == 3


def test_the_inventory_has_the_groups_of_the_mix(prepare: ModuleType, tmp_path: Path) -> None:
    folder = Path(prepare.lay_out(write_mix(tmp_path), "image:1")["folder"])
    groups = yaml.safe_load((folder / "inventory/hosts.yml").read_text(encoding="utf-8"))["all"]["children"]
    members = {name: sorted(group["hosts"]) for name, group in groups.items()}
    assert members == {"control_hosts": ["c"], "gpu_nodes": ["n1", "n2"], "a100": ["n1"]}


def test_every_node_knows_the_control_host_by_that_name(prepare: ModuleType) -> None:
    assert "10.9.8.10 c control\n" in prepare.hosts_table([MIX["control"], *MIX["nodes"]])


@pytest.mark.parametrize(
    ("nodes", "part"),
    [
        ([{"name": "n1", "address": "10.9.8.10"}], "address 10.9.8.10 stands more than once"),
        ([{"name": "c", "address": "10.9.8.11"}], "name c stands more than once"),
        ([{"name": "n1", "address": "10.9.9.11"}], "outside of 10.9.8.0/24"),
    ],
)
def test_a_mix_that_cannot_be_is_refused(prepare: ModuleType, tmp_path: Path, nodes: list[dict[str, str]], part: str) -> None:
    with pytest.raises(prepare.MixError, match=part):
        prepare.read_mix(write_mix(tmp_path, nodes=nodes))


RECAP = {"changed": 0, "failures": 0, "unreachable": 0, "ok": 3, "changed_tasks": []}


@pytest.mark.parametrize(
    ("recap", "count"),
    [
        ({"a": RECAP, "b": RECAP}, 0),
        ({"a": RECAP, "b": {**RECAP, "changed": 1, "changed_tasks": ["Write it"]}}, 1),
        ({"a": {**RECAP, "unreachable": 1}}, 1),
        ({"a": {**RECAP, "failures": 1}}, 1),
        ({}, 1),
    ],
)
def test_a_second_run_is_judged_by_every_host(recap: dict[str, Any], count: int) -> None:
    assert len(load("setup/unchanged.py").complaints(recap)) == count


@pytest.mark.parametrize(("capable", "expected"), [(True, 1_048_576), (False, 20_000)])
def test_limits_are_lowered_only_without_the_capability(monkeypatch: pytest.MonkeyPatch, capable: bool, expected: int) -> None:
    engine = load("setup/engine.py")
    monkeypatch.setattr(engine, "has_capability", lambda _number: capable)
    monkeypatch.setattr(engine.resource, "getrlimit", lambda _kind: (1024, 20_000))
    assert engine.limit(resource.RLIMIT_NOFILE, engine.NOFILE_WISHED) == expected


@pytest.mark.parametrize(("unified", "found"), [(True, False), (False, True)])
def test_runc_is_asked_for_where_control_groups_are_mixed(monkeypatch: pytest.MonkeyPatch, unified: bool, found: bool) -> None:
    engine = load("setup/engine.py")
    monkeypatch.setattr(engine, "has_unified_cgroups", lambda: unified)
    assert ('runtime = "runc"' in engine.configuration()) is found


def test_a_python_that_fails_when_called_is_passed_over(tmp_path: Path) -> None:
    shim = tmp_path / "python3.13"
    shim.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    shim.chmod(0o755)
    finder = SANDBOX / "setup/find-python"
    found = subprocess.run([str(finder)], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=True)
    assert found.stdout.strip() != str(shim) and Path(found.stdout.strip()).exists()


@pytest.mark.parametrize(
    ("status", "command", "expected"),
    [
        ("running", b"conmon\0-c\0abc\0", "running"),
        ("running", b"somebody\0else\0", "dead"),
        ("running", None, "dead"),
        ("stopping", b"conmon\0-c\0abc\0", "dead"),
        ("exited", None, "still"),
    ],
)
def test_a_container_without_its_monitor_is_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, command: bytes | None, expected: str
) -> None:
    standing = load("playbooks/standing.py")
    monitor_lives = standing.monitor_lives
    monkeypatch.setattr(standing, "monitor_lives", lambda container: monitor_lives(container, tmp_path))
    if command is not None:
        (tmp_path / "7").mkdir()
        (tmp_path / "7/cmdline").write_bytes(command)
    assert standing.state({"Id": "abc", "State": {"Status": status, "ConmonPid": 7}}) == expected
