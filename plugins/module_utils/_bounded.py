# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls into the driver from a child process. PRIVATE: internal to the collection, may change at any time.

A driver that hangs blocks its caller for good, even against SIGKILL. So every use of NVML happens in a child; the parent
waits a bounded time and leaves a child that does not answer behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _errors

Report = Callable[[dict], None]


def call(function: Callable[[Report], Any], timeout: float, what: str) -> Any:
    """Run function(report) in a child; `timeout` counts from the last sign of life, which is each report.

    Results and reports travel as JSON. Errors of the collection keep their class.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            _leave_stdio()
            _serve(function, writer, what)
        finally:
            os._exit(0)  # whatever happens, the child must not go on as a second copy of the module
    os.close(writer)
    try:
        return _listen(reader, child, timeout, what)
    finally:
        os.close(reader)


def _leave_stdio() -> None:
    """A child that is left behind must not keep the caller's output open: the SSH session would wait for it."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def _serve(function: Callable[[Report], Any], writer: int, what: str) -> None:
    def send(kind: str, value: Any) -> None:
        data = json.dumps({"kind": kind, "value": value}).encode() + b"\n"
        while data:
            data = data[os.write(writer, data) :]

    def report(progress: dict) -> None:
        # Work that has begun is finished even when nobody listens any more: stopping half way would leave the GPUs in between.
        with contextlib.suppress(BrokenPipeError):
            send("progress", progress)

    try:
        send("result", function(report))
    except _errors.GpuError as error:
        send("error", {"class": type(error).__name__, "message": str(error), "facts": error.facts})
    except BaseException as error:
        message = (
            f"The module met an error that it does not know while it {what}: {type(error).__name__}: {error}; report it with the task."
        )
        send("error", {"class": "GpuError", "message": message, "facts": {}})


def _listen(reader: int, child: int, timeout: float, what: str) -> Any:
    progress: dict = {}
    buffer = b""
    deadline = time.monotonic() + timeout
    while True:
        ready, _unused, _unused = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            _abandon(child)
            raise _errors.DriverHang(_hang_text(what, timeout, progress), progress)
        chunk = os.read(reader, 1 << 16)
        if not chunk:
            _await_end(child, timeout)
            raise _errors.GpuError(
                f"The helper process that {what} ended without an answer; look for a crash of libnvidia-ml in the journal."
            )
        buffer += chunk
        while b"\n" in buffer:
            line, buffer = buffer.split(b"\n", 1)
            message = json.loads(line.decode())
            if message["kind"] == "progress":
                progress = message["value"]
                deadline = time.monotonic() + timeout
                continue
            _await_end(child, timeout)
            if message["kind"] == "error":
                _raise(message["value"])
            return message["value"]


def _hang_text(what: str, timeout: float, progress: dict) -> str:
    where = progress.get("doing")
    return (
        f"The NVIDIA driver did not answer within {timeout:g} s while the module {what}"
        + (f" (last call: {where})" if where else "")
        + "; the call was abandoned. Look for Xid or NVRM messages with `journalctl -k` and reboot the node."
    )


def _await_end(child: int, timeout: float) -> None:
    """Its open device files would make the next step find the GPU in use. Closing them may hang as any call may."""
    deadline, pause = time.monotonic() + timeout, 0.001
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            _abandon(child)
            return
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _abandon(child: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, os.WNOHANG)


def _raise(error: dict) -> None:
    kind = getattr(_errors, error["class"], _errors.GpuError)
    if kind is _errors.DriverUnavailable:
        raise kind(error["message"], error["facts"].get("driver_state", "unknown"))
    if kind is _errors.DriverHang:
        raise kind(error["message"])
    raise kind(error["message"], **error["facts"])
