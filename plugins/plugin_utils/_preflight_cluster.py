# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Judges the nodes together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils._plan_findings import CLUSTER
from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight_terms import Details, error, listed, release, warning


def cluster_findings(nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Each node tells its name, state, whether it was reached and the declared driver version."""
    keys = ("severity", "check", "reason", "remedy")
    return [{"node": CLUSTER, **dict(zip(keys, details))} for check in (_reached, _branches) for details in check(nodes)]


def _reached(nodes: Sequence[Mapping[str, Any]]) -> Iterator[Details]:
    asked = [node for node in nodes if node["state"] != "absent"]
    if asked and not any(node["reached"] for node in asked):
        yield error(
            "reachable",
            f"None of the nodes answers: {listed(node['node'] for node in asked)}.",
            "Look at the network of the controller, the SSH key and the addresses in the inventory.",
        )


def _branches(nodes: Sequence[Mapping[str, Any]]) -> Iterator[Details]:
    of_branch: dict[str, list[str]] = {}
    for node in nodes:
        if node["state"] == "active" and node["driver_version"]:
            of_branch.setdefault(node["driver_version"].partition(".")[0], []).append(node["node"])
    if len(of_branch) > 1:
        told = "; ".join(f"R{branch} on {listed(of_branch[branch])}" for branch in sorted(of_branch, key=release))
        yield warning(
            "driver branch",
            f"The nodes are declared with several driver branches: {told}.",
            "Declare one branch that drives all GPUs, unless a pool needs another one for good.",
        )
