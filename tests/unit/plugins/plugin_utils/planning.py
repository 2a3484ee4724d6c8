# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the planner on raw variables, for tests."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils import _catalog, _document, _inventory, _planner, _sticky

ROOT = Path(_catalog.__file__).parents[2]


@functools.cache
def catalog() -> _catalog.Catalog:
    return _catalog.load(ROOT / "data")


def inventory(hosts: Mapping[str, Mapping[str, Any]], groups: Mapping[str, tuple[str, ...]], where: Any = _inventory.nowhere) -> Any:
    cluster = next(iter(hosts.values()))
    return _inventory.load([_inventory.Host(name, groups[name], variables) for name, variables in hosts.items()], cluster, catalog(), where)


def plan(
    hosts: Mapping[str, Mapping[str, Any]],
    groups: Mapping[str, tuple[str, ...]],
    previous: Mapping[str, Any] | None = None,
    limited: list[str] | None = None,
) -> _planner.Plan:
    return _planner.make_plan(inventory(hosts, groups), catalog(), _sticky.read(previous, {}) if previous else None, limited)


def text(made: _planner.Plan) -> str:
    return _document.render(made.document)
