# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated /sys, built below a folder: what tools of real machines would find in it."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest
from _hardware import PROFILES, node
from gpu_sandbox import boot, classes
from gpu_sandbox.pci import PciTree
from gpu_sandbox.tree import Tree, cpu_list, cpu_mask, cpu_numbers
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture(scope="module", params=PROFILES)
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    root = tmp_path_factory.mktemp(request.param)
    hardware = node(request.param)
    boot.build(str(root), hardware)
    return root, hardware


Machine = tuple[Path, dict[str, Any]]


def pci(root: Path, address: str) -> Path:
    return root / "bus/pci/devices" / address


def devices(root: Path, hardware: dict[str, Any]) -> None:
    """Only the devices: the many files of the CPUs cost a test more than it takes."""
    tree = Tree(str(root))
    classes.build(tree, hardware, PciTree(tree, hardware).build())


def read(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def test_bus_lists_exactly_the_devices_and_their_bridges(machine: Machine) -> None:
    root, hardware = machine
    devices = [one for kind in ("gpus", "nvswitches", "hcas", "nics", "nvmes") for one in hardware[kind]]
    expected = {one["pci_address"] for one in devices} | {bridge for one in devices for bridge in one["pci_path"]}
    assert set(os.listdir(root / "bus/pci/devices")) == expected


def test_gpus_are_what_the_description_says(machine: Machine) -> None:
    root, hardware = machine
    cpus = {one["id"]: cpu_list(cpu_numbers(one["cpulist"])) for one in hardware["numa_nodes"]}
    for gpu in hardware["gpus"]:
        device = pci(root, gpu["pci_address"])
        assert read(device / "vendor") == "0x10de"
        assert read(device / "device") == gpu["device_id"]
        assert read(device / "subsystem_device") == gpu["subsystem_id"]
        assert read(device / "class") == "0x030200"
        assert read(device / "numa_node") == str(gpu["numa_node"])
        assert read(device / "local_cpulist") == cpus[gpu["numa_node"]]
        assert read(device / "max_link_width") == str(gpu["pcie_width"])
        assert read(device / "max_link_speed") == {3: "8.0", 4: "16.0", 5: "32.0"}[gpu["pcie_generation"]] + " GT/s PCIe"
        assert (device / "reset").exists()
        assert not (device / "driver").exists()


def test_real_paths_lead_through_the_bridges(machine: Machine) -> None:
    """Distances between devices are read from these paths."""
    root, hardware = machine
    for gpu in hardware["gpus"]:
        path = pci(root, gpu["pci_address"]).resolve().relative_to(root.resolve())
        assert path.parts == ("devices", f"pci{gpu['pci_path'][0][:7]}", *gpu["pci_path"], gpu["pci_address"])


def test_every_bus_has_its_folder(machine: Machine) -> None:
    """NCCL goes from a bus to its devices that way."""
    root, hardware = machine
    for gpu in hardware["gpus"]:
        place = root / "class/pci_bus" / gpu["pci_address"][:7]
        assert (place.resolve() / "../.." / gpu["pci_address"]).resolve() == pci(root, gpu["pci_address"]).resolve()


def test_configuration_space_agrees_with_the_files(machine: Machine) -> None:
    """lspci reads the one and takes the names from the other."""
    root, _hardware = machine
    for address in os.listdir(root / "bus/pci/devices"):
        config = (pci(root, address) / "config").read_bytes()
        vendor, device = struct.unpack_from("<HH", config)
        assert len(config) == 256
        assert f"0x{vendor:04x} 0x{device:04x}" == f"{read(pci(root, address) / 'vendor')} {read(pci(root, address) / 'device')}"
        assert f"0x{config[0x0B]:02x}{config[0x0A]:02x}{config[0x09]:02x}" == read(pci(root, address) / "class")
        if config[0x0E] == 1:
            assert config[0x18] == int(address.split(":")[1], 16)
            assert config[0x19] > config[0x18]


def test_infiniband_ports(machine: Machine) -> None:
    root, hardware = machine
    assert sorted(os.listdir(root / "class/infiniband")) == ["mlx5_0", "mlx5_1"]
    for hca in hardware["hcas"]:
        place = root / "class/infiniband" / hca["device"]
        assert (place / "device").resolve() == pci(root, hca["pci_address"]).resolve()
        port = place / "ports/1"
        assert read(port / "rate") == hca["ports"][0]["rate"]
        assert read(port / "state") == "4: ACTIVE"
        assert read(port / "phys_state") == "5: LinkUp"
        assert read(port / "link_layer") == "InfiniBand"
        network = root / "class/net" / hca["ports"][0]["netdev"]
        assert read(network / "type") == "32"
        assert (network / "device").resolve() == pci(root, hca["pci_address"]).resolve()
        assert (pci(root, hca["pci_address"]) / "driver").resolve().name == "mlx5_core"


def test_port_that_is_down(tmp_path: Path) -> None:
    hardware = node()
    hardware["hcas"][0]["ports"][0]["state"] = "DOWN"
    devices(tmp_path, hardware)
    assert read(tmp_path / "class/infiniband/mlx5_0/ports/1/state") == "1: DOWN"
    assert read(tmp_path / "class/net/ibp12s0/operstate") == "down"


def test_ethernet_and_drives(machine: Machine) -> None:
    root, hardware = machine
    for nic in hardware["nics"]:
        assert read(root / "class/net" / nic["netdev"] / "speed") == "25000"
        assert read(root / "class/net" / nic["netdev"] / "type") == "1"
    for nvme in hardware["nvmes"]:
        controller = root / "class/nvme" / nvme["device"].removesuffix("n1")
        assert read(controller / "device/numa_node") == str(nvme["numa_node"])
        assert int(read(controller / nvme["device"] / "size")) == nvme["size_gib"] * 2**21


def test_numa_nodes_and_cpus(machine: Machine) -> None:
    root, hardware = machine
    system, cpu = root / "devices/system", hardware["cpu"]
    total = cpu["sockets"] * cpu["cores_per_socket"] * cpu["threads_per_core"]
    for name in ("online", "possible", "present"):
        assert read(system / "cpu" / name) == f"0-{total - 1}"
    assert read(system / "node/online") == "0-1"
    for one in hardware["numa_nodes"]:
        place = system / f"node/node{one['id']}"
        assert read(place / "cpulist") == cpu_list(cpu_numbers(one["cpulist"]))
        assert f"MemTotal: {one['memory_mib'] * 1024:>16} kB" in read(place / "meminfo")
        assert read(place / "distance") == " ".join(map(str, one["distances"]))
        for number in cpu_numbers(one["cpulist"]):
            assert (place / f"cpu{number}").resolve() == (system / f"cpu/cpu{number}").resolve()
    siblings = {read(system / f"cpu/cpu{number}/topology/thread_siblings_list") for number in range(total)}
    assert len(siblings) == cpu["sockets"] * cpu["cores_per_socket"]
    packages = {read(system / f"cpu/cpu{number}/topology/physical_package_id") for number in range(total)}
    assert packages == {str(socket) for socket in range(cpu["sockets"])}


def test_what_is_set_for_one_cpu_or_node_stays_there(machine: Machine) -> None:
    """Equal constants share a file; settings must not."""
    root, _hardware = machine
    governors = [root / f"devices/system/cpu/cpu{number}/cpufreq/scaling_governor" for number in (0, 1)]
    pages = [root / f"devices/system/node/node{number}/hugepages/hugepages-2048kB/nr_hugepages" for number in (0, 1)]
    for first, second in (governors, pages):
        before = read(second)
        first.write_text("changed", encoding="ascii")
        assert read(second) == before


def test_passthrough_gpu_cannot_be_reset(tmp_path: Path) -> None:
    hardware = node(passthrough=True)
    devices(tmp_path, hardware)
    assert not (pci(tmp_path, hardware["gpus"][0]["pci_address"]) / "reset").exists()


def test_majors_join_the_character_devices() -> None:
    text = boot.with_majors("Character devices:\n  1 mem\n  5 /dev/tty\n\nBlock devices:\n  7 loop\n")
    characters, blocks = text.split("\n\n")
    assert characters.startswith("Character devices:\n  1 mem\n  5 /dev/tty\n195 nvidia\n")
    assert "511 nvidia-caps" in characters
    assert blocks == "Block devices:\n  7 loop\n"


@given(st.sets(st.integers(0, 300), min_size=1))
def test_cpu_lists_and_masks(numbers: set[int]) -> None:
    assert cpu_numbers(cpu_list(list(numbers))) == sorted(numbers)
    mask = int(cpu_mask(list(numbers)).replace(",", ""), 16)
    assert {number for number in range(mask.bit_length()) if mask >> number & 1} == numbers
