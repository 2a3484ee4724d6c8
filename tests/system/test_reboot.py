# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reboot leaves what hardware keeps, and one run brings the rest back."""

from __future__ import annotations

import subprocess

import pytest
from system_sandbox import INVENTORY, ROOT, Node, ansible_environment, playbook

pytestmark = pytest.mark.sandbox


def reboot(name: str) -> None:
    command = ["ansible", name, "-i", str(INVENTORY), "--become", "-m", "ansible.builtin.reboot"]
    subprocess.run(command, cwd=ROOT, env={**ansible_environment(), "ANSIBLE_STDOUT_CALLBACK": "default"}, check=True, capture_output=True)


def mig_modes(node: Node) -> list[str]:
    return node.run("nvidia-smi --query-gpu=mig.mode.current,mig.mode.pending --format=csv,noheader").splitlines()


def test_reboot_keeps_the_mode_and_not_the_instances(nodes: dict[str, Node]) -> None:
    node = nodes["a100-2"]
    before = mig_modes(node)
    assert "Enabled, Enabled" in before
    assert "UUID: MIG-" in node.run("nvidia-smi -L")
    boot = node.run("cat /proc/sys/kernel/random/boot_id; stat -c %Y /run")

    reboot("a100-2")

    assert node.run("cat /proc/sys/kernel/random/boot_id; stat -c %Y /run") != boot
    assert mig_modes(node) == before
    assert "UUID: MIG-" not in node.run("nvidia-smi -L")

    run = playbook("playbooks/site.yml", limit="a100-2")
    assert run.status == 0, run.failure
    assert "UUID: MIG-" in node.run("nvidia-smi -L")
    again = playbook("playbooks/site.yml", limit="a100-2")
    assert again.stats["a100-2"]["changed"] == 0
