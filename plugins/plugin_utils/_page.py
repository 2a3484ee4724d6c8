# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as one self-contained page. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ._catalog import Catalog
from ._picture import picture
from ._planner import Plan

STYLE = """
:root { --page: #f6f7f9; --card: #fff; --ink: #1d2733; --soft: #5c6b7a; --line: #d5dbe2; --numa: #f0f3f6;

  --interactive: #2f6fde; --batch: #b3541e; --auxiliary: #2e8b57; --free: #c3cad2; --bad: #b00020; --warn: #8a6100; --on: #fff; }
@media (prefers-color-scheme: dark) { :root { --page: #12171d; --card: #1b222a; --ink: #e4e9ee;
  --soft: #98a6b3; --line: #36414c;
  --numa: #222b34; --interactive: #4b86ee; --batch: #c96a33; --auxiliary: #3da46b; --free: #56626e; --bad: #ff6b7d; --warn: #e0b44c; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 24px; background: var(--page); color: var(--ink); font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 28px 0 8px; } h3 { font-size: 15px; margin: 0 0 4px; }
p { margin: 4px 0; } .soft { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; margin: 0 0 12px;
  overflow-x: auto; }
.tiles { display: flex; flex-wrap: wrap; gap: 10px; margin: 14px 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 8px 14px; min-width: 96px; }
.tile b { display: block; font-size: 20px; }
.legend span { display: inline-flex; align-items: center; gap: 6px; margin-right: 16px; }
.legend i { width: 14px; height: 14px; border-radius: 3px; display: inline-block; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
li { margin: 4px 0; } .bad { color: var(--bad); } .warn { color: var(--warn); }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); } svg text.small { font-size: 10px; fill: var(--soft); }
svg text.label, svg text.label.small { fill: var(--on); }
.numa { fill: var(--numa); stroke: var(--line); } .board { fill: var(--card); stroke: var(--line); }
.bar { fill: none; stroke: var(--line); }
.hca { fill: var(--card); stroke: var(--soft); } .link { stroke: var(--soft); stroke-width: 2; }
.block { stroke: var(--card); stroke-width: 1.5; } .excluded .board { stroke: var(--bad); stroke-dasharray: 4 3; }
.block.interactive, i.interactive { fill: var(--interactive); background: var(--interactive); }
.block.batch, i.batch { fill: var(--batch); background: var(--batch); }
.block.auxiliary, i.auxiliary { fill: var(--auxiliary); background: var(--auxiliary); }
.block.free, i.free { fill: var(--free); background: var(--free); }
"""


def render(plan: Plan, differences: Sequence[Mapping[str, Any]], catalog: Catalog) -> str:
    """One HTML document without references to anything else."""
    document = plan.document
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">',
        f"<title>Placement plan</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>Placement plan</h1>",
        *_head(document),
        *_section("Refused", [refusal["sentence"] for refusal in document["refusals"]], "bad"),
        *_section("Differences from the inventory", [difference["sentence"] for difference in differences], "bad"),
        *_section("Warnings", [warning["sentence"] for warning in document["warnings"]], "warn"),
        *_changes(plan),
        *_services(document["services"]),
        *_nodes(document["nodes"], catalog),
        *_drain(document["nodes"]),
        "</body>\n</html>",
    ]
    return "\n".join(parts) + "\n"


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    total = document["summary"]
    verdict = "Every replica has its place." if document["complete"] else "Not everything that was asked for has a place."
    yield f"<p class='{'soft' if document['complete'] else 'bad'}'>{verdict}</p>"
    tiles = {
        "replicas": f"{total['replicas_placed']} / {total['replicas_wanted']}",
        "nodes": total["nodes"],
        "GPUs": total["gpus"],
        "with MIG": total["gpus_with_mig"],
        "unused": total["gpus_unused"],
        "refusals": total["refusals"],
    }
    yield "<div class='tiles'>" + "".join(f"<div class='tile'><b>{value}</b>{name}</div>" for name, value in tiles.items()) + "</div>"


def _section(title: str, rows: Sequence[str], kind: str = "") -> Iterator[str]:
    if rows:
        items = "".join(f"<li>{escape(row)}</li>" for row in rows)
        yield f"<h2 class='{kind}'>{title}</h2>\n<div class='card'><ul>{items}</ul></div>"


def _changes(plan: Plan) -> Iterator[str]:
    yield from _section("Moves", [f"{move['replica']}: {move['from']} → {move['to']} ({move['reason']})" for move in plan.moves])
    yield from _section("Stops", [f"{stop['replica']}: {stop['from']} ({stop['reason']})" for stop in plan.stopped])
    yield from _section(
        "Geometry changes",
        [f"{change['node']}/{change['gpu']}: {_layout(change['before'])} → {_layout(change['after'])}" for change in plan.geometry_changes],
    )
    yield from _section("Nodes that need draining", plan.drained)


def _layout(layout: str | Sequence[str]) -> str:
    return "MIG off" if isinstance(layout, str) else " + ".join(layout) or "no instance"


def _services(services: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>Services and their memory</h2>"
    head = [
        "service",
        "class",
        "model",
        "placed",
        "device",
        "weights MiB",
        "cache MiB",
        "needed MiB",
        "available MiB",
        "headroom MiB",
        "headroom tokens",
    ]
    rows = []
    for name, service in services.items():
        for position, fit in enumerate(service["fit"] or [None]):
            first = (
                [name, service["class"], service["model"], f"{service['placed']} / {service['replicas']}"]
                if not position
                else ["", "", "", ""]
            )
            keys = ("weights_mib", "working_mib", "needed_mib", "available_mib", "headroom_mib", "headroom_tokens")
            rows.append([*first, *((fit["device"], *(f"{fit[key]:,}" for key in keys)) if fit else ("none fits", *[""] * len(keys)))])
    yield _table(head, rows, numbers=set(range(5, 11)))


def _nodes(nodes: Mapping[str, Any], catalog: Catalog) -> Iterator[str]:
    yield "<h2>Nodes</h2>"
    legend = {"interactive": "interactive", "batch": "batch", "auxiliary": "auxiliary", "free": "unused instance"}
    yield "<p class='legend'>" + "".join(f"<span><i class='{kind}'></i>{words}</span>" for kind, words in legend.items()) + "</p>"
    for name, node in nodes.items():
        said = [*node["groups"]]
        if "driver" in node:
            driver = node["driver"]
            said.append(f"driver {driver['branch']} {driver['flavour']}, CUDA {driver['cuda']}, Triton {driver['triton_image']}")
        if node["state"] != "active" or node["workload"] != "containers":
            said.append(f"{node['state']}, {node['workload']}")
        drawn = picture(name, node, catalog) if "gpus" in node else ""
        yield f"<div class='card'><h3>{escape(name)}</h3><p class='soft'>{escape(' · '.join(said))}</p>\n{drawn}</div>"


def _drain(nodes: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        [name, row["service"], str(row["replicas_left"]), str(row["min_available"]), "yes" if row["enough"] else "no"]
        for name, node in nodes.items()
        for row in node["drain"]
    ]
    if rows:
        yield "<h2>What is left when a node is drained</h2>"
        yield _table(["node", "service", "replicas left", "min available", "enough"], rows, numbers={2, 3})


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: set[int]) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}{' class=n' if column in numbers else ''}>{escape(cell)}</{tag}>" for column, cell in enumerate(row))

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class='card'><table><tr>{cells('th', head)}</tr>\n{body}</table></div>"
