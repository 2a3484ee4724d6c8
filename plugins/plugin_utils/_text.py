# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan in words, for the terminal. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._planner import Plan

MOST_NODES = 40


def summary(plan: Plan, differences: Sequence[Mapping[str, Any]] = ()) -> str:
    """What a person reads after planning."""
    document = plan.document
    total = document["summary"]
    lines = [
        f"{total['replicas_placed']} of {total['replicas_wanted']} replicas placed on {total['nodes']} nodes with {total['gpus']} GPUs "
        f"({total['gpus_with_mig']} with MIG, {total['gpus_unused']} unused).",
        "",
        *_table(
            ["service", "class", "placed", "device", "needed MiB", "available MiB", "headroom tokens"],
            [_service_row(name, service) for name, service in document["services"].items()],
        ),
        "",
        *_table(["node", "replicas", "geometry"], _node_rows(document["nodes"])),
    ]
    if len(document["nodes"]) > MOST_NODES:
        lines.append(f"... and {len(document['nodes']) - MOST_NODES} more nodes.")
    lines += _section("Refused", [refusal["sentence"] for refusal in document["refusals"]])
    lines += _section("Differences from the inventory", [difference["sentence"] for difference in differences])
    lines += _section("Warnings", [warning["sentence"] for warning in document["warnings"]])
    lines += changes(plan)
    return "\n".join(lines) + "\n"


def changes(plan: Plan) -> list[str]:
    """What differs from the plan in force."""
    lines = _section("Moves", [f"{move['replica']}: {move['from']} -> {move['to']} ({move['reason']})" for move in plan.moves])
    lines += _section("Stops", [f"{stop['replica']}: {stop['from']} ({stop['reason']})" for stop in plan.stopped])
    lines += _section("Starts", [", ".join(plan.started)] if plan.started else [])
    lines += _section(
        "Geometry changes",
        [
            f"{change['node']}/{change['gpu']}: {_layout(change['before'])} -> {_layout(change['after'])}"
            for change in plan.geometry_changes
        ],
    )
    lines += _section("Nodes that need draining", plan.drained)
    return lines


def _service_row(name: str, service: Mapping[str, Any]) -> list[str]:
    placed = f"{service['placed']}/{service['replicas']}"
    if not service["fit"]:
        return [name, service["class"], placed, "none fits", "", "", ""]
    first = service["fit"][0]
    more = f" (or {len(service['fit']) - 1} more)" if len(service["fit"]) > 1 else ""
    figures = [str(first[key]) for key in ("needed_mib", "available_mib", "headroom_tokens")]
    return [name, service["class"], placed, first["device"] + more, *figures]


def _node_rows(nodes: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for name, node in list(nodes.items())[:MOST_NODES]:
        counts: dict[str, int] = {}
        for replica in node["replicas"]:
            counts[replica["service"]] = counts.get(replica["service"], 0) + 1
        layouts: dict[str, int] = {}
        for entry in node["geometry"]:
            text = "MIG off" if entry.get("mig") is False else "+".join(profile.partition("@")[0] for profile in entry["profiles"])
            layouts[text] = layouts.get(text, 0) + 1
        state = "" if node["state"] == "active" and node["workload"] == "containers" else f" ({node['state']}, {node['workload']})"
        rows.append(
            [
                name + state,
                ", ".join(f"{count} {service}" for service, count in counts.items()),
                ", ".join(f"{n} x {text}" for text, n in layouts.items()),
            ]
        )
    return rows


def _layout(layout: str | Sequence[str]) -> str:
    return "MIG off" if isinstance(layout, str) else "+".join(layout) or "no instance"


def _section(title: str, rows: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"- {row}" for row in rows)] if rows else []


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)]
