# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The frame of a run that changes GPUs. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _bounded, _lock
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import DriverHang


def run(work: Callable[[_bounded.Report], dict[str, Any]], check_mode: bool, timeout: float, what: str) -> dict[str, Any]:
    """One run at a time. Every NVML call is made in a child process, so that a hanging driver cannot hang the caller."""
    with nullcontext(None) if check_mode else _lock.exclusive(timeout) as descriptor:

        def inside(report: _bounded.Report) -> dict[str, Any]:
            if descriptor is not None:
                os.close(descriptor)  # a child that hangs must not keep later runs out
            return work(report)

        try:
            return _bounded.call(inside, timeout, what)
        except DriverHang as error:
            done = "; ".join(error.progress.get("done", []))
            stands = (
                f"Calls that had succeeded before: {done}. They were not taken back." if done else "Nothing was changed before that call."
            )
            raise DriverHang(f"{error} {stands}", error.progress) from None
