# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that changes driver and geometry of all nodes is broken at seeded moments; the next run ends where an undisturbed one ends.

Half of the runs lose their controller (SIGKILL to its process group), half a node (its container is killed and started again).
The moments are inside dpkg, between calls of the driver that change something, and anywhere.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from system_sandbox import INVENTORY, ROOT, Node, ansible_environment, playbook

pytestmark = pytest.mark.sandbox
BASE = "playbooks/base.yml"
ALL = 50
PATIENCE_S = 240
MUTATIONS = "/var/lib/gpu-sandbox/mutations.jsonl"
SERVICES = yaml.safe_load((INVENTORY / "group_vars/all/services.yml").read_text(encoding="utf-8"))["inference_services"]
# The two states between which the nodes go forth and back.
TARGETS: tuple[dict[str, Any], dict[str, Any]] = (
    {"gpu_driver_version": "580.95.05", "inference_services": SERVICES},
    {
        "gpu_driver_version": "580.173.02",
        "inference_services": [service | {"replicas": 8} if service["name"] == "chat" else service for service in SERVICES],
    },
)
STATE = r"""
import glob, json, subprocess
def said(*command): return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
record = json.load(open("/etc/heterogpu/plan.json"))
record.pop("generation")
def texts(*patterns): return {path: open(path).read() for pattern in patterns for path in sorted(glob.glob(pattern))}
print(json.dumps({
    "packages": said("dpkg-query", "-W", "-f", "${Package} ${Version} ${Status}\n"),
    "loaded": open("/sys/module/nvidia/version").read(),
    "files": texts("/etc/apt/preferences.d/*", "/etc/apt/sources.list.d/*", "/etc/systemd/system/heterogpu*", "/etc/heterogpu/boot.json"),
    "record": record,
    "enabled": said("systemctl", "list-unit-files", "--state=enabled", "--no-legend", "--plain"),
    "failed": said("systemctl", "list-units", "--state=failed", "--no-legend", "--plain"),
    "geometry": [line.partition("(UUID")[0] for line in said("nvidia-smi", "-L")],
    "settings": said("nvidia-smi", "--query-gpu=pci.bus_id,mig.mode.current,mig.mode.pending,persistence_mode,compute_mode,power.limit",
        "--format=csv,noheader"),
    "left": sorted(glob.glob("/var/lib/heterogpu/drain.json") + glob.glob("/var/lib/heterogpu/lease.json")),
}))
"""


@dataclass(frozen=True)
class Break:
    seed: int
    victim: str  # controller, or the name of a node
    where: str  # dpkg, mig or anywhere
    which: str  # the node that is watched
    after: float  # seconds or calls

    def __str__(self) -> str:
        return f"{self.seed}: {self.victim} dies {'in' if self.where == 'dpkg' else 'at'} {self.where} of {self.which}"


def schedule() -> list[Break]:
    made = []
    for seed in range(ALL):
        chance = random.Random(seed)
        where = ("dpkg", "mig", "anywhere", "mig", "dpkg")[seed % 5]
        node = chance.choice(["a100-1", "a100-2"] if where == "mig" else ["a100-1", "a100-2", "v100-1", "v100-2"])
        after = {"dpkg": chance.uniform(0, 2.5), "mig": chance.randint(1, 6), "anywhere": chance.uniform(1, 50)}[where]
        made.append(Break(seed, node if seed % 2 else "controller", where, node, after))
    return made


BREAKS = schedule()


def state(nodes: dict[str, Node]) -> dict[str, Any]:
    return {name: json.loads(node.run("python3 -", stdin=STATE)) for name, node in nodes.items()}


def begin(variables: dict[str, Any]) -> subprocess.Popen[bytes]:
    command = ["ansible-playbook", str(ROOT / BASE), "-i", str(INVENTORY), "-e", "site_serial=100%", "-e", json.dumps(variables)]
    return subprocess.Popen(
        command, cwd=ROOT, env=ansible_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def podman(*arguments: str) -> None:
    subprocess.run(["podman", *arguments], check=True, capture_output=True)


def wait_for(moment: Break, run: subprocess.Popen[bytes]) -> bool:
    """Watch the node for the moment; return whether it came before the run ended."""
    script = {
        "dpkg": f"until pgrep -x dpkg >/dev/null; do sleep 0.02; done; sleep {moment.after:.2f}",
        "mig": f"log={MUTATIONS}; touch $log; n=$(wc -l <$log); "
        f"until [ $(wc -l <$log) -ge $((n+{moment.after:.0f})) ]; do sleep 0.02; done",
        "anywhere": f"sleep {moment.after:.2f}",
    }[moment.where]
    watch = subprocess.Popen(["podman", "exec", moment.which, "bash", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end_the_watch() -> None:
        run.wait()
        watch.kill()

    threading.Thread(target=end_the_watch, daemon=True).start()
    watch.wait(timeout=PATIENCE_S)
    return run.poll() is None


def strike(moment: Break, run: subprocess.Popen[bytes]) -> None:
    if moment.victim == "controller":
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return
    podman("kill", moment.victim)
    podman("start", moment.victim)
    try:
        run.wait(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()


def await_ssh(node: Node) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while node.run("systemctl is-system-running --wait || true", check=False).strip() not in {"running", "degraded"}:
        assert time.monotonic() < deadline, f"{node.name} did not come back"


@pytest.fixture(scope="module")
def undisturbed(nodes: dict[str, Node]) -> list[dict[str, Any]]:
    """What both targets look like after runs that nothing has broken: forth, back, so that each is reached by a change."""
    found: dict[int, dict[str, Any]] = {}
    for target in (0, 1, 0):
        run = playbook(BASE, variables=TARGETS[target])
        assert run.status == 0, run.failure
        found[target] = state(nodes)
    return [found[0], found[1]]


struck: list[Break] = []


@pytest.mark.slow
@pytest.mark.parametrize("moment", BREAKS, ids=str)
def test_the_next_run_ends_where_an_undisturbed_one_ends(moment: Break, nodes: dict[str, Node], undisturbed: list[dict[str, Any]]) -> None:
    target = 1 if state(nodes)["a100-1"]["loaded"] == undisturbed[0]["a100-1"]["loaded"] else 0
    run = begin(TARGETS[target])
    if wait_for(moment, run):
        strike(moment, run)
        struck.append(moment)
    if moment.victim != "controller":
        await_ssh(nodes[moment.victim])
    again = playbook(BASE, variables=TARGETS[target])
    assert again.status == 0, again.failure
    now = state(nodes)
    for name in nodes:
        assert now[name] == undisturbed[target][name], f"{name} after {moment}"


@pytest.mark.slow
def test_enough_runs_were_broken_at_every_kind_of_moment() -> None:
    """Not a moment came after its run had ended, or nearly none."""
    if len(struck) < ALL // 2:
        pytest.skip("only a part of the moments was chosen")
    assert sum(entry.where == "dpkg" for entry in struck) >= 10
    assert sum(entry.where == "mig" for entry in struck) >= 10
    assert abs(sum(entry.victim == "controller" for entry in struck) - len(struck) / 2) <= 5
