# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver, CUDA and NCCL by their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _driver_facts
from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs
from recorded import RecordedTree

LIBRARIES = "usr/lib/x86_64-linux-gnu"
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.06  Wed Jun 26 06:46:07 UTC 2024\nGCC version:  gcc version 12.2.0"
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22)\nGCC version:  gcc version 12.2.0"
)


@pytest.fixture
def tree(tmp_path: Path) -> RecordedTree:
    return RecordedTree(tmp_path)


def library(tree: RecordedTree, name: str, version: str, linked: bool = True) -> None:
    tree.file(f"{LIBRARIES}/{name}.so.{version}")
    if linked:
        major = "2" if name == "libnccl" else "1"
        tree.link(f"{LIBRARIES}/{name}.so.{major}", f"{LIBRARIES}/{name}.so.{version}")


@pytest.mark.parametrize(("text", "version", "flavour"), [(PROPRIETARY, "535.183.06", "proprietary"), (OPEN, "580.95.05", "open")])
def test_the_loaded_module(tree: RecordedTree, text: str, version: str, flavour: str) -> None:
    tree.file("proc/driver/nvidia/version", text)
    for module in ("nvidia", "nvidia_uvm", "nvidiafb", "mlx5_core"):
        tree.file(f"sys/module/{module}/refcnt", 0)
    library(tree, "libnvidia-ml", version)
    found = _driver_facts.driver(Sysfs(str(tree.root)))
    assert (found["loaded_version"], found["installed_version"], found["flavour"], found["state"]) == (version, version, flavour, "ok")
    assert found["modules"] == ["nvidia", "nvidia_uvm"] and found["message"] is None


@pytest.mark.parametrize(
    ("loaded", "installed", "state"),
    [(None, None, "absent"), (None, "580.95.05", "not_loaded"), ("580.95.05", "580.173.02", "mismatch"), ("580.95.05", None, "ok")],
)
def test_loaded_against_installed(tree: RecordedTree, loaded: str | None, installed: str | None, state: str) -> None:
    if loaded:
        tree.file("sys/module/nvidia/version", loaded)
    if installed:
        library(tree, "libnvidia-ml", installed)
    found = _driver_facts.driver(Sysfs(str(tree.root)))
    assert (found["loaded_version"], found["installed_version"], found["state"], found["flavour"]) == (loaded, installed, state, None)


def test_the_linked_library_counts_not_the_newest(tree: RecordedTree) -> None:
    library(tree, "libnvidia-ml", "580.95.05", linked=False)
    library(tree, "libnvidia-ml", "535.183.06")
    assert _driver_facts.driver(Sysfs(str(tree.root)))["installed_version"] == "535.183.06"


def test_versions_are_numbers_not_text(tree: RecordedTree) -> None:
    for version in ("2.9.6", "2.18.5", "2.23.4"):
        library(tree, "libnccl", version, linked=version == "2.18.5")
    assert _driver_facts.nccl(Sysfs(str(tree.root))) == {"versions": ["2.9.6", "2.18.5", "2.23.4"], "default": "2.18.5"}


def test_cuda_toolkits(tree: RecordedTree) -> None:
    tree.file("usr/local/cuda-12.2/version.json", '{"cuda": {"name": "CUDA SDK", "version": "12.2.2"}}')
    tree.file("usr/local/cuda-12.6/version.json", "not JSON")
    tree.file("usr/local/cuda-12/README")
    tree.link("usr/local/cuda", "usr/local/cuda-12.2")
    assert _driver_facts.cuda(Sysfs(str(tree.root))) == {
        "toolkits": [{"path": "/usr/local/cuda-12.2", "version": "12.2.2"}, {"path": "/usr/local/cuda-12.6", "version": "12.6"}],
        "default": "/usr/local/cuda-12.2",
    }


def test_nothing_installed(tree: RecordedTree) -> None:
    files = Sysfs(str(tree.root))
    assert _driver_facts.cuda(files) == {"toolkits": [], "default": None}
    assert _driver_facts.nccl(files) == {"versions": [], "default": None}
