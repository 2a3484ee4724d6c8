# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from driver_state import require_driver
from testinfra.host import Host

VERSION = "580.95.05"
testinfra_hosts = ["ansible://gpu_nodes?sudo=true"]


def test_every_driver_package_has_the_declared_version(host: Host) -> None:
    require_driver(host, VERSION)


def test_apt_stays_at_the_declared_version(host: Host) -> None:
    assert "0 upgraded" in host.check_output("apt-get --simulate dist-upgrade")


def test_key_is_trusted_for_its_repository_only(host: Host) -> None:
    source = host.file("/etc/apt/sources.list.d/heterogpu-sandbox.sources")
    assert "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n" in source.content_string
    assert (source.user, source.mode) == ("root", 0o644)


def test_loaded_module_is_the_installed_one(host: Host) -> None:
    assert host.file("/sys/module/nvidia/version").content_string.strip() == VERSION


def test_persistenced_runs_and_starts_at_boot(host: Host) -> None:
    service = host.service("nvidia-persistenced")
    assert service.is_running, host.run("journalctl -u nvidia-persistenced").stdout
    assert service.is_enabled


def test_fabric_manager_only_with_nvswitch(host: Host) -> None:
    has_nvswitch = "NVSwitch" in host.check_output("lspci -d 10de:")
    assert host.package("nvidia-fabricmanager-580").is_installed == has_nvswitch
    if has_nvswitch:
        assert host.service("nvidia-fabricmanager").is_running, host.run("journalctl -u nvidia-fabricmanager").stdout


@pytest.mark.parametrize("query", ["name", "uuid", "pci.bus_id"])
def test_nvml_answers_for_every_gpu(host: Host, query: str) -> None:
    gpus = host.check_output(f"nvidia-smi --query-gpu={query} --format=csv,noheader").splitlines()
    on_the_bus = host.check_output("lspci -d 10de::0302").splitlines()
    assert len(gpus) == len(on_the_bus) > 0
