# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
import yaml
from testinfra.host import Host

testinfra_hosts = ["ansible://gpu_nodes?sudo=true"]
SPECIFICATION = "/var/run/cdi/nvidia.yaml"
PODMAN = "/etc/containers/containers.conf.d/50-heterogpu-nvidia.conf"


def is_a100(host: Host) -> bool:
    return "a100" in host.check_output("hostname")


def names(host: Host) -> set[str]:
    return {device["name"] for device in yaml.safe_load(host.file(SPECIFICATION).content_string)["devices"]}


@pytest.mark.parametrize("name", ["nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container1"])
def test_package_has_its_version_and_is_held(host: Host, name: str) -> None:
    assert host.package(name).version == "1.20.2-1"
    assert name in host.check_output("apt-mark showhold").splitlines()


def test_the_specification_names_every_gpu_and_instance(host: Host) -> None:
    listed = host.check_output("nvidia-smi -L").splitlines()
    uuids = {line.rpartition("UUID: ")[2].rstrip(")") for line in listed}
    whole = uuids - ({line.rpartition("UUID: ")[2].rstrip(")") for line in listed if line.startswith("GPU 0:")} if is_a100(host) else set())
    assert whole <= names(host)


def test_the_units_of_the_toolkit_keep_it_in_step(host: Host) -> None:
    assert host.service("nvidia-cdi-refresh.path").is_running
    assert host.service("nvidia-cdi-refresh.path").is_enabled
    assert host.service("nvidia-cdi-refresh.service").is_enabled


def test_it_is_refreshed_after_a_change_of_the_geometry(host: Host) -> None:
    if not is_a100(host):
        pytest.skip("has no MIG")
    assert "0:1" not in names(host)
    host.check_output("nvidia-smi mig -i 0 -cgi 1g.10gb -C")
    # As the map from devices to instances is written after every change.
    host.check_output("mkdir -p /run/heterogpu && touch /run/heterogpu/devices.json")
    host.check_output(f"timeout 20 sh -c 'until grep -q \"name: .*0:1\" {SPECIFICATION}; do :; done'")
    assert {"0:0", "0:1"} <= names(host)


def test_an_old_podman_gets_the_oci_runtime(host: Host) -> None:
    assert host.file(PODMAN).exists != is_a100(host)
    if not is_a100(host):
        assert 'nvidia = ["/usr/bin/nvidia-container-runtime"]' in host.file(PODMAN).content_string


def test_a_podman_that_stumbles_over_groups_gets_none(host: Host) -> None:
    shown = host.check_output("systemctl show --property=Environment nvidia-cdi-refresh.service")
    assert ("no-additional-gids-for-device-nodes" in shown) == is_a100(host)
    assert "additionalGids" not in host.file(SPECIFICATION).content_string


def test_containerd_has_the_runtime_and_keeps_its_own_settings(host: Host) -> None:
    drop_in = host.file("/etc/containerd/conf.d/99-nvidia.toml")
    assert drop_in.exists == is_a100(host)
    if is_a100(host):
        assert 'BinaryName = "/usr/bin/nvidia-container-runtime"' in drop_in.content_string
        assert 'sandbox_image = "registry.k8s.io/pause:3.10"' in drop_in.content_string
        assert "nvidia" not in host.file("/etc/containerd/config.toml").content_string
