# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what is installed and loaded of the driver, by the node's own tools."""

from __future__ import annotations

import json
from typing import Any

from testinfra.host import Host

RECORD = "/var/lib/heterogpu/packages/nvidia-driver/record.json"


def versions(host: Host) -> dict[str, str]:
    """Of every package of the driver, as far as installed."""
    shown = host.check_output("dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n' 'nvidia-*' 'libnvidia-*' || true")
    words = [line.split() for line in shown.splitlines()]
    return {entry[0]: entry[1] for entry in words if len(entry) == 3 and entry[2] == "installed" and "container" not in entry[0]}


def held(host: Host) -> set[str]:
    return set(host.check_output("apt-mark showhold").split())


def loaded(host: Host) -> str | None:
    version = host.file("/sys/module/nvidia/version")
    return version.content_string.strip() if version.exists else None


def built(host: Host) -> dict[str, str]:
    """Version of the module by kernel."""
    kernels = host.check_output("ls /lib/modules").split()
    texts = {kernel: host.check_output(f"cat /lib/modules/{kernel}/updates/dkms/nvidia.ko") for kernel in kernels}
    return {kernel: dict(line.split("=", 1) for line in text.splitlines())["version"] for kernel, text in texts.items()}


def record(host: Host) -> dict[str, Any]:
    return json.loads(host.file(RECORD).content_string)


def require_driver(host: Host, version: str) -> None:
    """Installed, held, built and loaded are one version, and NVML answers."""
    installed = versions(host)
    assert installed
    assert all(found.startswith(version) for found in installed.values()), installed
    assert held(host) >= installed.keys()
    assert set(built(host).values()) == {version}
    assert loaded(host) == version
    assert host.check_output("nvidia-smi --query-gpu=driver_version --format=csv,noheader").split() == [version] * 8
    assert host.service("nvidia-persistenced").is_running
    assert host.file("/sys/module/nvidia_peermem").exists
