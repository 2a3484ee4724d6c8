# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running default sandbox, driven as an operator drives a datacenter: by playbooks, and by SSH to look."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = ROOT / "inventories" / "sandbox"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heterogpu-sandbox"
NODES = {"a100-1": "10.77.50.11", "a100-2": "10.77.50.12", "v100-1": "10.77.50.13", "v100-2": "10.77.50.14"}
# Where the collection may write; what runs all the time (logs, caches of a lookup) is not state.
WATCHED = "/etc /opt /usr /lib/modules /var/lib/dpkg /var/lib/heterogpu /var/cache/apt/archives"


@dataclass(frozen=True)
class Run:
    """What one ansible-playbook run has reported."""

    status: int
    document: dict[str, Any]
    errors: str

    @property
    def stats(self) -> dict[str, dict[str, int]]:
        return self.document["stats"]

    def results(self, task: str) -> dict[str, dict[str, Any]]:
        """Results by host of the last task with this name."""
        found: dict[str, dict[str, Any]] = {}
        for play in self.document["plays"]:
            for entry in play["tasks"]:
                if entry["task"]["name"].rpartition(" : ")[2] == task:
                    found.update(entry["hosts"])
        return found

    @property
    def changed(self) -> dict[str, list[str]]:
        """The tasks that have changed something, by host."""
        found: dict[str, list[str]] = {}
        for play in self.document["plays"]:
            for entry in play["tasks"]:
                for host, result in entry["hosts"].items():
                    if result.get("changed"):
                        steps = result.get("steps") or result.get("changed_files") or ""
                        found.setdefault(host, []).append(f"{entry['task']['name']} {steps}".strip())
        return found

    @property
    def failure(self) -> str:
        """The message of the task that ended the run."""
        messages = [
            str(result.get("msg", ""))
            for play in self.document["plays"]
            for entry in play["tasks"]
            for result in entry["hosts"].values()
            if result.get("failed")
        ]
        return messages[-1] if messages else ""


def ansible_environment() -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "ANSIBLE_NOCOLOR": "1",
    }


def playbook(name: str, *arguments: str, variables: dict[str, Any] | None = None, limit: str = "") -> Run:
    command = ["ansible-playbook", str(ROOT / name), "-i", str(INVENTORY), "-e", "site_serial=100%", *arguments]
    if variables:
        command += ["-e", json.dumps(variables)]
    if limit:
        command += ["--limit", limit]
    done = subprocess.run(command, cwd=ROOT, env=ansible_environment(), capture_output=True, text=True, check=False)
    start = done.stdout.find("{")
    if start < 0:
        pytest.fail(f"{' '.join(command)} printed no result:\n{done.stdout}\n{done.stderr}")
    return Run(done.returncode, json.loads(done.stdout[start:]), done.stderr)


@dataclass(frozen=True)
class Node:
    name: str
    address: str

    def run(self, command: str, stdin: str = "", check: bool = True) -> str:
        folder = CACHE / "default"
        ssh = ["ssh", "-i", str(folder / "id_ed25519"), "-o", f"UserKnownHostsFile={folder / 'known_hosts'}", "-o", "BatchMode=yes"]
        done = subprocess.run(
            [*ssh, f"operator@{self.address}", f"sudo bash -c {_quoted(command)}"], input=stdin, capture_output=True, text=True, check=False
        )
        if check and done.returncode:
            pytest.fail(f"{command!r} failed on {self.name} with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def mutations(self) -> list[dict[str, Any]]:
        text = self.run("cat /var/lib/gpu-sandbox/mutations.jsonl 2>/dev/null || true")
        return [json.loads(line) for line in text.splitlines()]

    def files(self) -> set[str]:
        """One line per watched file that changes when its content, mode or owner does."""
        command = f"find {WATCHED} -xdev \\( -type f -o -type l \\) -printf '%p %T@ %s %m %u:%g %l\\n' 2>/dev/null"
        lines = self.run(f"{command} | grep -v __pycache__ || true").splitlines()
        return set(lines)


def _quoted(command: str) -> str:
    return "'" + command.replace("'", "'\\''") + "'"


@dataclass
class Untouched:
    """Proves that a block of code has changed no watched file and made no mutating call of the driver."""

    watched: list[Node]

    def __enter__(self) -> Untouched:
        self.before = [(node.files(), len(node.mutations())) for node in self.watched]
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            return
        for node, (files, calls) in zip(self.watched, self.before, strict=True):
            assert node.files() == files, f"files of {node.name} changed"
            assert node.mutations()[calls:] == []
