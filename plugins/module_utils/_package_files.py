# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files by which apt knows a set: sources, proxies, preferences. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.heterogpu.inference.plugins.module_utils import _file_set

_ATTRIBUTES = _file_set.Attributes(0o644, 0, 0)
_REBOOT_REQUIRED = "/run/reboot-required"


def preferences_path(name: str) -> str:
    return f"/etc/apt/preferences.d/heterogpu-{name}"


def sources(repositories: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    files = {}
    for entry in repositories:
        files[f"/etc/apt/sources.list.d/{entry['name']}.sources"] = entry["content"]
        lines = [f'{name} "{value}";\n' for name, value in _proxies(entry)]
        if lines:
            files[f"/etc/apt/apt.conf.d/90heterogpu-proxy-{entry['name']}"] = "".join(lines)
    return files


def proxy_options(repositories: Iterable[Mapping[str, Any]]) -> list[str]:
    return [f"-o{name}={value}" for entry in repositories for name, value in _proxies(entry)]


def _proxies(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    """For the hosts of this repository only: other repositories of the node keep their way."""
    if not entry.get("proxy"):
        return []
    lines = [line for line in entry["content"].splitlines() if line.lower().startswith("uris:")]
    addresses = [urlsplit(word) for line in lines for word in line.split()[1:]]
    hosts = dict.fromkeys((address.scheme, address.hostname) for address in addresses if address.scheme in ("http", "https"))
    return [(f"Acquire::{scheme}::Proxy::{host}", entry["proxy"]) for scheme, host in hosts]


def plan(files: Mapping[str, str], obsolete: Iterable[str]) -> list[_file_set.Step]:
    wanted = [_file_set.WantedFile(path, content.encode(), _ATTRIBUTES) for path, content in sorted(files.items())]
    return _file_set.plan(wanted, [glob.escape(path) for path in sorted(obsolete)])


def apply(steps: Sequence[_file_set.Step]) -> None:
    _file_set.apply(steps)
    for step in steps:
        # They belong to apt, which misses them.
        os.makedirs(os.path.dirname(step.path), exist_ok=True)


def undo(steps: Sequence[_file_set.Step]) -> None:
    back = _file_set.back(steps)
    apply([step for step in back if step.after is not None or os.path.exists(step.path)])


def new_sources(steps: Iterable[_file_set.Step]) -> list[str]:
    return [step.path for step in steps if step.path.endswith(".sources") and step.after is not None]


def diff(steps: Iterable[_file_set.Step]) -> list[dict[str, str]]:
    return [step.diff() for step in steps]


def reboot_required() -> bool:
    return os.path.exists(_REBOOT_REQUIRED)
