# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declaration: which GPUs, which profiles, and each mistake that it can have."""

from __future__ import annotations

from typing import Any

import mig_model as model
import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _mig_names, _mig_select
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Wanted
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_state import Gpu

A = [
    Gpu(index, f"0000:{index + 7:02x}:00.0", "NVIDIA A100-SXM4-80GB", uuid=f"GPU-{index}", capable=True, offer=model.offer("a100_80gb"))
    for index in range(3)
]
V = Gpu(3, "0000:41:00.0", "Tesla V100-PCIE-32GB", uuid="GPU-3")
NODE = [*A, V]


def declared(gpus: Any, unlisted: str = "keep", **entry: Any) -> dict[str, _mig_select.Declared]:
    return _mig_select.declared([{"gpus": gpus, **(entry or {"profiles": ["7g.80gb"]})}], NODE, unlisted, False)


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("all", [0, 1, 2]),
        (["all"], [0, 1, 2]),
        (1, [1]),
        (0, [0]),
        ("1", [1]),
        ([0, 2], [0, 2]),
        ("0,2", [0, 2]),
        ("0, 2", [0, 2]),
        ("GPU-2", [2]),
        ("0000:08:00.0", [1]),
        ("00000000:08:00.0", [1]),
        ("08:00.0", [1]),
        (["GPU-0", "0000:09:00.0", 1], [0, 1, 2]),
    ],
)
def test_selections(selection: Any, expected: list[int]) -> None:
    assert sorted(declared(selection)) == [A[index].pci_address for index in expected]


@pytest.mark.parametrize(
    ("selection", "sentence"),
    [
        (3, r"GPU 3 \(0000:41:00\.0, Tesla V100-PCIE-32GB\) has no MIG"),
        (7, r"no GPU '7'; its GPUs are 0 \(0000:07:00\.0\)"),
        ("", "`gpus` is missing"),
        ([0, 0], "already declared"),
        ([0, "GPU-0"], "already declared"),
    ],
)
def test_mistaken_selections_are_refused_by_name(selection: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        declared(selection)


def test_all_on_a_node_without_mig_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"no GPU of this node has MIG .*Tesla V100"):
        _mig_select.declared([{"gpus": "all", "profiles": ["7g.80gb"]}], [V], "keep", False)


def test_mig_off_is_nothing_for_a_gpu_without_mig() -> None:
    assert declared(3, mig=False) == {}


def test_unlisted_gpus_are_disabled_on_demand_only() -> None:
    assert set(declared(0)) == {A[0].pci_address}
    found = declared(0, unlisted="disable")
    assert {address: one.mig for address, one in found.items()} == {
        A[0].pci_address: True,
        A[1].pci_address: False,
        A[2].pci_address: False,
    }


def test_mig_without_instances_needs_a_word() -> None:
    nothing: tuple[Any, ...] = ([], {}, {"1g.10gb": 0}, None)
    for profiles in nothing:
        with pytest.raises(InvalidInput, match="allow_empty"):
            declared(0, profiles=profiles)
    assert _mig_select.declared([{"gpus": 0, "profiles": []}], NODE, "keep", True)[A[0].pci_address].mig


def test_profiles_and_mig_off_exclude_each_other() -> None:
    with pytest.raises(InvalidInput, match="exclude each other"):
        declared(0, profiles=["7g.80gb"], mig=False)


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        (["3g.40gb"], [Wanted("3g.40gb", None)]),
        (["3c.3g.40gb"], [Wanted("3g.40gb", None)]),
        (["MIG 3g.40gb"], [Wanted("3g.40gb", None)]),
        (["3G.40GB@4"], [Wanted("3g.40gb", 4)]),
        (["1g.10gb+me"], [Wanted("1g.10gb+me", None)]),
        ({"1g.10gb": 2, "2g.20gb": 0}, [Wanted("1g.10gb", None)] * 2),
    ],
)
def test_spellings(profiles: Any, expected: list[Wanted]) -> None:
    assert _mig_names.parse_all(profiles, "x") == expected


@pytest.mark.parametrize(
    "profiles",
    ["3g.40gb", 9, ["9"], [9], ["3g"], ["1c.3g.40gb"], {"1g.10gb": -1}, {"1g.10gb": True}, {"1g.10gb": "two"}, {"3g.40gb@4": 2}, [None]],
)
def test_mistaken_profiles_are_refused(profiles: Any) -> None:
    with pytest.raises(InvalidInput):
        _mig_names.parse_all(profiles, "geometry[0]")
