# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page and the summary show the whole plan and need nothing else."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import planning
import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _page, _text
from small import cluster, service

SERVICES = (
    service("chat", replicas=3, device={"mig": ["4g.40gb", "3g.40gb"]}),
    service("embed", model="encoder", replicas=5, device={"share": 4}, **{"class": "auxiliary"}),
    service("bulk", model="seventy", device={"gpus": 4}, **{"class": "batch"}),
    service("lost", dtype="bfloat16", pool="v100"),
)


@pytest.fixture(scope="module")
def plan() -> Any:
    return planning.plan(*cluster(*SERVICES))


def test_the_page_is_self_contained_and_complete(plan: Any) -> None:
    page = _page.render(plan, [{"sentence": "a <difference> & more"}], planning.catalog())
    assert not re.search(r"(src|href)=|url\(|@import|<script", page)
    assert "a &lt;difference&gt; &amp; more" in page
    for wanted in ("BF16 needs compute capability 8.0", "bulk-1", "chat-3", "embed-5", "NVLink", "NUMA node 1", "a100-1", "v100-1"):
        assert wanted in page


def test_every_drawing_is_well_formed_and_has_all_devices(plan: Any) -> None:
    page = _page.render(plan, [], planning.catalog())
    drawings = [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)]
    assert len(drawings) == len(plan.document["nodes"])
    classes = [str(rect.get("class")) for drawing in drawings for rect in drawing.iter("rect")]
    blocks = [name for name in classes if name.startswith("block")]
    # Three instances, five shares, one group of four GPUs.
    assert sorted(blocks) == ["block auxiliary"] * 5 + ["block batch"] * 4 + ["block interactive"] * 3


def test_blocks_stay_within_their_gpu(plan: Any) -> None:
    page = _page.render(plan, [], planning.catalog())
    for text in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        drawing = ElementTree.fromstring(text)
        width = float(drawing.get("width", "0"))
        assert all(float(rect.get("x", "0")) + float(rect.get("width", "0")) <= width for rect in drawing.iter("rect"))


def test_the_summary_says_what_a_person_asks(plan: Any) -> None:
    text = _text.summary(plan, [{"sentence": "a difference"}])
    assert text.startswith("9 of 10 replicas placed on 2 nodes with 16 GPUs (2 with MIG, ")
    for wanted in (
        "Refused:\n- lost: BF16",
        "Differences from the inventory:\n- a difference",
        "Geometry changes:",
        "Starts:\n- bulk-1, chat-1",
    ):
        assert wanted in text


def test_the_summary_shows_moves_and_drained_nodes(plan: Any) -> None:
    hosts, groups = cluster(*SERVICES[:3])
    hosts["a100-1"] = hosts["a100-1"] | {"gpu_excluded": [4]}
    again = planning.plan(hosts, groups, json.loads(planning.text(plan)))
    text = "\n".join(_text.changes(again))
    assert "Moves:\n- chat-1: a100-1/gpu4/" in text
    assert "Nodes that need draining:\n- a100-1" in text
