# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a mix to hardware: consistent machines, the same ones each time, and one sentence for a wrong mix."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from _hardware import HARDWARE, PROFILES, ROOT, node
from hypothesis import given
from hypothesis import strategies as st
from sandbox_hardware import describe, profiles
from sandbox_hardware.mix import MixError, compile_mix

MIXES = sorted((ROOT / "tests/sandbox/mixes").glob("*.yml"))
DEVICES = ("gpus", "nvswitches", "hcas", "nics", "nvmes")


def bus(address: str) -> int:
    return int(address.split(":")[1], 16)


def check_machine(hardware: dict[str, Any]) -> None:
    """What must hold on any real machine."""
    devices = [device for kind in DEVICES for device in hardware[kind]]
    addresses = [device["pci_address"] for device in devices]
    assert len(set(addresses)) == len(addresses)
    nodes = {one["id"]: one for one in hardware["numa_nodes"]}
    behind: dict[str, int] = {}
    above: dict[str, list[str]] = {}
    for device in devices:
        assert device["numa_node"] in nodes
        chain = [*device["pci_path"], device["pci_address"]]
        for position, (bridge, below) in enumerate(zip(chain, chain[1:])):
            assert bus(below) > bus(bridge), f"{below} is not on a bus behind {bridge}"
            assert behind.setdefault(bridge, bus(below)) == bus(below), f"{bridge} leads to two buses"
            assert above.setdefault(bridge, chain[:position]) == chain[:position], f"{bridge} is in two places"
    assert not set(behind) & set(addresses)
    assert [gpu["minor_number"] for gpu in hardware["gpus"]] == list(range(len(hardware["gpus"])))
    assert [gpu["pci_address"] for gpu in hardware["gpus"]] == sorted(gpu["pci_address"] for gpu in hardware["gpus"])
    for identity in ("uuid", "serial"):
        assert len({gpu[identity] for gpu in hardware["gpus"]}) == len(hardware["gpus"])
    for gpu in hardware["gpus"]:
        assert gpu["gpu_profile"] in hardware["gpu_profiles"]
    threads = hardware["cpu"]["sockets"] * hardware["cpu"]["cores_per_socket"] * hardware["cpu"]["threads_per_core"]
    cpus = [cpu for one in nodes.values() for part in one["cpulist"].split(",") for cpu in expand(part)]
    assert sorted(cpus) == list(range(threads))
    for one in nodes.values():
        assert len(one["distances"]) == len(nodes)
        assert one["distances"][one["id"]] == 10


def expand(part: str) -> list[int]:
    first, _dash, last = part.partition("-")
    return list(range(int(first), int(last or first) + 1))


@pytest.mark.parametrize("profile", PROFILES)
def test_profiles_are_possible_machines(profile: str) -> None:
    check_machine(node(profile))


@pytest.mark.parametrize("path", MIXES, ids=lambda path: path.stem)
def test_mixes_of_the_sandbox_compile(path: Path) -> None:
    for hardware in compile_mix(path).values():
        check_machine(hardware)


def test_large_mix_has_thirty_two_nodes_and_no_gpu_twice() -> None:
    nodes = compile_mix(ROOT / "tests/sandbox/mixes/large.yml")
    uuids = [gpu["uuid"] for hardware in nodes.values() for gpu in hardware["gpus"]]
    assert len(nodes) == 32
    assert len(set(uuids)) == len(uuids)


def test_gpus_are_known_again_by_sandbox_node_and_slot() -> None:
    assert node() == node()
    first, second, third = ({gpu["uuid"] for gpu in described["gpus"]} for described in (node(), node(name="n2"), node(sandbox="other")))
    assert not first & second
    assert not first & third


def test_a100_board_has_twelve_links_spread_over_six_switches() -> None:
    for gpu in node("hgx_a100_8")["gpus"]:
        assert len(gpu["nvlinks"]) == 12
        assert set(Counter(link["remote_pci"] for link in gpu["nvlinks"]).values()) == {2}
    assert all(gpu["nvlinks"] == [] for gpu in node("pcie_v100_8")["gpus"])


def test_mixed_node_holds_both_models_in_bus_order() -> None:
    hardware = node("mixed_8a100_2v100")
    assert Counter(gpu["name"] for gpu in hardware["gpus"]) == {"NVIDIA A100-SXM4-80GB": 8, "Tesla V100-PCIE-32GB": 2}
    assert hardware["gpu_profiles"]["Tesla V100-PCIE-32GB"]["total_memory_mib"] == 32768


