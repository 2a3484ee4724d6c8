# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver calls happen in a child; whatever the child does, the caller gets a result or one sentence."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _bounded
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import DriverHang, DriverUnavailable, GpuError, Refused

PLENTY, SHORT = 60.0, 0.3


def never() -> None:
    """Blocks as a driver call that does not return, and ignores what can be ignored."""
    reader, _writer = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    os.read(reader, 1)


def raising(error: BaseException) -> Callable[[_bounded.Report], Any]:
    def work(report: _bounded.Report) -> None:
        raise error

    return work


def test_the_result_comes_back_and_the_work_is_done_elsewhere() -> None:
    result = _bounded.call(lambda report: {"pid": os.getpid(), "large": "x" * 300_000, "nothing": None}, PLENTY, "was reading")
    assert result["pid"] != os.getpid() and len(result["large"]) == 300_000 and result["nothing"] is None


@pytest.mark.parametrize(
    "error",
    [Refused("GPU 0 is busy.", gpu="0000:07:00.0"), DriverUnavailable("No driver.", "absent"), GpuError("Something."), DriverHang("Late.")],
)
def test_errors_of_the_collection_keep_their_class_and_facts(error: GpuError) -> None:
    with pytest.raises(type(error)) as caught:
        _bounded.call(raising(error), PLENTY, "was reading")
    assert type(caught.value) is type(error) and str(caught.value) == str(error) and caught.value.facts == error.facts


@pytest.mark.parametrize("error", [ValueError("seven"), SystemExit(3), KeyboardInterrupt()])
def test_other_errors_become_a_sentence(error: BaseException) -> None:
    with pytest.raises(GpuError, match=rf"while it was reading: {type(error).__name__}.*report it"):
        _bounded.call(raising(error), PLENTY, "was reading")


def test_a_result_that_is_no_json_becomes_a_sentence() -> None:
    with pytest.raises(GpuError, match="TypeError"):
        _bounded.call(lambda report: object(), PLENTY, "was reading")


def test_a_child_that_dies_is_told() -> None:
    with pytest.raises(GpuError, match="that was reading ended without an answer"):
        _bounded.call(lambda report: os.kill(os.getpid(), signal.SIGKILL), PLENTY, "was reading")


def test_a_hang_is_told_with_the_last_progress() -> None:
    def work(report: _bounded.Report) -> None:
        report({"doing": "nvmlInit"})
        report({"doing": "reading GPU 3", "gpus": [0, 1, 2]})
        never()

    with pytest.raises(DriverHang, match=r"within 0\.3 s while the module was reading \(last call: reading GPU 3\)") as caught:
        _bounded.call(work, SHORT, "was reading")
    assert caught.value.progress["gpus"] == [0, 1, 2]


def test_a_child_that_cannot_end_does_not_keep_its_answer_back() -> None:
    """Closing the device files may hang when everything else went well."""
    child = os.fork()
    if child == 0:
        never()
    _bounded._await_end(child, SHORT)
    os.waitpid(child, 0)  # it was told to go; on real hardware nobody waits for it


def test_the_child_lets_go_of_the_output(capfd: pytest.CaptureFixture[str]) -> None:
    """An SSH session ends when the last process closes its output."""
    links = _bounded.call(lambda report: [os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)], PLENTY, "was reading")
    assert links == [os.devnull] * 3


def test_work_goes_on_when_nobody_listens_any_more(tmp_path: Any) -> None:
    """The task was cancelled half way through a change: the rest of it, or its rollback, still happens."""
    reader, writer = os.pipe()
    os.close(reader)

    def work(report: _bounded.Report) -> None:
        report({"doing": "creating"})
        (tmp_path / "finished").touch()

    with pytest.raises(BrokenPipeError):
        _bounded._serve(work, writer, "was changing")
    os.close(writer)
    assert (tmp_path / "finished").exists()
