# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads which CUDA toolkits a node has and which is the default. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _cuda_loader, _driver_facts
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput
from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import GPU_CLASSES, Sysfs

LINK = "/usr/local/cuda"
# Sorted before the packages' own 000_cuda.conf, whose path depends on the link alone.
LOADER = "/etc/ld.so.conf.d/000-heterogpu-cuda.conf"
PROFILE = "/etc/profile.d/heterogpu-cuda.sh"
RECORD = "/var/lib/heterogpu/cuda_toolkit.json"

Run = Callable[[list], "tuple[int, str, str]"]


@dataclass(frozen=True)
class Toolkit:
    version: str  # 12.2
    release: str  # 12.2.2
    path: str
    has_compat: bool = False


@dataclass(frozen=True)
class Alternative:
    """A link group of update-alternatives: the packages register every toolkit there."""

    name: str
    link: str
    automatic: bool
    value: str
    choices: tuple[str, ...]


@dataclass
class State:
    toolkits: dict[str, Toolkit]
    alternatives: dict[str, Alternative]
    link: str | None  # where /usr/local/cuda leads, None if it leads nowhere
    link_is_folder: bool
    record: dict[str, Any]
    driver: dict[str, Any]
    capabilities: list[str] = field(default_factory=list)
    loaded_from: dict[str, str] = field(default_factory=dict)  # by soname, what the loader takes now

    @property
    def default(self) -> str | None:
        """The version that the link leads to."""
        return next((one.version for one in self.toolkits.values() if one.path == self.link), None)


def probe(run: Run, capabilities: dict[str, str], timeout: float, root: str = "/") -> State:
    files = Sysfs(root)
    toolkits = _toolkits(files)
    link = files.path(LINK)
    sonames = sorted({_cuda_loader.soname(one.version) for one in toolkits.values()})
    return State(
        toolkits=toolkits,
        alternatives=_alternatives(run, toolkits),
        link=os.path.realpath(link) if os.path.exists(link) else None,
        link_is_folder=os.path.isdir(link) and not os.path.islink(link),
        record=_record(files),
        driver=_driver_facts.driver(files),
        capabilities=_capabilities(files, capabilities),
        loaded_from=_cuda_loader.where(sonames, timeout) if root == "/" else {},
    )


def _toolkits(files: Sysfs) -> dict[str, Toolkit]:
    found = {}
    for entry in _driver_facts.cuda(files)["toolkits"]:
        folder, version = entry["path"], entry["path"].rpartition("-")[2]
        # A removed toolkit may leave a folder with files that no package owns.
        if files.names(folder + "/lib64"):
            compat = os.path.exists(files.path(folder + "/compat/libcuda.so.1"))
            found[version] = Toolkit(version, entry["version"], folder, compat)
    return found


def _alternatives(run: Run, toolkits: dict[str, Toolkit]) -> dict[str, Alternative]:
    groups = ["cuda", *sorted({"cuda-" + version.partition(".")[0] for version in toolkits})]
    found = {}
    for name in groups:
        status, text, _errors = run(["update-alternatives", "--query", name])
        if status == 0:
            found[name] = _alternative(name, text)
    return found


def _alternative(name: str, text: str) -> Alternative:
    fields: dict[str, str] = {}
    choices = []
    for line in text.splitlines():
        key, _colon, value = line.partition(": ")
        if key == "Alternative":
            choices.append(value)
        else:
            fields.setdefault(key, value)
    return Alternative(name, fields.get("Link", ""), fields.get("Status") == "auto", fields.get("Value", ""), tuple(choices))


def _record(files: Sysfs) -> dict[str, Any]:
    text = files.text(RECORD)
    if text is None:
        return {}
    try:
        record = json.loads(text)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise InvalidInput(f"The record {RECORD} is damaged; remove it and run again.")
    return record


def _capabilities(files: Sysfs, known: dict[str, str]) -> list[str]:
    """By PCI device id: known before a driver is loaded."""
    ids = [device["pci_device_id"] for device in files.nvidia_devices(GPU_CLASSES)]
    return sorted({known[one] for one in ids if one in known})
