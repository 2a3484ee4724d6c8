# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's facts where NVML and the machine do not tell the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _gpu_facts, _node_facts
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import DriverUnavailable, GpuError, InvalidInput
from recorded import RecordedTree

FIRST, SECOND, THIRD = "0000:07:00.0", "0000:0f:00.0", "0000:47:00.0"


@pytest.fixture
def tree(tmp_path: Path) -> RecordedTree:
    tree = RecordedTree(tmp_path)
    for address in (FIRST, SECOND, THIRD):
        tree.pci(f"pci{address[:7]}", f"{address[:8]}00.1", address)
    return tree


Answer = Callable[[Any, Callable[[dict[str, Any]], None]], dict[str, Any]]


@pytest.fixture
def read(tree: RecordedTree, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    def reading(answer: Answer, **options: Any) -> dict[str, Any]:
        monkeypatch.setattr(_node_facts, "_from_nvml", answer)
        return _node_facts.read(None, options.pop("timeout", 20.0), root=str(tree.root), **options)

    return reading


def listing(*gpus: dict[str, Any]) -> Answer:
    return lambda source, report: {"gpus": list(gpus), "driver": {"state": "ok", "loaded_version": "580.95.05"}}


def known(index: int, address: str, **facts: Any) -> dict[str, Any]:
    return _gpu_facts.blank(index=index, pci_address=address, lost=False, uuid=f"GPU-{index}", nvlinks=[], **facts)


def unavailable(state: str) -> Answer:
    def answer(source: Any, report: Any) -> dict[str, Any]:
        raise DriverUnavailable(f"NVML cannot be used: it is {state}.", state)

    return answer


def summary(facts: dict[str, Any], *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(gpu[key] for key in ("pci_address", *keys)) for gpu in facts["gpus"]]


def test_without_a_driver_the_bus_tells_what_there_is(tree: RecordedTree, read: Any) -> None:
    tree.pci("pci0000:c0", "0000:c0:01.0", "0000:c4:00.0", kind="0x068000", device="0x1af1")
    facts = read(unavailable("absent"))
    assert summary(facts, "pci_device_id", "numa_node", "index", "uuid", "lost") == [
        (address, "0x20b2", 0, None, None, None) for address in (FIRST, SECOND, THIRD)
    ]
    assert facts["driver"]["state"] == "absent" and "absent" in facts["driver"]["message"]
    assert [one["pci_address"] for one in facts["nvswitches"]] == ["0000:c4:00.0"]
    # The same keys as with a driver, so that a template that asks for one gets null.
    assert facts["gpus"][0]["mig"]["mode_current"] is None and facts["gpus"][0]["settings"]["power_limit_w"] is None
    assert facts["topology"]["levels"][FIRST][THIRD] == "NODE"


def test_a_lost_gpu_keeps_its_place_and_its_xid(tree: RecordedTree, read: Any) -> None:
    tree.file("dev/kmsg", "4,1,1,-;NVRM: Xid (PCI:0000:0f:00): 79, pid=1, GPU has fallen off the bus.")
    lost = _gpu_facts.blank(index=1, lost=True, errors={"nvmlDeviceGetHandleByIndex": "GPU_IS_LOST"})
    facts = read(listing(known(0, FIRST), lost, known(2, THIRD)))
    assert summary(facts, "index", "lost") == [(FIRST, 0, False), (SECOND, 1, True), (THIRD, 2, False)]
    assert [gpu["health"]["xid_since_boot"] for gpu in facts["gpus"]] == [[], [{"xid": 79, "count": 1}], []]


def test_a_gpu_that_left_the_bus_is_still_told(read: Any) -> None:
    lost = _gpu_facts.blank(index=3, lost=True)
    facts = read(listing(known(0, FIRST), known(1, SECOND), known(2, THIRD), lost))
    assert summary(facts, "index", "numa_node") == [(FIRST, 0, 0), (SECOND, 1, 0), (THIRD, 2, 0), (None, 3, None)]


def test_a_gpu_that_nvml_no_longer_counts_is_lost(read: Any) -> None:
    facts = read(listing(known(0, FIRST), known(1, SECOND)))
    assert summary(facts, "index", "lost") == [(FIRST, 0, False), (SECOND, 1, False), (THIRD, None, True)]


def test_a_gpu_of_a_virtual_machine_is_not_lost(tree: RecordedTree, read: Any) -> None:
    tree.pci("pci0000:80", "0000:80:01.0", "0000:87:00.0", driver="vfio-pci")
    facts = read(listing(known(0, FIRST), known(1, SECOND), known(2, THIRD)), required=True)
    assert summary(facts, "kernel_driver", "lost")[-1] == ("0000:87:00.0", "vfio-pci", False)


def test_gpus_are_in_the_order_of_the_bus(tree: RecordedTree, read: Any) -> None:
    tree.pci("pci10000:00", "10000:00:01.0", "10000:01:00.0")
    facts = read(unavailable("absent"))
    assert [gpu["pci_address"] for gpu in facts["gpus"]] == [FIRST, SECOND, THIRD, "10000:01:00.0"]


def test_gpus_read_before_a_hang_keep_their_facts(read: Any) -> None:
    def answer(source: Any, report: Any) -> dict[str, Any]:
        report({"doing": "reading GPU 1", "gpus": [known(0, FIRST)]})
        os.read(os.pipe()[0], 1)
        return {}

    facts = read(answer, timeout=0.3)
    assert facts["driver"]["state"] == "hung" and "last call: reading GPU 1" in facts["driver"]["message"]
    assert summary(facts, "uuid", "lost") == [(FIRST, "GPU-0", False), (SECOND, None, None), (THIRD, None, None)]


def test_an_error_that_nobody_foresaw_is_told_not_raised(read: Any) -> None:
    def answer(source: Any, report: Any) -> dict[str, Any]:
        raise GpuError("NVML answered UNKNOWN.")

    assert read(answer)["driver"]["state"] == "unusable"
    with pytest.raises(GpuError, match="NVML answered UNKNOWN"):
        read(answer, required=True)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (unavailable("mismatch"), "it is mismatch"),
        (listing(), "lists no GPU"),
        (listing(known(0, FIRST), known(1, SECOND)), f"lost the GPU at {THIRD};.*reboot"),
    ],
)
def test_required_makes_an_error_of_what_is_missing(read: Any, answer: Answer, sentence: str) -> None:
    read(answer)
    with pytest.raises(GpuError, match=sentence):
        read(answer, required=True)


def test_a_timeout_that_is_none_is_refused(read: Any) -> None:
    with pytest.raises(InvalidInput, match="such as 60"):
        read(listing(), timeout=0)


def test_adapters_know_how_far_each_gpu_is(tree: RecordedTree, read: Any) -> None:
    tree.pci("pci0000:07", "0000:07:01.0", "0000:08:00.0", vendor="0x15b3", kind="0x020700", driver="mlx5_core")
    tree.hca("mlx5_0", "0000:08:00.0", {1: {"state": "4: ACTIVE"}})
    (hca,) = read(listing(known(0, FIRST)))["hcas"]
    assert hca["distance_to_gpus"] == {FIRST: "PHB", SECOND: "NODE", THIRD: "NODE"}
