# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one family of errors of the modules. PRIVATE: internal to the collection, may change at any time.

A message is a full sentence: what, where, which value, what to do. `main()` of a module catches GpuError once.
"""

from __future__ import annotations

from typing import Any


class GpuError(Exception):
    """Something an operator must know. `facts` are returned beside the message, for callers that act on them."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts


class InvalidInput(GpuError):
    """What was declared cannot be; nothing was touched."""


class Refused(GpuError):
    """What was declared could be, but not now or not here; nothing was touched."""


class DriverUnavailable(GpuError):
    """NVML cannot be used: absent, not loaded, of another version."""

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message, driver_state=state)
        self.state = state


class DriverHang(GpuError):
    """A driver call did not return in time; the process that made it was left behind."""

    def __init__(self, message: str, progress: dict | None = None) -> None:
        super().__init__(message)
        self.progress = progress or {}


class ApplyFailed(GpuError):
    """A change failed half way; the message says what stands now."""
