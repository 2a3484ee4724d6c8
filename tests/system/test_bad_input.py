# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input ends in one sentence with the way out, and nothing is changed on any node."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from system_sandbox import Node, Untouched, playbook

pytestmark = pytest.mark.sandbox
SITE = "playbooks/site.yml"
PREFLIGHT_REFUSED = "Nothing was changed on any node"


def selection(**entry: Any) -> dict[str, Any]:
    return {"mig_geometry_selections": [entry]}


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        pytest.param(selection(gpus=0, profiles=["9g.90gb"]), "9g.90gb", id="unknown profile"),
        pytest.param(selection(gpus=42, profiles=["3g.40gb"]), "42", id="unknown GPU"),
        pytest.param(selection(gpus=0, profile=["3g.40gb"]), "profile", id="unknown option"),
        pytest.param(selection(gpus=0, profiles=["4g.40gb", "4g.40gb"]), "4g.40gb", id="geometry that does not fit"),
        pytest.param({"gpu_devices": "eight"}, "gpu_devices|preflight_devices", id="malformed inventory"),
        pytest.param({"gpu_driver_version": "580.999.1"}, "580.999.1", id="version that no repository has"),
        pytest.param({"gpu_driver_version": "999.1.1"}, "999", id="unknown branch"),
    ],
)
def test_bad_inventory(nodes: dict[str, Node], variables: dict[str, Any], named: str) -> None:
    with Untouched(list(nodes.values())):
        run = playbook(SITE, variables=variables, limit="a100-1")
    assert run.status != 0
    assert re.search(named, run.failure), run.failure
    assert "Traceback" not in run.failure + run.errors


def test_mig_on_v100_is_refused_by_name(nodes: dict[str, Node]) -> None:
    with Untouched(list(nodes.values())):
        run = playbook(SITE, variables=selection(gpus=0, profiles=["3g.40gb"]), limit="v100-1")
    assert run.status != 0
    assert "V100" in run.failure
    assert PREFLIGHT_REFUSED in run.failure


def test_full_disk(nodes: dict[str, Node]) -> None:
    node = nodes["a100-1"]
    # As much as the store has in it, and nothing beside that.
    store = "/var/lib/heterogpu/packages"
    node.run(
        f"cp -a {store} /root/packages && mount -t tmpfs -o size=$(($(du -sk --apparent-size {store} | cut -f1) + 512))k tmpfs {store} "
        f"&& cp -a /root/packages/. {store}"
    )
    try:
        with Untouched([nodes["a100-2"]]):
            run = playbook(SITE, variables={"gpu_driver_version": "580.173.02"})
    finally:
        node.run(f"umount {store} && rm -r /root/packages")
    assert run.status != 0
    assert PREFLIGHT_REFUSED in run.failure
    assert re.search(r"/var/lib/heterogpu/packages has 0 MiB free and \d+ MiB are needed", run.failure)


def test_a_node_that_does_not_answer_is_left_alone_and_the_rest_goes_on(nodes: dict[str, Node], tmp_path: Path) -> None:
    overlay = tmp_path / "overlay.yml"
    overlay.write_text("all: {hosts: {v100-2: {ansible_host: 10.77.50.99, ansible_ssh_timeout: 3}}}\n")
    with Untouched([nodes["v100-2"]]):
        run = playbook(SITE, "-i", str(overlay))
    assert run.failure == ""
    judged = run.results("Show the findings of all nodes")
    assert any("v100-2" in str(result["msg"]) and "Repair SSH" in str(result["msg"]) for result in judged.values() if "msg" in result)
    assert set(run.results("Wait until every model is ready")) == {"a100-1", "a100-2", "v100-1"}


def test_hanging_driver_ends_in_bounded_time(nodes: dict[str, Node], faults: Any) -> None:
    faults(nodes["a100-1"], [{"call": "nvmlDeviceGetMemoryInfo*", "nth": 1, "times": "always", "hang": True}])
    with Untouched([nodes["a100-2"]]):
        run = playbook(SITE, limit="a100-1,a100-2")
    assert run.status != 0
    assert PREFLIGHT_REFUSED in run.failure
    assert "a100-1" in run.failure


def test_geometry_without_a_driver(nodes: dict[str, Node]) -> None:
    node = nodes["a100-2"]
    node.run(
        "systemctl stop heterogpu-triton.target nvidia-fabricmanager nvidia-persistenced; "
        "modprobe -r nvidia_peermem nvidia_uvm nvidia_drm nvidia_modeset; modprobe -r nvidia"
    )
    try:
        calls = len(node.mutations())
        run = playbook("playbooks/base.yml", "--tags", "mig", limit="a100-2")
        assert run.status != 0
        assert "the NVIDIA kernel module is not loaded" in run.failure
        # It was drained for the change that then could not be made, and stays so until the next run.
        assert "The node stays drained" in run.failure
        assert node.mutations()[calls:] == []
    finally:
        restored = playbook(SITE, limit="a100-2")
    assert restored.status == 0, restored.failure
