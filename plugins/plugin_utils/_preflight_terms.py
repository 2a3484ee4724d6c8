# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""What the checks of preflight have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Observed = Mapping[str, Any]
Details = tuple[str, str, str, str]  # severity, check, reason, remedy
Check = Callable[[Observed], Iterator[Details]]


def error(check: str, reason: str, remedy: str) -> Details:
    return "error", check, reason, remedy


def warning(check: str, reason: str, remedy: str) -> Details:
    return "warning", check, reason, remedy


def driver(observed: Observed) -> Mapping[str, Any]:
    """What gpu_info tells of driver and kernels; empty when it could not be read."""
    return (observed.get("gpu_info") or {}).get("driver") or {}


def gpus(observed: Observed) -> list[Mapping[str, Any]]:
    return (observed.get("gpu_info") or {}).get("gpus") or []


def checks(observed: Observed) -> Mapping[str, Any]:
    """What node_checks has read; empty when it could not."""
    return observed.get("checks") or {}


def listed(names: Iterable[Any]) -> str:
    return ", ".join(str(name) for name in names)


def release(text: str) -> list[int]:
    """5.15.0-100-generic comes before 5.15.0-105-generic."""
    return [int(part) for part in "".join(character if character.isdigit() else " " for character in text).split()]
