# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads how containers of a node reach its GPUs. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansible_collections.heterogpu.inference.plugins.module_utils import _bounded
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError, Refused

Run = Callable[[list], "tuple[int, str, str]"]

SPECIFICATION = "/var/run/cdi/nvidia.yaml"
BY_HAND = "/etc/cdi/nvidia.yaml"
CONTAINERD = "/etc/containerd/config.toml"
CONTAINERD_DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"
UNITS = ("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service")
_IMPORTS = re.compile(r"^\s*imports\s*=\s*\[([^\]]*)\]", re.MULTILINE)
_VERSION = re.compile(r"^cdiVersion:\s*[\"']?([0-9.]+)", re.MULTILINE)


@dataclass(frozen=True)
class Unit:
    enabled: bool = False
    active: bool = False
    stale: bool = False  # systemd has not read its files again


@dataclass
class State:
    toolkit: str | None
    podman: str | None
    containerd: bool
    units: dict[str, Unit]
    specification: str | None


def probe(run: Run) -> State:
    return State(
        toolkit=_toolkit(run),
        podman=_podman(run),
        containerd=shutil.which("containerd") is not None,
        units={name: unit(run, name) for name in UNITS},
        specification=text(SPECIFICATION),
    )


def text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def unit(run: Run, name: str) -> Unit:
    _status, output, _errors = run(["systemctl", "show", "--property=UnitFileState,ActiveState,NeedDaemonReload", name])
    fields = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
    return Unit(fields.get("UnitFileState") == "enabled", fields.get("ActiveState") == "active", fields.get("NeedDaemonReload") == "yes")


def specification(run: Run, flags: Sequence[str], timeout: float) -> str:
    """What the toolkit would write now; it prints instead of writing. It asks the driver, which may hang."""
    command = ["nvidia-ctk", "--quiet", "cdi", "generate", *(f"--feature-flag={name}" for name in flags)]
    status, output, errors = _bounded.call(lambda report: run(command), timeout, "was describing the GPUs for containers")
    if status != 0 or not output:
        reason = errors.strip().splitlines()[-1] if errors.strip() else f"status {status}"
        raise GpuError(f"NVIDIA's container toolkit cannot describe the GPUs ({reason}); load the driver and look at `nvidia-smi -L`.")
    return output


def specification_version(content: str) -> str:
    found = _VERSION.search(content)
    return found.group(1) if found else "0"


def containerd_drop_in(run: Run) -> str:
    """NVIDIA's own text for this containerd, made from a copy: the tool would also write the main file, which is not ours."""
    with tempfile.TemporaryDirectory(prefix="container_toolkit-") as folder:
        copy, drop_in = os.path.join(folder, "config.toml"), os.path.join(folder, "conf.d", "99-nvidia.toml")
        os.mkdir(os.path.dirname(drop_in))
        shutil.copyfile(CONTAINERD, copy)
        command = ["nvidia-ctk", "--quiet", "runtime", "configure", "--runtime=containerd", "--cdi.enabled"]
        status, _output, errors = run([*command, f"--config={copy}", f"--drop-in-config={drop_in}"])
        content = text(drop_in)
    if status != 0 or not content:
        raise GpuError(f"NVIDIA's container toolkit cannot read {CONTAINERD} ({errors.strip() or 'no message'}); correct that file.")
    return content


def check_imports() -> None:
    content = text(CONTAINERD)
    if content is None:
        raise Refused(
            f"Containerd is installed but {CONTAINERD} does not exist, so it reads no drop-in; write it with `containerd config default`, "
            f'add imports = ["{os.path.dirname(CONTAINERD_DROP_IN)}/*.toml"], or set container_toolkit_containerd: ignore.'
        )
    found = _IMPORTS.search(content)
    patterns = re.findall(r"[\"']([^\"']+)[\"']", found.group(1)) if found else []
    if not any(fnmatch.fnmatch(CONTAINERD_DROP_IN, pattern) for pattern in patterns):
        raise Refused(
            f"The file {CONTAINERD} does not import {CONTAINERD_DROP_IN}; add "
            f'imports = ["{os.path.dirname(CONTAINERD_DROP_IN)}/*.toml"] at its top, or set container_toolkit_containerd: ignore.'
        )


def _toolkit(run: Run) -> str | None:
    status, output, _errors = run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", "nvidia-container-toolkit-base"])
    state, _space, version = output.strip().partition(" ")
    return version.partition("-")[0] if status == 0 and state == "installed" else None


def _podman(run: Run) -> str | None:
    if shutil.which("podman") is None:
        return None
    status, output, errors = run(["podman", "version", "--format", "{{.Client.Version}}"])
    if status != 0:
        raise GpuError(f"Podman is installed but does not tell its version ({errors.strip()}); repair or remove it.")
    return output.strip().partition("-")[0]
