# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated nodes on the host: the driver's TEST build below a temporary root, driven by unmodified pynvml."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _mig_holders
from simulated import SimulatedNode, build_library

FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    """A hung call of the simulation is frozen, so that SIGKILL does not end it, and keeps pipes open: let those of a test go after it."""
    before = set(FREEZER.glob("gpu-sandbox-hang-*"))
    yield
    for folder in set(FREEZER.glob("gpu-sandbox-hang-*")) - before:
        process = int(folder.name.rsplit("-", 1)[1])
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        (folder / "freezer.state").write_text("THAWED")
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process, 0)
        with contextlib.suppress(OSError):
            folder.rmdir()


@pytest.fixture
def simulated_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make a node: `simulated_node(gpus=["a100_80gb", "v100"], driver="580.95.05")`; pynvml in this process then talks to it."""
    nodes: list[SimulatedNode] = []

    def make(gpus: list[str], driver: str = "580.95.05", **hardware: Any) -> SimulatedNode:
        node = SimulatedNode(tmp_path / f"node{len(nodes)}", gpus, driver, build_library(driver), **hardware)
        # The host's own /dev is not the simulated one: a sandbox that runs beside has its device files open there.
        monkeypatch.setattr(_mig_holders, "open_device_files", dict)
        for name, value in node.environment().items():
            monkeypatch.setenv(name, value)
        node.use_in_process()
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.forget_in_process()
