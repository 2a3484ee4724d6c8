# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time on a node. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ansible_collections.heterogpu.inference.plugins.module_utils._errors import Refused

PATH = "/run/lock/heterogpu-mig-geometry.lock"
PAUSE_S = 0.2


@contextmanager
def exclusive(timeout: float) -> Iterator[int]:
    """Holds the lock; its file descriptor is given so that a child which outlives the run can let it go."""
    descriptor = os.open(PATH, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while not _taken(descriptor):
            if time.monotonic() >= deadline:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
                raise Refused(
                    f"Another run (process {holder}) is changing the GPUs of this node; it did not end within {timeout:g} s. "
                    f"Wait for it and run again. Nothing was changed."
                )
            time.sleep(PAUSE_S)
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
