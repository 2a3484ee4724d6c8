# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Compares two clocks."""

from __future__ import annotations


def skew(before: float, there: float, after: float) -> float:
    """Seconds that the clock there is ahead at least, when it was read somewhere between `before` and `after` of the clock here."""
    if there < before:
        return round(there - before, 3)
    if there > after:
        return round(there - after, 3)
    return 0.0
