"""The DKMS stand-in: modules for every kernel, repeatable, and never another version's files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from _repository import ROOT

SCRIPT = ROOT / "tests/sandbox/repository/files/dkms"
RUNNING = os.uname().release


class Node:
    """A root folder with the script's paths moved below it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        text = SCRIPT.read_text(encoding="utf-8")
        for path in ("/var/lib/dkms", "/lib/modules", "/usr/src"):
            text = text.replace(path, f"{root}{path}")
        (root / "dkms").write_text(text, encoding="utf-8")
        (root / "lib/modules").mkdir(parents=True)
        (root / "var/lib").mkdir(parents=True)

    def source(self, version: str, flavour: str = "open") -> None:
        folder = self.root / f"usr/src/nvidia-{version}"
        folder.mkdir(parents=True)
        (folder / "dkms.conf").write_text("", encoding="utf-8")
        for name in ("nvidia", "nvidia-uvm"):
            (folder / f"{name}.ko").write_text(f"version={version}\nflavour={flavour}\n", encoding="utf-8")

    def kernel(self, name: str) -> None:
        (self.root / "lib/modules" / name).mkdir()

    def dkms(self, *arguments: str, status: int = 0) -> str:
        done = subprocess.run(["sh", str(self.root / "dkms"), *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    def install(self, version: str) -> None:
        self.dkms("add", "-m", "nvidia", "-v", version)
        self.dkms("install", "-m", "nvidia", "-v", version)

    def module(self, kernel: str = RUNNING) -> str:
        path = self.root / "lib/modules" / kernel / "updates/dkms/nvidia.ko"
        return path.read_text(encoding="utf-8").splitlines()[0] if path.exists() else "none"


@pytest.fixture(name="node")
def fixture_node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    node.source("580.95.05")
    return node


def test_every_kernel_gets_the_module(node: Node):
    node.kernel("6.1.0-40-amd64")
    node.install("580.95.05")
    assert node.module() == node.module("6.1.0-40-amd64") == "version=580.95.05"
    assert f"nvidia/580.95.05, {RUNNING}, x86_64: installed" in node.dkms("status")


def test_a_kernel_that_comes_later_gets_it_by_autoinstall(node: Node):
    node.install("580.95.05")
    node.kernel("6.1.0-41-amd64")
    assert node.module("6.1.0-41-amd64") == "none"
    node.dkms("autoinstall", "-k", "6.1.0-41-amd64")
    assert node.module("6.1.0-41-amd64") == "version=580.95.05"


def test_removal_leaves_nothing(node: Node):
    node.install("580.95.05")
    node.dkms("remove", "-m", "nvidia", "-v", "580.95.05", "--all")
    assert node.module() == "none"
    assert not node.dkms("status")
    assert not list((node.root / "var/lib/dkms").iterdir())


def test_the_old_version_goes_without_touching_the_new_one(node: Node):
    node.install("580.95.05")
    node.source("580.173.02")
    node.install("580.173.02")
    node.dkms("remove", "-m", "nvidia", "-v", "580.95.05", "--all")
    assert node.module() == "version=580.173.02"


def test_the_source_may_be_gone_when_a_version_is_removed(node: Node):
    node.install("580.95.05")
    for path in (node.root / "usr/src/nvidia-580.95.05").iterdir():
        path.unlink()
    node.dkms("remove", "-m", "nvidia", "-v", "580.95.05", "--all")
    assert node.module() == "none"


def test_an_interrupted_add_can_be_removed_and_repeated(node: Node):
    (node.root / "var/lib/dkms/nvidia/580.95.05").mkdir(parents=True)
    node.dkms("remove", "-m", "nvidia", "-v", "580.95.05", "--all")
    node.install("580.95.05")
    assert node.module() == "version=580.95.05"


def test_mistakes_are_refused(node: Node):
    assert "needs a module and a version" in node.dkms("add", status=2)
    assert "Could not find" in node.dkms("add", "-m", "nvidia", "-v", "1.0", status=2)
    node.install("580.95.05")
    assert "already contains" in node.dkms("add", "-m", "nvidia", "-v", "580.95.05", status=3)
    assert "Unknown action" in node.dkms("explode", status=1)