@pytest.mark.parametrize("path", sorted((ROOT / "data/gpu-profiles").glob("*.yaml")), ids=lambda path: path.stem)
def test_boards_say_the_same_things(path: Path) -> None:
    """The simulated driver and the planner read these names."""
    facts = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(facts["boards"]) <= set(facts["nvml_names"])
    assert facts["architecture"] in ("volta", "ampere", "hopper", "blackwell")
    assert "go_nvml_mock" not in path.read_text(encoding="utf-8")
    for name, one in facts["boards"].items():
        usable = facts["usable_memory_mib"]
        assert 0.9 < (usable[name] if isinstance(usable, dict) else usable) / one["total_memory_mib"] < 1
        assert one["power"]["min_w"] < one["power"]["default_w"] <= one["power"]["max_w"]
        assert set(one["clocks"]) == {"graphics", "sm", "memory", "video"}
        assert all(clock["idle_mhz"] <= clock["max_mhz"] for clock in one["clocks"].values())
        assert one["pcie"]["width"] == 16
        assert one["source"]
        if one["nvlink"]["links"]:
            assert one["nvlink"]["gbytes_per_second"] / one["nvlink"]["links"] == {2: 50, 3: 50, 4: 50, 5: 100}[one["nvlink"]["version"]]


@st.composite
def described(draw: st.DrawFn) -> dict[str, Any]:
    nodes = draw(st.integers(1, 4))
    models = draw(st.lists(st.sampled_from(["A100-SXM4-80GB", "V100-PCIE-32GB", "A30", "NVIDIA H100 PCIe"]), min_size=1, max_size=4))
    devices = []
    for model in models:
        count = draw(st.integers(1, 8))
        places = draw(st.lists(st.integers(0, nodes - 1), min_size=count, max_size=count))
        devices.append({"model": model, "count": count, "numa_nodes": places, "nvlink_set": draw(st.sampled_from(["all", "none"]))})
    return {"gpu_devices": devices, "numa_nodes": nodes, "hcas": draw(st.integers(0, 4))}


@given(described())
def test_described_hardware_is_a_possible_machine(hardware: dict[str, Any]) -> None:
    made = describe.node("test", {"name": "n1"}, profiles.generate(hardware, "n1"))
    check_machine(made)
    wanted = Counter((entry["model"].removeprefix("NVIDIA "), place) for entry in hardware["gpu_devices"] for place in entry["numa_nodes"])
    got = Counter((gpu["name"].removeprefix("NVIDIA ").removeprefix("Tesla "), gpu["numa_node"]) for gpu in made["gpus"])
    assert got == wanted


def mix(**changes: Any) -> dict[str, Any]:
    one = {"name": "n1", "address": "10.0.0.2", "node_profile": "hgx_a100_8"}
    return {
        "sandbox": "test",
        "network": "10.0.0.0/24",
        "control": {"name": "c", "address": "10.0.0.1"},
        "nodes": [{**one, **changes}],
    }


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (mix(node_profile="dgx"), ["n1", "'dgx'", "hgx_a100_8", "pcie_v100_8"]),
        (mix(adress="10.0.0.3"), ["nodes.0", "adress"]),
        ({**mix(), "nodes": []}, ["nodes"]),
        ({key: value for key, value in mix().items() if key != "control"}, ["control"]),
        (mix(node_profile=7), ["nodes.0"]),
        (
            {**mix(), "nodes": [{"name": "n1", "address": "10.0.0.2", "hardware": {"gpu_devices": [{"model": "A100", "count": 1}]}}]},
            ["'A100'"],
        ),
        (
            {
                **mix(),
                "nodes": [
                    {"name": "n1", "address": "10.0.0.2", "hardware": {"gpu_devices": [{"model": "A30", "count": 2, "numa_nodes": [0]}]}}
                ],
            },
            ["A30", "count 2", "1 numa_nodes"],
        ),
        ("nonsense", ["top level"]),
    ],
)
def test_wrong_mix_ends_in_one_sentence(tmp_path: Path, document: Any, said: list[str]) -> None:
    path = tmp_path / "mix.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(MixError) as refused:
        compile_mix(path)
    message = str(refused.value)
    assert all(part in message for part in said)
    assert message.endswith(".")
    assert "\n" not in message


def test_command_writes_one_file_per_node_and_touches_no_right_one(tmp_path: Path) -> None:
    command = [sys.executable, str(HARDWARE / "compile.py"), str(ROOT / "tests/sandbox/mixes/default.yml"), str(tmp_path / "out")]
    subprocess.run(command, check=True)
    files = sorted((tmp_path / "out").iterdir())
    before = [file.stat().st_mtime_ns for file in files]
    assert [file.stem for file in files] == ["a100-1", "a100-2", "v100-1", "v100-2"]
    assert json.loads(files[0].read_text(encoding="utf-8"))["version"] == 1
    subprocess.run(command, check=True)
    assert [file.stat().st_mtime_ns for file in files] == before


def test_command_says_what_is_wrong_and_fails(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(HARDWARE / "compile.py"), str(tmp_path / "none.yml"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "none.yml cannot be read" in done.stderr
    assert "Traceback" not in done.stderr
