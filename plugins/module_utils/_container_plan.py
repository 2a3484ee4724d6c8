# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files and units let containers reach the GPUs. PRIVATE: internal to the collection, may change at any time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ansible_collections.heterogpu.inference.plugins.module_utils._container_pair import Pair
from ansible_collections.heterogpu.inference.plugins.module_utils._container_state import CONTAINERD_DROP_IN, SPECIFICATION, UNITS, State

# Written after every change of the geometry, at boot too.
DEVICES = "/run/heterogpu/devices.json"
PATH_DROP_IN = "/etc/systemd/system/nvidia-cdi-refresh.path.d/50-heterogpu.conf"
SERVICE_DROP_IN = "/etc/systemd/system/nvidia-cdi-refresh.service.d/50-heterogpu.conf"
PODMAN_DROP_IN = "/etc/containers/containers.conf.d/50-heterogpu-nvidia.conf"
_HEADER = "# Written by heterogpu.inference; changes are lost.\n"
OWN_FILES = (PATH_DROP_IN, SERVICE_DROP_IN, PODMAN_DROP_IN)


@dataclass
class Units:
    """What systemd has to be told, in this order."""

    reload: bool = False
    enable: list[str] = field(default_factory=list)
    restart: list[str] = field(default_factory=list)
    refresh: bool = False
    containerd: bool = False

    def steps(self) -> list[dict[str, str]]:
        found = [{"action": "reload_units", "name": "systemd"}] if self.reload else []
        found += [{"action": "enable_unit", "name": name} for name in self.enable]
        found += [{"action": "restart_unit", "name": name} for name in self.restart]
        found += [{"action": "refresh_specification", "name": SPECIFICATION}] if self.refresh else []
        return found + ([{"action": "restart_unit", "name": "containerd.service"}] if self.containerd else [])


def files(pair: Pair, containerd: str | None) -> tuple[dict[str, str], list[str]]:
    """The declared files with their content, and those that must not be there."""
    wanted = {PATH_DROP_IN: f"{_HEADER}[Path]\nPathChanged={DEVICES}\n", SERVICE_DROP_IN: _service(pair.flags)}
    if pair.way == "runtime":
        wanted[PODMAN_DROP_IN] = f'{_HEADER}[engine.runtimes]\nnvidia = ["/usr/bin/nvidia-container-runtime"]\n'
    if containerd is not None:
        wanted[CONTAINERD_DROP_IN] = containerd
    return wanted, [path for path in OWN_FILES if path not in wanted]


def units(state: State, changed: Sequence[str], specification_differs: bool) -> Units:
    """`changed` are the paths of files that are written or removed."""
    path, service = UNITS
    touched = any(name in changed for name in (PATH_DROP_IN, SERVICE_DROP_IN))
    found = Units(reload=touched or any(unit.stale for unit in state.units.values()))
    found.enable = [name for name in UNITS if name not in state.units or not state.units[name].enabled]
    # The watch of a path unit is set when it starts.
    if PATH_DROP_IN in changed or not state.units[path].active or state.units[path].stale:
        found.restart = [path]
    found.refresh = specification_differs or SERVICE_DROP_IN in changed or service in found.enable
    found.containerd = CONTAINERD_DROP_IN in changed
    return found


def _service(flags: Sequence[str]) -> str:
    lines = [
        "[Unit]",
        "Before=kubelet.service",
        "# The geometry may change several times in a row; a path unit whose service hits a limit is dead.",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "# A driver that hangs must not hold up what is ordered after it.",
        "TimeoutStartSec=90s",
    ]
    if flags:
        lines += [
            "# Podman on this node does not read what device groups need.",
            f"Environment=NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS={','.join(flags)}",
        ]
    return _HEADER + "\n".join(lines) + "\n"
