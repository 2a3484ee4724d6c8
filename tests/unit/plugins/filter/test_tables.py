# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.filter.mig_layout import mig_layout
from ansible_collections.heterogpu.inference.plugins.filter.site_row import site_row
from ansible_collections.heterogpu.inference.plugins.filter.text_table import text_table
from ansible_collections.heterogpu.inference.plugins.filter.triton_rows import triton_rows


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows: list[dict[str, Any]] = [{"node": "a100-1", "numa_node": 0, "gpu": ["x", "y"]}, {"node": "v", "numa_node": None, "gpu": []}]
    assert text_table(rows, ["node", "numa_node", "gpu"]) == [
        "node    numa node  gpu",
        "------  ---------  ----",
        "a100-1  0          x, y",
        "v       -          -",
    ]


def test_row_counts_what_was_done() -> None:
    changes = {
        "node": "a",
        "packages": ["p=1"],
        "geometry": {"0000:07:00.0": "x", "0000:0f:00.0": "y"},
        "units": ["triton@a.service"],
        "stopped_units": ["triton@b.service", "triton@c.service"],
        "reboot_required": False,
    }
    assert site_row(changes) == {
        "node": "a",
        "packages": "1 package installed",
        "geometry": "2 GPUs changed",
        "units": "1 unit started, 2 units stopped",
        "reboot_required": "no",
    }


def test_answer_shows_the_first_values_of_the_first_output() -> None:
    replica = {
        "device": {"pci_address": "0000:07:00.0", "profile": "3g.40gb", "start": 4},
        "service": "chat",
        "http_port": 8000,
        "numa_node": 1,
    }
    [row] = triton_rows([replica], "a", "192.0.2.1", [{"outputs": {"scores": [0.123456, 1, 2, 3, 4], "device": ["MIG-x"]}}])
    assert row == {
        "node": "a",
        "gpu": "0000:07:00.0",
        "instance": "3g.40gb@4",
        "service": "chat",
        "endpoint": "192.0.2.1:8000",
        "numa_node": 1,
        "answer": "scores 0.1235 1 2 3 ...",
    }


def test_layout_names_the_gpus_with_steps_only() -> None:
    gpus = [
        {"pci_address": "0000:07:00.0", "mig_mode": "enabled", "instances": [{"device": "4g.40gb@0"}, {"device": "3g.40gb@4"}]},
        {"pci_address": "0000:0f:00.0", "mig_mode": "disabled", "instances": []},
        {"pci_address": "0000:47:00.0", "mig_mode": "enabled", "instances": [{"device": "7g.80gb@0"}]},
    ]
    steps = [{"gpu": "0000:07:00.0"}, {"gpu": "0000:0f:00.0"}]
    assert mig_layout({"gpus": gpus, "steps": steps}) == {"0000:07:00.0": "4g.40gb@0 + 3g.40gb@4", "0000:0f:00.0": "MIG off"}
