# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as a self-contained page. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ._planner import Plan
from ._text import summary


def render(plan: Plan, differences: Sequence[Mapping[str, Any]] = ()) -> str:
    return f"<!doctype html><meta charset=utf-8><title>Plan</title><pre>{escape(summary(plan, differences))}</pre>\n"
