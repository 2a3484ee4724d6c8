# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The four rooms of container_toolkit. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _container_pair, _container_plan, _container_state, _file_set
from ansible_collections.heterogpu.inference.plugins.module_utils._container_apply import REFRESH, Change
from ansible_collections.heterogpu.inference.plugins.module_utils._container_pair import Pair
from ansible_collections.heterogpu.inference.plugins.module_utils._container_state import (
    BY_HAND,
    CONTAINERD_DROP_IN,
    SPECIFICATION,
    Run,
    State,
)
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed, GpuError, InvalidInput, Refused

_ATTRIBUTES = _file_set.Attributes(0o644, 0, 0)


@dataclass(frozen=True)
class Request:
    state: str
    podman: str
    containerd: str
    declared: str | None  # the toolkit that the run is about to install, for check mode
    timeout: float
    rules: dict[str, Any] = field(default_factory=dict)


def run(request: Request, check_mode: bool, command: Run) -> dict[str, Any]:
    if request.timeout <= 0:
        raise InvalidInput(f"The timeout is {request.timeout:g} s; give the seconds that describing the GPUs may take, such as 60.")
    state = _container_state.probe(command)
    if request.state == "absent":
        return _absent(check_mode, command)
    toolkit = state.toolkit or (request.declared if check_mode else None)
    if toolkit is None:
        raise Refused("NVIDIA's container toolkit is not installed; install the package nvidia-container-toolkit first.")
    pair = _container_pair.match(state.podman, toolkit, request.podman, request.rules)
    wants_containerd = state.containerd and request.containerd == "auto"
    if wants_containerd:
        _container_state.check_imports()
    planned = state.toolkit is None
    wanted = "" if planned else _specification(request, command, pair, check_mode)
    drop_in = _container_state.containerd_drop_in(command) if wants_containerd and not planned else None
    files = _compare(*_container_plan.files(pair, drop_in))
    changed = [step.path for step in files]
    units = _container_plan.units(state, changed, planned or wanted != state.specification)
    steps = [{"action": "write_file" if step.after is not None else "remove_file", "name": step.path} for step in files]
    if wants_containerd and planned:
        steps.append({"action": "write_file", "name": CONTAINERD_DROP_IN})  # its text comes from the toolkit
    steps += units.steps()
    result = {
        "changed": bool(steps),
        "steps": steps,
        "disruptive": False,
        "reboot_required": False,
        "diff": [step.diff() for step in files] + _specification_diff(state, wanted),
        "toolkit_version": toolkit,
        "podman": {"version": state.podman, "way": pair.way, "readable": pair.readable},
        "containerd": wants_containerd,
        "specification": {"path": SPECIFICATION, "version": _container_state.specification_version(wanted) if wanted else None},
        "notes": _notes(),
    }
    if not check_mode:
        _apply(Change(command, files, units), steps, pair, command, request.timeout)
    return result


def _specification(request: Request, command: Run, pair: Pair, check_mode: bool) -> str:
    try:
        wanted = _container_state.specification(command, pair.flags, request.timeout)
    except GpuError:
        if check_mode:  # the driver may be what this run installs
            return ""
        raise
    version = _container_state.specification_version(wanted)
    if not _container_pair.is_readable(version, pair):
        raise Refused(
            f"The specification of this node's GPUs has version {version}, but podman reads only up to {pair.readable}; "
            "upgrade podman, or use NVIDIA's OCI runtime with container_toolkit_podman: runtime."
        )
    return wanted


def _apply(change: Change, steps: list[dict[str, str]], pair: Pair, command: Run, timeout: float) -> None:
    if steps:
        change.apply()
    try:
        _verify(pair, command, timeout)
    except (ApplyFailed, GpuError) as error:
        if not steps:
            raise
        change.undo(str(error))


def _verify(pair: Pair, command: Run, timeout: float) -> None:
    written = _container_state.text(SPECIFICATION)
    if written != _container_state.specification(command, pair.flags, timeout):
        what = "does not describe the GPUs as they are" if written else "was not written"
        raise ApplyFailed(
            f"The file {SPECIFICATION} {what} after {REFRESH} had run; look at `journalctl -u {REFRESH}` "
            "and at /etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
        )
    for name, unit in _container_state.probe(command).units.items():
        if not unit.enabled or (name.endswith(".path") and not unit.active):
            raise ApplyFailed(f"The unit {name} is not {'running' if unit.enabled else 'enabled'}; look at `systemctl status {name}`")


def _absent(check_mode: bool, command: Run) -> dict[str, Any]:
    """The packages own the units; what is ours goes, and the specification with it."""
    files = _compare({}, [*_container_plan.OWN_FILES, CONTAINERD_DROP_IN, os.path.realpath(SPECIFICATION)])
    changed = [step.path for step in files]
    units = _container_plan.Units(reload=any(path.startswith("/etc/systemd") for path in changed), containerd=CONTAINERD_DROP_IN in changed)
    steps = [{"action": "remove_file", "name": path} for path in changed] + units.steps()
    if steps and not check_mode:
        Change(command, files, units).apply()
    return {
        "changed": bool(steps),
        "steps": steps,
        # Containers that name the runtime class or a device cannot start again.
        "disruptive": bool(steps),
        "reboot_required": False,
        "diff": [step.diff() for step in files],
    }


def _compare(wanted: dict[str, str], obsolete: list[str]) -> list[_file_set.Step]:
    try:
        return _file_set.plan([_file_set.WantedFile(path, text.encode(), _ATTRIBUTES) for path, text in sorted(wanted.items())], obsolete)
    except _file_set.FileSetError as error:
        raise GpuError(str(error)) from None


def _specification_diff(state: State, wanted: str) -> list[dict[str, str]]:
    if not wanted or wanted == state.specification:
        return []
    return [{"before_header": SPECIFICATION, "after_header": SPECIFICATION, "before": state.specification or "", "after": wanted}]


def _notes() -> list[str]:
    if not os.path.exists(BY_HAND):
        return []
    return [f"The file {BY_HAND} was written by hand and is not refreshed when the geometry changes; remove it."]
