"""The Fabric Manager stand-in refuses like the real one and tells the driver library that it runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _repository import ROOT
from repository_builder import deb

TEMPLATE = ROOT / "tests/sandbox/repository/files/nv-fabricmanager.py"
VERSION = "580.95.05"


class Node:
    """A root folder with the program's paths moved below it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        text = deb.render(TEMPLATE.read_text(encoding="utf-8"), {"version": VERSION}, "the test")
        for path in ("/sys/", "/run/", "/usr/share/"):
            text = text.replace(f'"{path}', f'"{root}{path}')
        (root / "nv-fabricmanager").write_text(text, encoding="utf-8")
        self.write("/usr/share/nvidia/nvswitch/fabricmanager.cfg", "")
        (root / "run").mkdir()

    def write(self, path: str, text: str) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="ascii")

    def load(self, version: str) -> None:
        self.write("/sys/module/nvidia/version", f"{version}\n")

    def switch(self) -> None:
        self.write("/sys/bus/pci/devices/0000:c4:00.0/vendor", "0x10de\n")
        self.write("/sys/bus/pci/devices/0000:c4:00.0/class", "0x068000\n")

    def start(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(self.root / "nv-fabricmanager")], capture_output=True, text=True, check=False, timeout=30
        )

    @property
    def state(self) -> Path:
        return self.root / "run/gpu-sandbox/fabricmanager.json"

    def stop(self) -> None:
        pid = json.loads(self.state.read_text(encoding="ascii"))["pid"]
        os.kill(pid, signal.SIGTERM)


@pytest.fixture(name="node")
def fixture_node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    yield node
    if node.state.exists():
        node.stop()


def test_it_runs_on_nvswitch_hardware_with_its_own_driver(node: Node):
    node.switch()
    node.load(VERSION)
    assert node.start().returncode == 0
    state = json.loads(node.state.read_text(encoding="ascii"))
    assert state["version"] == VERSION
    assert (node.root / "run/nvidia-fabricmanager/nv-fabricmanager.pid").read_text(encoding="ascii") == f"{state['pid']}\n"


def test_another_driver_version_is_refused(node: Node):
    node.switch()
    node.load("580.173.02")
    done = node.start()
    assert done.returncode == 1
    assert "interface version 580.95.05 don't match with driver version 580.173.02" in done.stderr


def test_hardware_without_nvswitch_is_refused(node: Node):
    node.load(VERSION)
    done = node.start()
    assert (done.returncode, "NV_WARN_NOTHING_TO_DO" in done.stderr) == (1, True)


def test_no_driver_is_refused(node: Node):
    node.switch()
    done = node.start()
    assert (done.returncode, "not loaded" in done.stderr) == (1, True)


def test_no_configuration_is_refused(node: Node):
    (node.root / "usr/share/nvidia/nvswitch/fabricmanager.cfg").unlink()
    assert node.start().returncode == 1
