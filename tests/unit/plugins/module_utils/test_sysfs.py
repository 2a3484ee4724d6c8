# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded machines: devices, NUMA nodes, CPUs, adapters, distances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _sysfs_networks, _sysfs_numa, _topology
from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import GPU_CLASSES, SWITCH_CLASS, Sysfs
from hypothesis import given
from hypothesis import strategies as st
from recorded import BRIDGE, DISPLAY, INFINIBAND, MELLANOX, SWITCH, RecordedTree


@pytest.fixture
def tree(tmp_path: Path) -> RecordedTree:
    tree = RecordedTree(tmp_path)
    tree.numa_node(0, "0-1,4-5", 8_388_608, "10 21", hugepages=(1024, 1000))
    tree.numa_node(1, "2-3,6-7", 4_194_304, "21 10")
    tree.cpus("0-7", {n: f"{n % 4},{n % 4 + 4}" for n in range(8)}, {n: n % 4 // 2 for n in range(8)})
    return tree


def switch(root: str, port: str, upstream: str) -> tuple[str, str, str]:
    return f"pci{root}", f"{root}:{port}", upstream


@pytest.fixture
def wired(tree: RecordedTree) -> RecordedTree:
    """Two GPUs and an adapter below one switch, one below a cascaded switch, others ever further away."""
    above = switch("0000:00", "01.0", "0000:01:00.0")
    tree.pci(*above, "0000:02:00.0", "0000:07:00.0")
    tree.pci(*above, "0000:02:01.0", "0000:08:00.0")
    tree.pci(*above, "0000:02:02.0", "0000:0c:00.0", vendor=MELLANOX, kind=INFINIBAND, device="0x101b", driver="mlx5_core")
    tree.pci(*above, "0000:02:03.0", "0000:03:00.0", "0000:04:00.0", "0000:09:00.0")
    tree.pci("pci0000:00", "0000:00:03.0", "0000:0f:00.0")
    tree.pci("pci0000:40", "0000:40:01.0", "0000:47:00.0")
    tree.pci("pci0000:80", "0000:80:01.0", "0000:87:00.0", numa=1)
    tree.pci("pci0000:80", "0000:80:02.0", "0000:c4:00.0", numa=1, kind=SWITCH, device="0x1af1")
    return tree


@pytest.mark.parametrize(
    ("other", "distance"),
    [
        ("0000:07:00.0", "X"),
        ("0000:08:00.0", "PIX"),
        ("0000:0c:00.0", "PIX"),
        ("0000:09:00.0", "PXB"),
        ("0000:0f:00.0", "PHB"),
        ("0000:47:00.0", "NODE"),
        ("0000:87:00.0", "SYS"),
    ],
)
def test_distances_are_those_of_the_device_tree_in_both_directions(wired: RecordedTree, other: str, distance: str) -> None:
    sysfs = Sysfs(str(wired.root))
    assert _topology.between(sysfs, "0000:07:00.0", other) == distance
    assert _topology.between(sysfs, other, "0000:07:00.0") == distance


def test_gpus_and_switches_are_told_from_bridges_and_adapters(wired: RecordedTree) -> None:
    wired.pci("pci0000:00", "0000:00:05.0", "0000:10:00.0", kind=DISPLAY)
    wired.pci("pci0000:00", "0000:00:06.0", "0000:11:00.0", kind="0x040300")  # the sound function of a display GPU
    wired.pci("pci0000:00", "0000:00:07.0", "0000:12:00.0", vendor="0x1a03", kind=DISPLAY, driver="ast")
    sysfs = Sysfs(str(wired.root))
    found = [device["pci_address"] for device in sysfs.nvidia_devices(GPU_CLASSES)]
    assert found == ["0000:07:00.0", "0000:08:00.0", "0000:09:00.0", "0000:0f:00.0", "0000:10:00.0", "0000:47:00.0", "0000:87:00.0"]
    assert sysfs.nvidia_devices((SWITCH_CLASS,)) == [
        {"pci_address": "0000:c4:00.0", "pci_device_id": "0x1af1", "numa_node": 1, "numa_node_effective": 1}
    ]


def test_a_device_without_a_numa_node_takes_its_bridges(tree: RecordedTree) -> None:
    tree.pci("pci0000:80", "0000:80:01.0", "0000:81:00.0", numa=1, kind=BRIDGE)
    tree.pci("pci0000:80", "0000:80:01.0", "0000:87:00.0", numa=-1)
    tree.pci("pci0000:c0", "0000:c0:01.0", "0000:c7:00.0", numa=-1)
    sysfs = Sysfs(str(tree.root))
    assert sysfs.place("0000:87:00.0") == {"numa_node": -1, "numa_node_effective": 1}
    assert sysfs.place("0000:c7:00.0") == {"numa_node": -1, "numa_node_effective": None}, "two nodes, no telling which"


def test_on_a_machine_with_one_node_every_device_is_there(tmp_path: Path) -> None:
    tree = RecordedTree(tmp_path)
    tree.numa_node(0, "0-7", 4_194_304, "10")
    tree.pci("pci0000:00", "0000:00:01.0", "0000:07:00.0", numa=-1)
    tree.pci("pci0000:40", "0000:40:01.0", "0000:47:00.0", numa=-1)
    sysfs = Sysfs(str(tmp_path))
    assert sysfs.numa_node_effective("0000:07:00.0") == 0
    assert _topology.between(sysfs, "0000:07:00.0", "0000:47:00.0") == "NODE"


def test_numa_nodes_cpus_and_memory(tree: RecordedTree) -> None:
    facts = _sysfs_numa.read(Sysfs(str(tree.root)))
    assert facts["cpus"] == {"online": "0-7", "count": 8, "sockets": 2, "cores": 4, "threads_per_core": 2}
    assert [(node["id"], node["cpus"], node["cores"], node["memory_mib"]) for node in facts["numa_nodes"]] == [
        (0, "0-1,4-5", ["0,4", "1,5"], 8192),
        (1, "2-3,6-7", ["2,6", "3,7"], 4096),
    ]
    assert facts["numa_nodes"][1]["distances"] == [21, 10]
    assert facts["hugepages"][0] == {"numa_node": 0, "size_kib": 2048, "total": 1024, "free": 1000}
    assert facts["memory_mib"] == 12288


def test_a_node_without_cpus_and_an_offline_cpu(tree: RecordedTree) -> None:
    tree.numa_node(2, "", 1_048_576, "31 31 10")
    tree.file("sys/devices/system/cpu/online", "0-6")
    facts = _sysfs_numa.read(Sysfs(str(tree.root)))
    assert facts["numa_nodes"][2]["cores"] == [] and facts["cpus"]["count"] == 7


def test_a_machine_of_which_nothing_is_known(tmp_path: Path) -> None:
    facts = _sysfs_numa.read(Sysfs(str(tmp_path)))
    assert facts["numa_nodes"] == [] and facts["memory_mib"] is None and facts["cpus"]["threads_per_core"] is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:        2097152 kB\n")
    assert _sysfs_numa.read(Sysfs(str(tmp_path)))["memory_mib"] == 2048


@given(st.sets(st.integers(0, 300), min_size=1))
def test_cpu_lists(numbers: set[int]) -> None:
    ordered, parts = sorted(numbers), []
    while ordered:
        end = 1
        while end < len(ordered) and ordered[end] == ordered[0] + end:
            end += 1
        parts.append(f"{ordered[0]}-{ordered[end - 1]}" if end > 1 else str(ordered[0]))
        ordered = ordered[end:]
    assert _sysfs_numa.cpu_numbers(",".join(parts) + "\n") == sorted(numbers)


def port(state: str, rate: str, layer: str, **more: str) -> dict[str, str]:
    return {"state": state, "phys_state": "5: LinkUp", "rate": rate, "link_layer": layer, **more}


def test_adapters(wired: RecordedTree) -> None:
    wired.hca(
        "mlx5_0",
        "0000:0c:00.0",
        {
            1: port("4: ACTIVE", "200 Gb/sec (4X HDR)", "InfiniBand"),
            2: port("1: DOWN", "2.5 Gb/sec (1X SDR)", "Ethernet", **{"gid_attrs/ndevs/0": "enp12s0f1"}),
        },
    )
    wired.interface("ibp12s0", "0000:0c:00.0", type=32, dev_port=0)
    (hca,) = _sysfs_networks.hcas(Sysfs(str(wired.root)))
    assert {name: value for name, value in hca.items() if name != "ports"} == {
        "device": "mlx5_0",
        "pci_address": "0000:0c:00.0",
        "pci_device_id": "0x101b",
        "firmware_version": "20.43.1014",
        "virtual_function": False,
        "numa_node": 0,
        "numa_node_effective": 0,
    }
    assert [(one["state"], one["rate_gbps"], one["link_layer"], one["netdev"]) for one in hca["ports"]] == [
        ("ACTIVE", 200.0, "InfiniBand", "ibp12s0"),
        ("DOWN", 2.5, "Ethernet", "enp12s0f1"),
    ]


def test_interfaces_that_are_no_hardware_are_left_out(wired: RecordedTree) -> None:
    wired.interface("enp71s0", "0000:47:00.0", type=1, speed=25000, operstate="up")
    wired.interface("enp135s0", "0000:87:00.0", type=1, speed=-1, operstate="down")
    wired.interface("ibp12s0", "0000:0c:00.0", type=32, speed=200000)
    wired.interface("docker0", None, type=1, speed=10000)
    found = _sysfs_networks.nics(Sysfs(str(wired.root)))
    assert [(nic["netdev"], nic["speed_gbps"], nic["state"], nic["numa_node"]) for nic in found] == [
        ("enp135s0", None, "down", 1),
        ("enp71s0", 25.0, "up", 0),
    ]


def gpu(address: str | None, *links: dict[str, Any], known: bool = True) -> dict[str, Any]:
    return {"pci_address": address, "nvlinks": list(links) if known else None}


def to_switch(active: bool = True, kind: str | None = "switch") -> dict[str, Any]:
    return {"active": active, "remote_type": kind, "remote_pci_address": "0000:c4:00.0"}


def to(address: str, active: bool = True) -> dict[str, Any]:
    return {"active": active, "remote_type": "gpu", "remote_pci_address": address}


def test_nvlinks_count_more_than_pcie(wired: RecordedTree) -> None:
    first, second, third = "0000:07:00.0", "0000:87:00.0", "0000:47:00.0"
    gpus = [gpu(first, to(second), to(second), to(second, active=False)), gpu(second, to(first), to(first)), gpu(third), gpu(None)]
    matrices = _topology.read(Sysfs(str(wired.root)), gpus, [])
    assert matrices["levels"][first] == {first: "X", second: "NV2", third: "NODE"}
    assert matrices["pcie"][first][second] == "SYS" and matrices["nvlinks"][second] == {first: 2, second: 0, third: 0}


def test_gpus_on_switches_are_as_near_as_the_one_with_fewer_links(wired: RecordedTree) -> None:
    first, second, off = "0000:07:00.0", "0000:87:00.0", "0000:47:00.0"
    switches = [{"pci_address": "0000:c4:00.0"}]
    # A driver that does not know the type of the other end still knows its address.
    gpus = [
        gpu(first, *[to_switch()] * 12),
        gpu(second, *[to_switch(kind=None)] * 11, to_switch(active=False)),
        gpu(off, to_switch(active=False)),
    ]
    matrices = _topology.read(Sysfs(str(wired.root)), gpus, switches)
    assert matrices["levels"][first] == {first: "X", second: "NV11", off: "NODE"}


def test_without_a_driver_only_pcie_is_known(wired: RecordedTree) -> None:
    first, second = "0000:07:00.0", "0000:08:00.0"
    matrices = _topology.read(Sysfs(str(wired.root)), [gpu(first, known=False), gpu(second, known=False)], [])
    assert matrices["levels"][first][second] == "PIX" and matrices["nvlinks"][first][second] is None
