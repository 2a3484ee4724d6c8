# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""The core of file_set: compare declared files with those on disk, then replace all of them or none."""

from __future__ import annotations

import glob
import grp
import os
import pwd
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class FileSetError(Exception):
    """A full sentence for the user."""


@dataclass(frozen=True)
class Attributes:
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True)
class WantedFile:
    path: str
    content: bytes
    attributes: Attributes

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> WantedFile:
        path = options["path"]
        if not os.path.isabs(path):
            raise FileSetError(f"The path {path!r} is not absolute; give the full path on the node.")
        try:
            mode = int(options["mode"], 8)
        except ValueError:
            raise FileSetError(f"The mode {options['mode']!r} of {path} is not an octal number; write it as '0644'.") from None
        try:
            uid = pwd.getpwnam(options["owner"]).pw_uid
            gid = grp.getgrnam(options["group"]).gr_gid
        except KeyError as error:
            raise FileSetError(f"The owner or group of {path} does not exist on this node ({error.args[0]}); create it first.") from None
        return cls(path, options["content"].encode(), Attributes(mode, uid, gid))


@dataclass(frozen=True)
class Step:
    """One file to write (after is set) or to remove (after is None)."""

    path: str
    before: bytes | None
    before_attributes: Attributes | None
    after: bytes | None
    after_attributes: Attributes | None

    def diff(self) -> dict[str, str]:
        return {
            "before_header": f"{self.path}{_describe(self.before_attributes)}",
            "after_header": f"{self.path}{_describe(self.after_attributes)}",
            "before": "" if self.before is None else self.before.decode(errors="replace"),
            "after": "" if self.after is None else self.after.decode(errors="replace"),
        }


def plan(wanted: Sequence[WantedFile], obsolete: Sequence[str]) -> list[Step]:
    """Read the node and return what has to change; nothing is written."""
    declared: dict[str, WantedFile] = {}
    for item in wanted:
        if item.path in declared and declared[item.path] != item:
            raise FileSetError(f"The file {item.path} is declared twice with different contents; declare it once.")
        declared[item.path] = item
    steps = []
    for path, item in declared.items():
        content, attributes = _read(path)
        if content != item.content or attributes != item.attributes:
            steps.append(Step(path, content, attributes, item.content, item.attributes))
    leftover = sorted({path for pattern in obsolete for path in glob.glob(pattern)} - set(declared))
    for path in leftover:
        if os.path.isfile(path) and not os.path.islink(path):
            content, attributes = _read(path)
            steps.append(Step(path, content, attributes, None, None))
    return steps


def apply(steps: Sequence[Step]) -> None:
    """Stage every new content first; only then replace and remove. Undo what was done when a step fails."""
    staged: dict[str, str] = {}
    made_folders: list[str] = []
    done: list[Step] = []
    current = ""
    try:
        for step in steps:
            current = step.path
            if step.after is not None and step.after_attributes is not None:
                _make_folders(os.path.dirname(step.path), made_folders)
                staged[step.path] = _stage(step.path, step.after, step.after_attributes)
        for step in steps:
            current = step.path
            if step.path in staged:
                os.replace(staged[step.path], step.path)
                del staged[step.path]
            else:
                os.unlink(step.path)
            done.append(step)
    except OSError as error:
        for path in staged.values():
            os.unlink(path)
        _undo(done)
        for folder in reversed(made_folders):
            _remove_if_empty(folder)
        raise FileSetError(
            f"The file {current} could not be written ({error.strerror}); no file was changed. "
            "Free space or repair the file system and run again."
        ) from error
    for step in done:
        if step.after is None:
            _remove_if_empty(os.path.dirname(step.path))


def back(steps: Sequence[Step]) -> list[Step]:
    """The steps that undo these."""
    return [Step(step.path, step.after, step.after_attributes, step.before, step.before_attributes) for step in reversed(steps)]


def _read(path: str) -> tuple[bytes | None, Attributes | None]:
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            # A link is replaced by the file itself; a folder in its place cannot be.
            if stat.S_ISDIR(status.st_mode):
                raise FileSetError(f"The path {path} is a folder where a file is declared; remove the folder or change the path.")
            return None, None
        with open(path, "rb") as stream:
            return stream.read(), Attributes(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
    except (FileNotFoundError, NotADirectoryError):
        return None, None


def _make_folders(folder: str, made: list[str]) -> None:
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        os.mkdir(path)
        os.chmod(path, 0o755)
        made.append(path)


def _stage(path: str, content: bytes, attributes: Attributes) -> str:
    handle, temporary = tempfile.mkstemp(prefix=".file_set-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chown(temporary, attributes.uid, attributes.gid)
        os.chmod(temporary, attributes.mode)
    except OSError:
        os.unlink(temporary)
        raise
    return temporary


def _undo(done: Sequence[Step]) -> None:
    for step in reversed(done):
        if step.before is None or step.before_attributes is None:
            os.unlink(step.path)
        else:
            os.replace(_stage(step.path, step.before, step.before_attributes), step.path)


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        # Not empty: somebody else's files live there too.
        return


def _describe(attributes: Attributes | None) -> str:
    if attributes is None:
        return " (absent)"
    return f" (mode {attributes.mode:04o}, uid {attributes.uid}, gid {attributes.gid})"
