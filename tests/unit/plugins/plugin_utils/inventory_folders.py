# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads an inventory directory the way Ansible does, for tests that need no Ansible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Hosts = dict[str, dict[str, Any]]


class Source:
    """An inventory's hosts, and the file of every variable."""

    def __init__(self) -> None:
        self.groups: dict[str, tuple[str, ...]] = {}
        self.variables: Hosts = {}
        self.cluster: dict[str, Any] = {}
        self.files: dict[tuple[str, str | None], str] = {}

    def where(self, variable: str, host: str | None) -> str:
        return self.files.get((variable, host)) or self.files.get((variable, None)) or ""


def read(directory: Path) -> Source:
    source = Source()
    tree = yaml.safe_load((directory / "hosts.yml").read_text(encoding="utf-8"))
    for host, path, inline in _hosts("all", tree["all"], ()):
        source.groups[host] = path
        source.variables[host] = dict(inline)
    for file, values in _files(directory / "group_vars" / "all"):
        for name, value in values.items():
            source.cluster[name] = value
            source.files[name, None] = str(file.relative_to(directory))
    for host, groups in source.groups.items():
        merged = dict(source.cluster)
        for name in source.cluster:
            source.files[name, host] = source.files[name, None]
        for group in groups:
            for file, values in _files(directory / "group_vars" / group):
                merged |= values
                source.files |= {(name, host): str(file.relative_to(directory)) for name in values}
        for file, values in _files(directory / "host_vars" / host):
            merged |= values
            source.files |= {(name, host): str(file.relative_to(directory)) for name in values}
        source.variables[host] = merged | source.variables[host]
    return source


def _hosts(name: str, group: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], dict[str, Any]]]:
    path = above if name == "all" else (*above, name)
    for host, inline in (group.get("hosts") or {}).items():
        yield host, path, inline or {}
    for child, below in (group.get("children") or {}).items():
        yield from _hosts(child, below or {}, path)


def _files(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    candidates = sorted(path.glob("*.yml")) if path.is_dir() else [path.with_name(path.name + ".yml")]
    for file in candidates:
        if file.is_file():
            yield file, yaml.safe_load(file.read_text(encoding="utf-8")) or {}
