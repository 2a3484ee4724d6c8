# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Judges what was read of one node before anything is changed on any node. Pure: no connection, no file of the node."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils import (
    _preflight_changes,
    _preflight_driver,
    _preflight_gpus,
    _preflight_owners,
    _preflight_system,
)
from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight_terms import Details, Observed, warning

_CHECKS = (
    *_preflight_system.CHECKS,
    *_preflight_driver.CHECKS,
    *_preflight_owners.CHECKS,
    *_preflight_gpus.CHECKS,
    *_preflight_changes.CHECKS,
)


@dataclass(frozen=True)
class Finding:
    node: str
    severity: str
    check: str
    reason: str
    remedy: str


def findings(node: str, observed: Observed, today: datetime.date | None = None) -> list[dict[str, str]]:
    """One entry per finding, errors first. On a node that nothing will be done to, an error is only a warning."""
    state = observed.get("node_state", "active")
    unreachable = observed.get("unreachable")
    if unreachable:
        found = [] if state == "absent" else [_silent(unreachable)]
    else:
        dated = {**observed, "today": today or datetime.datetime.now(datetime.timezone.utc).date()}
        found = [details for check in _CHECKS for details in check(dated)]
    judged = [Finding(node, severity if state == "active" else "warning", *rest) for severity, *rest in found]
    return [asdict(finding) for finding in sorted(judged, key=lambda finding: finding.severity != "error")]


def _silent(message: str) -> Details:
    reason = message.removeprefix("Task failed: ").rstrip(".") + "."
    return warning("reachable", f"{reason} It is left alone, as in maintenance.", "Repair SSH, the address or the key, or set node_state.")


def errors_text(all_findings: Sequence[Mapping[str, Any]]) -> str:
    """All errors in one text; what several nodes have in common is said once."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for finding in all_findings:
        if finding["severity"] == "error":
            nodes.setdefault((finding["reason"], finding["remedy"]), []).append(finding["node"])
    return " ".join(f"{', '.join(dict.fromkeys(names))}: {reason} {remedy}" for (reason, remedy), names in nodes.items())
