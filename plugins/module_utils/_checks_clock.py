# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the clock is kept right. PRIVATE: internal to the collection, may change at any time.

The kernel knows it whichever service disciplines the clock: this is what `timedatectl` shows as synchronized.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs

# Names of one service in Ubuntu and Debian, as far as both have it.
SERVICES = ("systemd-timesyncd", "chrony", "chronyd", "ntp", "ntpd", "ntpsec", "openntpd", "phc2sys")
# struct timex of 64 bit machines is smaller; field `status` follows modes, offset, freq, maxerror and esterror.
_TIMEX_BYTES, _STATUS_AT, _UNSYNCHRONISED = 512, 40, 0x40


def read(files: Sysfs, kernel_status: Callable[[], int | None] | None = None) -> dict[str, Any]:
    status = (kernel_status or _kernel_status)()
    return {
        # The controller compares it with its own.
        "now": time.time(),
        "synchronised": None if status is None else not status & _UNSYNCHRONISED,
        # systemd keeps such a link while the unit is active.
        "services": [name for name in SERVICES if os.path.islink(files.path(f"run/systemd/units/invocation:{name}.service"))],
    }


def _kernel_status() -> int | None:
    """adjtimex without a mode reads and needs no privilege."""
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)
    try:
        answer = ctypes.CDLL(None).adjtimex(timex)
    except (OSError, AttributeError):
        return None
    if answer < 0 or ctypes.sizeof(ctypes.c_long) != 8:
        return None
    return ctypes.c_int.from_buffer(timex, _STATUS_AT).value
