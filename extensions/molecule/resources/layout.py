# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a node's MIG state by nvidia-smi, which knows nothing of the collection."""

from __future__ import annotations

import json
import re

from testinfra.host import Host

_INSTANCE = re.compile(r"^\|\s+(?P<gpu>\d+)\s+MIG (?P<profile>\S+)\s+\d+\s+\d+\s+(?P<start>\d+):\d+\s+\|")


def modes(host: Host) -> list[str]:
    return host.check_output("nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader").split("\n")


def instances(host: Host) -> dict[int, list[str]]:
    """profile@start of every GPU instance by GPU index."""
    found: dict[int, list[str]] = {}
    for line in host.run("nvidia-smi mig -lgi").stdout.splitlines():
        match = _INSTANCE.match(line)
        if match:
            found.setdefault(int(match["gpu"]), []).append(f"{match['profile']}@{match['start']}")
    return {gpu: sorted(layout) for gpu, layout in found.items()}


def devices(host: Host) -> int:
    """Usable MIG devices; an instance without a compute instance has none."""
    return host.check_output("nvidia-smi -L").count("UUID: MIG-")


def mapped(host: Host) -> dict[str, str]:
    """UUID by device, as services look it up."""
    return json.loads(host.file("/run/heterogpu/devices.json").content_string)


def uuids(host: Host) -> set[str]:
    """The UUIDs of all devices that can run something."""
    found: set[str] = set()
    whole = ""
    for line in host.check_output("nvidia-smi -L").splitlines():
        uuid = line.rpartition("UUID: ")[2].rstrip(")")
        if line.startswith("GPU"):
            whole = uuid
            found.add(uuid)
        else:
            found -= {whole}
            found.add(uuid)
    return found
