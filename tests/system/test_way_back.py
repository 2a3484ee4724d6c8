# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forward by a drain and a reboot, back without a repository, and off the node."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from system_sandbox import Node, Untouched, playbook

pytestmark = pytest.mark.sandbox
SITE = "playbooks/site.yml"
OLD, NEW = "580.95.05", "580.173.02"
LEFT = "ls -d {/etc,/run,/var/lib,/usr/local/lib,/opt}/heterogpu /etc/systemd/system/heterogpu* 2>/dev/null || true"


def driver(node: Node) -> str:
    return node.run("cat /sys/module/nvidia/version").strip()


def boots(node: Node) -> str:
    return node.run("stat -c %Y /run; cat /proc/sys/kernel/random/boot_id")


def serving(node: Node) -> list[str]:
    return node.run("systemctl list-units --state=active --plain --no-legend 'triton@*'").split()


def holds(node: Node) -> list[str]:
    return node.run("apt-mark showhold").split()


@pytest.fixture
def cut_off(nodes: dict[str, Node]) -> Iterator[Node]:
    """A node that reaches no repository."""
    node = nodes["v100-1"]
    node.run(r"cp /etc/hosts /root/hosts && sed 's/^.*\bcontrol$/192.0.2.1 control/' /root/hosts > /etc/hosts")
    yield node
    node.run("cat /root/hosts > /etc/hosts")


@pytest.fixture(scope="module", autouse=True)
def converged() -> None:
    run = playbook(SITE)
    assert run.status == 0, run.failure


def test_an_upgrade_drains_reboots_and_puts_back(nodes: dict[str, Node]) -> None:
    node = nodes["v100-1"]
    before = boots(node)
    with Untouched([nodes["a100-1"]]):
        run = playbook(SITE, variables={"gpu_driver_version": NEW}, limit="v100-1")
    assert run.status == 0, run.failure
    assert driver(node) == NEW
    assert boots(node) != before
    assert serving(node)
    assert "gone" in node.run("test -e /var/lib/heterogpu/drain.json || echo gone")


def test_the_way_back_needs_no_repository(cut_off: Node) -> None:
    run = playbook("playbooks/rollback.yml", limit="v100-1")
    assert run.status == 0, run.failure
    assert driver(cut_off) == OLD
    assert serving(cut_off)
    assert json.loads(cut_off.run("cat /etc/heterogpu/plan.json"))["replicas"]
    again = playbook("playbooks/rollback.yml", limit="v100-1")
    assert again.status == 0, again.failure
    assert again.changed == {}
    assert driver(cut_off) == OLD


def test_the_inventory_as_it_was_finds_nothing_to_do() -> None:
    run = playbook(SITE)
    assert run.status == 0, run.failure
    assert run.changed == {}


def test_no_way_back_is_refused_before_any_change(nodes: dict[str, Node]) -> None:
    nodes["v100-2"].run("rm -f /var/lib/heterogpu/plan.previous.json")
    with Untouched([nodes["v100-2"]]):
        run = playbook("playbooks/rollback.yml", limit="v100-2")
    assert run.status != 0
    assert "v100-2 remembers nothing that had worked before" in run.failure


@pytest.mark.parametrize("name", ["rollback", "remove", "drain"])
def test_nodes_must_be_named(name: str, nodes: dict[str, Node]) -> None:
    with Untouched(list(nodes.values())):
        run = playbook(f"playbooks/{name}.yml")
    assert run.status != 0
    assert "--limit" in run.failure


@pytest.mark.slow
def test_the_collection_leaves_a_node_and_comes_back(nodes: dict[str, Node]) -> None:
    node = nodes["a100-2"]
    versions = node.run("dpkg-query -W 'nvidia-*' 'libnvidia-*'")
    run = playbook("playbooks/remove.yml", limit="a100-2")
    assert run.status == 0, run.failure
    assert holds(node) == []
    assert node.run(LEFT) == ""
    assert node.run("ls /etc/apt/preferences.d") == ""
    assert set(node.run("nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader").split()) == {"Disabled"}
    assert node.run("dpkg-query -W 'nvidia-*' 'libnvidia-*'") == versions
    back = playbook(SITE)
    assert back.status == 0, back.failure
    assert len(serving(node)) >= 2
    assert playbook(SITE).changed == {}
