# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of one node as SVG. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ._catalog import Catalog

GPU_WIDTH, GPU_GAP, NUMA_PAD = 128, 8, 10
BAR_WIDTH, BAR_HEIGHT = 112, 60
TOP, GPU_TOP, GPU_HEIGHT = 2, 26, 102
LABEL_WIDTH = 6.2  # of a character of a label


def picture(name: str, node: Mapping[str, Any], catalog: Catalog) -> str:
    """Draw NUMA nodes, GPUs with what runs on them, NVLink sets and HCAs of a node."""
    gpus = node["gpus"]
    columns = _columns(node)
    links = _links(gpus, columns)
    bottom = GPU_TOP + GPU_HEIGHT + 16 * len(links)
    height = bottom + 34
    width = max((x + GPU_WIDTH for x in columns.values()), default=200) + NUMA_PAD + 2
    parts = [f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{escape(name)}">']
    parts += _numa_boxes(node, columns, height)
    for gpu in gpus:
        parts += _gpu(gpu, columns[gpu["index"]], node, catalog)
    for row, (link, indexes) in enumerate(links.items()):
        parts += _link(link, [columns[index] for index in indexes], GPU_TOP + GPU_HEIGHT + 8 + 16 * row)
    return "\n".join([*parts, "</svg>"])


def _columns(node: Mapping[str, Any]) -> dict[int, int]:
    """The left edge of every GPU; GPUs of a NUMA node stand together."""
    columns: dict[int, int] = {}
    x = 1
    for numa in node["numa_nodes"]:
        x += NUMA_PAD
        for gpu in node["gpus"]:
            if gpu["numa_node"] == numa["id"]:
                columns[gpu["index"]] = x
                x += GPU_WIDTH + GPU_GAP
        x += NUMA_PAD
    return columns


def _numa_boxes(node: Mapping[str, Any], columns: Mapping[int, int], height: int) -> Iterator[str]:
    for numa in node["numa_nodes"]:
        mine = [columns[gpu["index"]] for gpu in node["gpus"] if gpu["numa_node"] == numa["id"]]
        if not mine:
            continue
        left, width = min(mine) - NUMA_PAD, max(mine) - min(mine) + GPU_WIDTH + 2 * NUMA_PAD
        yield f'<rect class="numa" x="{left}" y="{TOP}" width="{width}" height="{height - TOP - 2}" rx="6"/>'
        free = f"{numa['free_cpus']} CPUs and {numa['free_memory_mib'] // 1024} GiB free"
        yield f'<text class="small" x="{left + 8}" y="{TOP + 16}">NUMA node {numa["id"]}: {free}</text>'
        for position, hca in enumerate(hca for hca in node["hcas"] if hca["numa_node"] == numa["id"]):
            x, y = left + 8 + 128 * position, height - 26
            yield f'<rect class="hca" x="{x}" y="{y}" width="120" height="18" rx="3"/>'
            yield f'<text class="small" x="{x + 6}" y="{y + 13}">{escape(hca["device"])} {hca["rate_gbps"]} Gbit/s</text>'


def _gpu(gpu: Mapping[str, Any], x: int, node: Mapping[str, Any], catalog: Catalog) -> Iterator[str]:
    tenants = [replica for replica in node["replicas"] if gpu["index"] in replica["device"]["indexes"]]
    yield f'<g class="gpu {gpu["use"]}">'
    yield f'<rect class="board" x="{x}" y="{GPU_TOP}" width="{GPU_WIDTH}" height="{GPU_HEIGHT}" rx="4"/>'
    yield f'<text x="{x + 8}" y="{GPU_TOP + 15}">{escape(gpu["pci_address"] or "GPU " + str(gpu["index"]))}</text>'
    yield f'<text class="small" x="{x + 8}" y="{GPU_TOP + 28}">{escape(gpu["model"])}</text>'
    bar_x, bar_y = x + 8, GPU_TOP + 34
    yield f'<rect class="bar" x="{bar_x}" y="{bar_y}" width="{BAR_WIDTH}" height="{BAR_HEIGHT}"/>'
    if gpu["use"] == "mig":
        yield from _instances(tenants, _sizes(gpu, node, catalog), (bar_x, bar_y))
    elif gpu["use"] == "shared":
        left = float(bar_x)
        for replica in tenants:
            width = BAR_WIDTH / replica["device"]["share"]
            yield from _block((left, bar_y), width, replica["service_class"], replica["name"], f"1/{replica['device']['share']}")
            left += width
    elif tenants:
        yield from _block((bar_x, bar_y), BAR_WIDTH, tenants[0]["service_class"], tenants[0]["name"], "whole GPU")
    else:
        yield f'<text class="small" x="{bar_x + 6}" y="{bar_y + 26}">{escape(gpu["use"])}</text>'
    yield "</g>"


def _sizes(gpu: Mapping[str, Any], node: Mapping[str, Any], catalog: Catalog) -> list[tuple[str, int, int]]:
    """The instances of a GPU: profile, start and size in memory slices."""
    model = catalog.model(gpu["model"])
    reference = gpu["pci_address"] if gpu["pci_address"] is not None else gpu["index"]
    layout = next((entry.get("profiles", ()) for entry in node["geometry"] if entry["gpus"] == reference), ())
    found = []
    for entry in layout:
        name, _at, start = entry.partition("@")
        profile = model.profile(name) if model else None
        found.append((name, int(start), profile.size if profile else 1))
    return found


def _instances(tenants: Sequence[Mapping[str, Any]], layout: Sequence[tuple[str, int, int]], corner: tuple[int, int]) -> Iterator[str]:
    slot = BAR_WIDTH / 8
    for profile, start, size in layout:
        replica = next((one for one in tenants if (one["device"].get("profile"), one["device"].get("start")) == (profile, start)), None)
        kind, label = (replica["service_class"], replica["name"]) if replica else ("free", "unused")
        yield from _block((corner[0] + start * slot, corner[1]), size * slot, kind, label, profile)


def _block(corner: tuple[float, int], width: float, kind: str, label: str, device: str) -> Iterator[str]:
    x, y = corner
    yield f"<g><title>{escape(label)} on {escape(device)}</title>"
    yield f'<rect class="block {kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR_HEIGHT}"/>'
    # A narrow instance has no room for a line of text, so its label stands upright.
    if width >= len(label) * LABEL_WIDTH + 4:
        yield f'<text class="label" x="{x + 4:.1f}" y="{y + 18}">{escape(label)}</text>'
        if width >= len(device) * LABEL_WIDTH + 4:
            yield f'<text class="label small" x="{x + 4:.1f}" y="{y + 34}">{escape(device)}</text>'
    elif len(label) * LABEL_WIDTH <= BAR_HEIGHT - 4:
        middle = x + width / 2 + 4
        yield f'<text class="label small" transform="translate({middle:.1f} {y + BAR_HEIGHT - 3}) rotate(-90)">{escape(label)}</text>'
    yield "</g>"


def _links(gpus: Sequence[Mapping[str, Any]], columns: Mapping[int, int]) -> dict[str, list[int]]:
    links: dict[str, list[int]] = {}
    for gpu in gpus:
        if gpu["nvlink_set"] is not None and gpu["index"] in columns:
            links.setdefault(gpu["nvlink_set"], []).append(gpu["index"])
    return {link: indexes for link, indexes in links.items() if len(indexes) > 1}


def _link(link: str, lefts: Sequence[int], y: int) -> Iterator[str]:
    middles = [left + GPU_WIDTH // 2 for left in lefts]
    yield f'<line class="link" x1="{min(middles)}" y1="{y}" x2="{max(middles)}" y2="{y}"><title>NVLink set {escape(link)}</title></line>'
    for middle in middles:
        yield f'<line class="link" x1="{middle}" y1="{GPU_TOP + GPU_HEIGHT}" x2="{middle}" y2="{y}"/>'
    yield f'<text class="small" x="{min(middles) + 6}" y="{y + 12}">NVLink</text>'
