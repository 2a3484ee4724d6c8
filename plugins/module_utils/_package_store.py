# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a set of packages was and is, on the node, with the files to return to it. PRIVATE: internal to the collection, may change."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _whole_file
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError
from ansible_collections.heterogpu.inference.plugins.module_utils._package_plan import Memory

FOLDER = "/var/lib/heterogpu/packages"


@dataclass
class PackageSet:
    """`closure` belongs to the set; `installed` is what to return to, what had to change with the members too; `archives` are its files."""

    closure: dict[str, str] = field(default_factory=dict)
    installed: dict[str, str] = field(default_factory=dict)
    archives: dict[str, str] = field(default_factory=dict)
    held: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    def missing(self, have: Mapping[str, str]) -> list[str]:
        """Members that must be installed to return to this set, and whose file is not in the store."""
        return sorted(name for name, version in self.installed.items() if have.get(name) != version and name not in self.archives)


@dataclass
class Record:
    current: PackageSet | None = None
    previous: PackageSet | None = None
    # What `state: previous` left; a set is undone once, or a rerun would go forth and back.
    undone: PackageSet | None = None
    # What stood before a change that was begun and what it was to bring; both end with the change.
    before: PackageSet | None = None
    begun: PackageSet | None = None
    aim: str = ""

    def sets(self) -> list[PackageSet]:
        return [item for item in (self.current, self.previous, self.undone, self.before, self.begun) if item]

    def archive(self, name: str, version: str) -> str | None:
        found = (item.archives.get(name) for item in self.sets() if item.installed.get(name) == version)
        return next((archive for archive in found if archive), None)

    def memory(self) -> Memory:
        members = frozenset(name for item in self.sets() for name in item.closure)
        return Memory(members, frozenset(name for item in self.sets() for name in item.held))


class Store:
    def __init__(self, name: str, folder: str = FOLDER) -> None:
        self.name = name
        self.parent = folder
        self.folder = os.path.join(folder, name)
        self.archives = os.path.join(self.folder, "archives")

    @property
    def path(self) -> str:
        return os.path.join(self.folder, "record.json")

    def read(self) -> Record:
        return _read(self.path)

    def write(self, record: Record) -> None:
        os.makedirs(self.archives, exist_ok=True)
        _whole_file.write_json(self.path, {"schema": 1, **asdict(record)})

    @contextlib.contextmanager
    def workplace(self) -> Iterator[str]:
        """A folder on the store's file system, so that what was downloaded is moved into it, never copied half."""
        os.makedirs(self.archives, exist_ok=True)
        root = tempfile.mkdtemp(prefix=".work-", dir=self.folder)
        try:
            yield root
        finally:
            shutil.rmtree(root, ignore_errors=True)
            if not os.path.exists(self.path):
                self.forget()

    def take(self, path: str) -> str:
        target = os.path.join(self.archives, os.path.basename(path))
        os.replace(path, target)
        return os.path.basename(path)

    def file(self, archive: str) -> str:
        return os.path.join(self.archives, archive)

    def clean(self, record: Record) -> None:
        """Remove what no set of the record needs any more, and what a killed run left."""
        needed = {archive for item in record.sets() for archive in item.archives.values()}
        for path in glob.glob(os.path.join(self.archives, "*")):
            if os.path.basename(path) not in needed:
                os.unlink(path)
        for path in glob.glob(os.path.join(self.folder, ".work-*")):
            shutil.rmtree(path, ignore_errors=True)

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def used_elsewhere(self) -> set[str]:
        """Files, such as a repository's source, that another set of the node declares too."""
        used: set[str] = set()
        for path in glob.glob(os.path.join(self.parent, "*", "record.json")):
            current = _read(path).current
            if path != self.path and current:
                used.update(current.files)
        return used


def _read(path: str) -> Record:
    try:
        with open(path, encoding="utf-8") as stream:
            document = json.load(stream)
        sets = {key: _set(document.get(key)) for key in ("current", "previous", "undone", "before", "begun")}
        return Record(**sets, aim=document.get("aim", ""))
    except FileNotFoundError:
        return Record()
    except (ValueError, TypeError, AttributeError) as error:
        raise GpuError(f"The record {path} cannot be read ({error}); move it away, so that the next run begins a new one.") from None


def _set(document: dict[str, Any] | None) -> PackageSet | None:
    return PackageSet(**document) if document else None
