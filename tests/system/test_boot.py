# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node comes back from a reboot by itself: geometry, settings and the map of devices, before Triton."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from system_sandbox import INVENTORY, ROOT, Node, ansible_environment, playbook

pytestmark = pytest.mark.sandbox
NAME = "a100-2"
UNIT = "heterogpu-gpu.service"
# The unit that loads the module of RDMA would load the driver too.
PEERMEM = "/etc/systemd/system/heterogpu-nvidia-peermem.service.d"
MAP, DECLARATION = "/run/heterogpu/devices.json", "/etc/heterogpu/boot.json"


def reboot(node: Node) -> None:
    command = ["ansible", node.name, "-i", str(INVENTORY), "--become", "-m", "ansible.builtin.reboot"]
    subprocess.run(command, cwd=ROOT, env={**ansible_environment(), "ANSIBLE_STDOUT_CALLBACK": "default"}, check=True, capture_output=True)


def settled(node: Node) -> str:
    """The state of the unit after its job has ended, which `start` waits for."""
    node.run(f"systemctl start {UNIT}", check=False)
    return node.run(f"systemctl is-active {UNIT}", check=False).strip()


def devices(node: Node) -> dict[str, str]:
    return json.loads(node.run(f"cat {MAP} 2>/dev/null || echo '{{}}'"))


def triton_units(node: Node) -> list[str]:
    return node.run("systemctl show -P Wants heterogpu-triton.target", check=False).split()


def since_boot(node: Node, unit: str, event: str) -> int:
    return int(node.run(f"systemctl show -P {event}TimestampMonotonic {unit}"))


def journal(node: Node, unit: str = UNIT) -> str:
    return node.run(f"journalctl -b -u {unit} -o cat --no-pager")


@pytest.fixture(name="node")
def fixture_node(nodes: dict[str, Node]) -> Iterator[Node]:
    """The node as the site has left it, and again so after the test."""
    node = nodes[NAME]
    declaration = node.run(f"cat {DECLARATION}")
    yield node
    node.run(f"cat > {DECLARATION}", stdin=declaration)
    node.run(f"rm -rf /etc/modprobe.d/late-driver.conf {PEERMEM}; systemctl daemon-reload; modprobe nvidia; systemctl reset-failed")
    node.run("systemctl start nvidia-persistenced; systemctl start nvidia-fabricmanager || true")
    node.run(f"systemctl restart {UNIT}; systemctl restart heterogpu-triton.target 2>/dev/null || true")


def test_geometry_comes_back_before_triton_starts(node: Node) -> None:
    before = devices(node)
    assert any("@" in key for key in before)
    boot = node.run("cat /proc/sys/kernel/random/boot_id; stat -c %Y /run")
    reboot(node)
    assert node.run("cat /proc/sys/kernel/random/boot_id; stat -c %Y /run") != boot
    assert settled(node) == "active", journal(node)
    now = devices(node)
    assert now.keys() == before.keys()
    assert {key for key in now if now[key] != before[key]} == {key for key in now if "@" in key}
    for unit in triton_units(node):
        assert since_boot(node, UNIT, "ActiveEnter") <= since_boot(node, unit, "InactiveExit")
        assert node.run(f"systemctl show -P NRestarts {unit}").strip() == "0", journal(node, unit)
        replica = unit.removeprefix("triton@").removesuffix(".service")
        environment = node.run(f"cat /etc/heterogpu/triton/{replica}.env /run/heterogpu/triton/{replica}.env").splitlines()
        values = dict(line.split("=", 1) for line in environment if not line.startswith("#"))
        assert values["CUDA_VISIBLE_DEVICES"].split(",") == [now[key] for key in values["DEVICES"].split(",")]
    again = playbook("playbooks/site.yml", limit=NAME)
    assert again.status == 0, again.failure
    assert again.stats[NAME]["changed"] == 0


def test_the_unit_changes_nothing_when_all_is_in_place(node: Node) -> None:
    assert settled(node) == "active"
    calls = len(node.mutations())
    node.run(f"systemctl restart {UNIT}")
    assert node.mutations()[calls:] == []


def test_a_late_driver_is_awaited(node: Node) -> None:
    before = devices(node)
    node.run("cat > /etc/modprobe.d/late-driver.conf", stdin="blacklist nvidia\nblacklist nvidia_uvm\n")
    node.run(f"mkdir -p {PEERMEM} && cat > {PEERMEM}/late-driver.conf", stdin="[Unit]\nConditionPathExists=/nowhere\n")
    reboot(node)
    assert node.run(f"systemctl is-active {UNIT}", check=False).strip() == "activating"
    for unit in triton_units(node):
        assert node.run(f"systemctl is-active {unit}", check=False).strip() == "inactive"
    node.run("modprobe nvidia")
    assert settled(node) == "active", journal(node)
    assert "Waiting up to" in journal(node)
    assert devices(node).keys() == before.keys()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda document: next(entry for entry in document["geometry"] if entry.get("profiles")).update(
                profiles=["4g.40gb@0", "4g.40gb@0"]
            ),
            "is not possible",
        ),
        (lambda document: document["geometry"][0].update(gpus="0000:ff:00.0"), "this node has no GPU"),
        (lambda document: document.update(version=99), "run the role mig of this node again"),
    ],
    ids=["geometry", "gpu", "version"],
)
def test_an_impossible_declaration_fails_and_does_not_keep_the_node_from_booting(
    node: Node, spoil: Callable[[dict[str, Any]], None], sentence: str
) -> None:
    document = json.loads(node.run(f"cat {DECLARATION}"))
    spoil(document)
    document["driver_timeout"] = 2
    node.run(f"cat > {DECLARATION}", stdin=json.dumps(document))
    reboot(node)
    assert settled(node) == "failed"
    # `start` has tried again; each attempt said it in one line.
    lines = [line for line in journal(node).splitlines() if sentence in line]
    assert lines and node.run(f"systemctl show -P ExecMainStatus {UNIT}").strip() == "1"
    assert node.run("systemctl is-active multi-user.target", check=False).strip() in ("active", "inactive")
    assert node.run("systemctl is-active ssh", check=False).strip() == "active"
