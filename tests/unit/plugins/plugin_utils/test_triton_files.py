# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils._triton_files import DeviceError, files, resolve

GPUS = [
    {
        "pci_address": "0000:07:00.0",
        "uuid": "GPU-a",
        "mig": {
            "mode_current": True,
            "instances": [
                {"profile": "3g.40gb", "start": 0, "uuid": "MIG-low"},
                {"profile": "3g.40gb", "start": 4, "uuid": "MIG-high"},
            ],
        },
    },
    {"pci_address": "0000:bd:00.0", "uuid": "GPU-b", "mig": {"mode_current": False, "instances": []}},
]


def replica(device: dict[str, Any], **changes: Any) -> dict[str, Any]:
    ports = {"http_port": 8000, "grpc_port": 8001, "metrics_port": 8002}
    return {"name": "chat-0", "model": "token_scorer", "device": device, **ports, **changes}


@pytest.mark.parametrize(("start", "uuid"), [(0, "MIG-low"), (4, "MIG-high")])
def test_instance_is_found_by_slot_and_start(start: int, uuid: str) -> None:
    [resolved] = resolve([replica({"pci_address": "0000:07:00.0", "profile": "3g.40gb", "start": start})], "a100-1", GPUS)
    assert resolved["visible_devices"] == [uuid]
    assert resolved["device_key"] == f"a100-1/0000:07:00.0/3g.40gb@{start}"


def test_whole_gpus_are_named_by_uuid_in_the_declared_order() -> None:
    gpus = [{**gpu, "mig": None} for gpu in GPUS]
    [resolved] = resolve([replica({"gpus": ["0000:BD:00.0", "0000:07:00.0"]})], "a100-1", gpus)
    assert resolved["visible_devices"] == ["GPU-b", "GPU-a"]


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ({"pci_address": "0000:07:00.0", "profile": "4g.40gb", "start": 0}, "a100-1/0000:07:00.0/4g.40gb@0, which does not exist now"),
        ({"pci_address": "0000:ff:00.0", "profile": "4g.40gb", "start": 0}, "GPU 0000:ff:00.0 of a100-1, which the node does not have"),
        ({"gpus": ["0000:07:00.0"]}, "does not exist now"),
    ],
)
def test_missing_device_is_a_sentence(device: dict[str, Any], message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        resolve([replica(device)], "a100-1", GPUS)


def test_missing_instance_is_allowed_before_it_is_made() -> None:
    [resolved] = resolve([replica({"pci_address": "0000:bd:00.0", "profile": "7g.80gb", "start": 0})], "a100-1", GPUS, allow_missing=True)
    assert resolved["visible_devices"] == ["UUID-of-0000:bd:00.0"]


def test_files_bind_device_ports_and_numa_node() -> None:
    resolved = resolve([replica({"gpus": ["0000:bd:00.0"]}, numa_node=1, cpus="16-31")], "a100-1", GPUS)
    environment, looked_up, placement = files(resolved)
    assert environment["path"] == "/etc/heterogpu/triton/chat-0.env"
    assert {"DEVICES=0000:bd:00.0", "HTTP_PORT=8000", "MODEL=token_scorer"} <= set(environment["content"].splitlines())
    assert looked_up["path"] == "/run/heterogpu/triton/chat-0.env"
    assert looked_up["content"].splitlines() == ["NVIDIA_VISIBLE_DEVICES=GPU-b", "CUDA_VISIBLE_DEVICES=GPU-b"]
    assert placement["content"].splitlines()[1:] == ["[Service]", "CPUAffinity=16-31", "NUMAPolicy=bind", "NUMAMask=1"]


def test_no_placement_without_cpus_and_numa_node() -> None:
    assert len(files(resolve([replica({"gpus": ["0000:bd:00.0"]})], "a100-1", GPUS))) == 2


def test_no_file_that_outlives_a_boot_has_a_uuid() -> None:
    device = {"pci_address": "0000:07:00.0", "profile": "3g.40gb", "start": 4}
    [resolved] = resolve([replica(device)], "a100-1", GPUS)
    for entry in files([resolved]):
        assert entry["path"].startswith("/run/") or resolved["visible_devices"][0] not in entry["content"]
