# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xid errors from the kernel's log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _xid

LOG = """\
4,1212,5123123,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05  Release Build
4,1213,6123123,-;NVRM: Xid (PCI:0000:07:00): 13, pid=4711, name=tritonserver, Graphics Exception
4,1214,6123124,-;NVRM: Xid (PCI:0000:C7:00.0): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
6,1215,6123125,-;usb 1-1: Xid (PCI:0000:07:00): 1
4,1216,6123126,-;NVRM: Xid (PCI:0000:07:00): 48, pid=4711, name=tritonserver, DBE (double bit error)
4,1217,6123127,-;NVRM: Xid (PCI:00000000:07:00): 13, pid=4712, name=tritonserver, Graphics Exception
"""


def test_errors_are_counted_by_gpu(tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_text(LOG)
    assert _xid.since_boot(str(tmp_path / "kmsg")) == {
        "0000:07:00": [{"xid": 13, "count": 2}, {"xid": 48, "count": 1}],
        "0000:c7:00": [{"xid": 79, "count": 1}],
    }


def test_a_log_that_cannot_be_read_is_not_a_log_without_errors(tmp_path: Path) -> None:
    assert _xid.since_boot(str(tmp_path / "kmsg")) is None
    (tmp_path / "kmsg").write_text("")
    assert _xid.since_boot(str(tmp_path / "kmsg")) == {}


def test_the_log_is_read_record_by_record_to_its_present_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kmsg").write_text("")
    xid = b"NVRM: Xid (PCI:0000:07:00): 79, pid=1"
    answers: list[Any] = [xid, BrokenPipeError(), xid, BlockingIOError()]

    def read(descriptor: int, size: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return bytes(answer)

    monkeypatch.setattr(os, "read", read)
    assert _xid.since_boot(str(tmp_path / "kmsg")) == {"0000:07:00": [{"xid": 79, "count": 2}]}
    assert answers == []


def test_a_log_that_never_ends_does_not_keep_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kmsg").write_text("")
    monkeypatch.setattr(os, "read", lambda descriptor, size: b"NVRM: Xid (PCI:0000:07:00): 13, pid=1")
    assert _xid.since_boot(str(tmp_path / "kmsg")) == {"0000:07:00": [{"xid": 13, "count": _xid.MOST_RECORDS}]}
