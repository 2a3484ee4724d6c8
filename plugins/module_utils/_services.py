# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that keep GPUs open stand still while a GPU changes its mode. PRIVATE: internal to the collection, may change at any time.

Only those that run are stopped, and what was stopped is written down first: a run that was killed in between leaves a note, and the
next one starts them again.
"""

from __future__ import annotations

# The program of the boot unit uses this too: it has no module to call.
# pylint: disable=ansible-bad-function
import contextlib
import json
import os
import subprocess
from collections.abc import Iterator

from ansible_collections.heterogpu.inference.plugins.module_utils import _whole_file
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed, Refused

NOTE = "/run/heterogpu/paused-services.json"
TIMEOUT_S = 60.0


class Services:
    """`waits` says of which services the start is awaited: at boot only of those that are ordered before the caller."""

    def __init__(self, names: list[str], waits: tuple[str, ...] | None = None) -> None:
        self.names = names
        self.waits = waits

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        running = [name for name in self.names if _systemctl("is-active", "--quiet", name)[0] == 0]
        if running:
            _whole_file.write_json(NOTE, running)
        try:
            for name in running:
                code, text = _systemctl("stop", name)
                if code != 0:
                    raise Refused(
                        f"The service {name} keeps GPUs open and cannot be stopped ({text}); look into `journalctl -u {name}` "
                        "and run again. Nothing was changed."
                    )
            yield
        finally:
            self.resume()

    def resume(self) -> None:
        """Starts what this or an earlier run has stopped."""
        failed = []
        for name in _read():
            wait = self.waits is None or name in self.waits
            code, text = _systemctl("start", *([] if wait else ["--no-block"]), name)
            if code != 0:
                failed.append(f"{name} ({text})")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(NOTE)
        if failed:
            raise ApplyFailed(
                f"These services were stopped for a change of MIG mode and do not start again: {', '.join(failed)}; "
                "look into their journal and start them."
            )


def _systemctl(*arguments: str) -> tuple[int, str]:
    try:
        done = subprocess.run(["systemctl", *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return 124, f"no answer within {TIMEOUT_S:g} s"
    except OSError as error:
        return 127, f"systemctl cannot be started: {error.strerror}"
    return done.returncode, " ".join(done.stderr.split())


def _read() -> list[str]:
    try:
        with open(NOTE, encoding="utf-8") as stream:
            return [str(name) for name in json.load(stream)]
    except (OSError, ValueError, TypeError):
        return []
