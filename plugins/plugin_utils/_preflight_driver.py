# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Judges the driver: whether it answers, whether it is the installed one, and how long its branch lives."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight_terms import (
    Details,
    Observed,
    driver,
    error,
    gpus,
    listed,
    warning,
)

_COMPAT = Path(__file__).resolve().parents[2] / "data" / "compat.yml"
# A driver that is absent or not loaded yet is what the run is going to change; these states it cannot change.
_UNUSABLE = ("hung", "no_permission", "unusable")
_LOOK = "Look at dmesg for Xid messages and reboot the node if the driver hangs."
# Time to plan the change of a branch.
_NOTICE_MONTHS = 6


def _answers(observed: Observed) -> Iterator[Details]:
    if observed["gpu_info"] is None:
        yield error("driver answers", observed.get("gpu_message") or "The GPUs could not be read.", _LOOK)
        return
    found = driver(observed)
    if found.get("state") in _UNUSABLE:
        yield error("driver answers", found["message"], _LOOK)
    lost = [gpu["pci_address"] or f"index {gpu['index']}" for gpu in gpus(observed) if gpu.get("lost")]
    if lost:
        yield error(
            "driver answers",
            f"The driver cannot reach GPU {listed(lost)}.",
            "Reset the GPU or reboot the node; replace it if it stays lost.",
        )


def _loaded(observed: Observed) -> Iterator[Details]:
    found = driver(observed)
    if not found or found.get("state") in _UNUSABLE or observed.get("driver_settled", True):
        return
    pair = f"Driver {found['loaded_version']} is loaded and {found['installed_version']} is installed; a reboot is pending."
    yield warning(
        "driver answers",
        found.get("message") or pair,
        "The rolling run drains and reboots the node; the geometry is looked at after that.",
    )


def _life(observed: Observed) -> Iterator[Details]:
    branch, today = f"R{observed['driver']['version'].partition('.')[0]}", observed["today"]
    row = next((row for row in branches() if row["branch"] == branch), None)
    if row is None:
        return
    months = _months_until(str(row["eol"]), today)
    if months >= _NOTICE_MONTHS:
        return
    others = [other["branch"] for other in branches() if _months_until(str(other["eol"]), today) >= _NOTICE_MONTHS]
    yield warning(
        "driver branch",
        f"Driver branch {branch} {'had' if months < 0 else 'has'} its end of life in {row['eol']}.",
        f"Plan the change to {' or '.join(others)}, as far as the GPUs allow.",
    )


def _months_until(month: str, today: datetime.date) -> int:
    """Negative from the month after it on."""
    year, _dash, number = month.partition("-")
    return (int(year) - today.year) * 12 + int(number) - today.month


@lru_cache(maxsize=1)
def branches() -> Sequence[Mapping[str, Any]]:
    return yaml.safe_load(_COMPAT.read_text(encoding="utf-8"))["driver_branches"]["rows"]


CHECKS = (_answers, _loaded, _life)
