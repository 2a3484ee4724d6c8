# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _file_set
from ansible_collections.heterogpu.inference.plugins.module_utils._file_set import Attributes, FileSetError, WantedFile, apply, plan


def wanted(path: Path, content: str, mode: int = 0o644) -> WantedFile:
    return WantedFile(str(path), content.encode(), Attributes(mode, os.getuid(), os.getgid()))


def test_second_run_has_no_steps(tmp_path: Path) -> None:
    files = [wanted(tmp_path / "deep" / "a", "one\n"), wanted(tmp_path / "b", "two\n", 0o600)]
    apply(plan(files, []))
    assert (tmp_path / "deep" / "a").read_text() == "one\n"
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    assert plan(files, []) == []


def test_mode_alone_is_a_change(tmp_path: Path) -> None:
    apply(plan([wanted(tmp_path / "a", "x")], []))
    steps = plan([wanted(tmp_path / "a", "x", 0o600)], [])
    assert [step.path for step in steps] == [str(tmp_path / "a")]


def test_plan_writes_nothing(tmp_path: Path) -> None:
    plan([wanted(tmp_path / "new" / "a", "x")], [])
    assert list(tmp_path.iterdir()) == []


def test_obsolete_files_go_and_take_their_empty_folder(tmp_path: Path) -> None:
    apply(plan([wanted(tmp_path / "old.d" / "10.conf", "x"), wanted(tmp_path / "new.d" / "10.conf", "x")], []))
    (tmp_path / "shared.d").mkdir()
    (tmp_path / "shared.d" / "10.conf").write_text("x")
    (tmp_path / "shared.d" / "20-admin.conf").write_text("kept")
    steps = plan([wanted(tmp_path / "new.d" / "10.conf", "x")], [f"{tmp_path}/*.d/10.conf"])
    assert [step.after for step in steps] == [None, None]
    apply(steps)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "new.d",
        "new.d/10.conf",
        "shared.d",
        "shared.d/20-admin.conf",
    ]


def test_full_disk_while_staging_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    calls = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_file_set.os, "fsync", full)
    steps = plan([wanted(tmp_path / "a", "new"), wanted(tmp_path / "sub" / "b", "new")], [])
    with pytest.raises(FileSetError, match="No space left on device"):
        apply(steps)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_failing_replacement_puts_former_files_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    steps = plan([wanted(tmp_path / "a", "new"), wanted(tmp_path / "b", "new")], [])
    replace = os.replace

    def failing(source: str, target: str) -> None:
        if target.endswith("/b"):
            raise OSError(errno.EROFS, "Read-only file system")
        replace(source, target)

    monkeypatch.setattr(_file_set.os, "replace", failing)
    with pytest.raises(FileSetError, match=r"/b could not be written \(Read-only file system\)"):
        apply(steps)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "relative", "mode": "0644", "owner": "root", "group": "root"}, "not absolute"),
        ({"path": "/a", "mode": "rw", "owner": "root", "group": "root"}, "not an octal number"),
        ({"path": "/a", "mode": "0644", "owner": "no-such-user", "group": "root"}, "does not exist on this node"),
    ],
)
def test_bad_options_are_sentences(options: dict[str, str], message: str) -> None:
    with pytest.raises(FileSetError, match=message):
        WantedFile.from_options({"content": "", **options})


def test_contradiction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileSetError, match="declared twice"):
        plan([wanted(tmp_path / "a", "x"), wanted(tmp_path / "a", "y")], [])


def test_folder_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(FileSetError, match="is a folder where a file is declared"):
        plan([wanted(tmp_path / "a", "x")], [])
