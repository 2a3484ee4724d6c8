# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from testinfra.host import Host

testinfra_hosts = ["ansible://a100?sudo=true"]
REPLICAS = {"chat-0": ("token_scorer", 8000), "embed-0": ("text_embedder", 8010)}


@pytest.mark.parametrize("replica", REPLICAS)
def test_unit_runs_without_root(host: Host, replica: str) -> None:
    unit = f"triton@{replica}.service"
    assert host.service(unit).is_running, host.run(f"journalctl -u {unit}").stdout
    assert host.check_output(f"systemctl show -P DynamicUser {unit}") == "yes"
    assert host.check_output(f"systemctl show -P NRestarts {unit}") == "0"


def test_all_replicas_start_at_boot(host: Host) -> None:
    assert host.service("heterogpu-triton.target").is_enabled
    assert set(host.check_output("systemctl show -P Wants heterogpu-triton.target").split()) == {
        f"triton@{name}.service" for name in REPLICAS
    }


@pytest.mark.parametrize(("model", "port"), REPLICAS.values())
def test_each_server_listens_where_declared_and_serves_its_model_only(host: Host, model: str, port: int) -> None:
    assert host.socket(f"tcp://127.0.0.1:{port}").is_listening
    assert not host.socket(f"tcp://0.0.0.0:{port}").is_listening
    index = json.loads(host.check_output(f"curl --fail --silent -X POST http://127.0.0.1:{port}/v2/repository/index"))
    assert [entry["name"] for entry in index if entry.get("state") == "READY"] == [model]


def test_replica_is_given_the_instance_that_stands_in_its_slot(host: Host) -> None:
    environment = dict(line.split("=", 1) for line in host.file("/run/heterogpu/triton/chat-0.env").content_string.splitlines())
    uuid = environment["NVIDIA_VISIBLE_DEVICES"]
    assert environment["CUDA_VISIBLE_DEVICES"] == uuid
    assert f"(UUID: {uuid})" in next(line for line in host.check_output("nvidia-smi -L").splitlines() if "MIG 3g.40gb" in line)


def test_placement_binds_cpus_and_memory_to_the_node_of_the_device(host: Host) -> None:
    lines = host.file("/etc/systemd/system/triton@embed-0.service.d/10-placement.conf").content_string.splitlines()
    assert lines[1:] == ["[Service]", "CPUAffinity=16-31", "NUMAPolicy=bind", "NUMAMask=0"]
