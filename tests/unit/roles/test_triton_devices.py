# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a replica's unit runs before each start: the same text as the role lays down, or one sentence."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _triton_files

PROGRAM = Path(__file__).resolve().parents[3] / "roles/triton/files/triton_devices.py"
KNOWN = {"0000:07:00.0/3g.40gb@4": "MIG-a", "0000:0f:00.0": "GPU-b", "0000:17:00.0": "GPU-c", "0000:1f:00.0/7g.80gb@0": None}


@pytest.fixture(name="start")
def fixture_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    (tmp_path / "devices.json").write_text(json.dumps(KNOWN))
    program = runpy.run_path(str(PROGRAM))

    def start(devices: str) -> int:
        monkeypatch.setenv("DEVICES", devices)
        program["main"].__globals__.update(MAP=str(tmp_path / "devices.json"), FOLDER=str(tmp_path / "triton"))
        return program["main"]("chat-0")

    return start


@pytest.mark.parametrize(
    ("device", "uuids"),
    [
        ({"pci_address": "0000:07:00.0", "profile": "3g.40gb", "start": 4}, ["MIG-a"]),
        ({"gpus": ["0000:17:00.0", "0000:0F:00.0"]}, ["GPU-c", "GPU-b"]),
    ],
)
def test_the_unit_writes_what_the_role_declares(
    start: Callable[..., int], tmp_path: Path, device: dict[str, Any], uuids: list[str]
) -> None:
    assert start(",".join(_triton_files.device_keys(device))) == 0
    replica = {
        "name": "chat-0",
        "model": "m",
        "http_port": 1,
        "grpc_port": 2,
        "metrics_port": 3,
        "device": device,
        "device_key": "",
        "visible_devices": uuids,
    }
    [declared] = [entry for entry in _triton_files.files([replica]) if entry["path"].startswith("/run/")]
    assert (tmp_path / "triton/chat-0.env").read_text() == declared["content"]


@pytest.mark.parametrize("devices", ["0000:07:00.0/4g.40gb@0", "0000:1f:00.0/7g.80gb@0", "0000:0f:00.0,0000:bd:00.0", ""])
def test_without_its_device_a_replica_does_not_start(start: Callable[..., int], capsys: pytest.CaptureFixture[str], devices: str) -> None:
    assert start(devices) == 1
    assert "which does not exist now" in capsys.readouterr().err


def test_without_the_map_a_replica_does_not_start(start: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "devices.json").unlink()
    assert start("0000:0f:00.0") == 1
    assert "journalctl -u heterogpu-gpu" in capsys.readouterr().err
