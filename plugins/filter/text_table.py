# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: text_table
short_description: Lays out dictionaries as lines of a table
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Returns a heading, a rule and one line per row, with columns as wide as their widest cell.
options:
  _input:
    description: The rows.
    type: list
    elements: dict
    required: true
  columns:
    description: Keys to show, in this order.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Show two rows
  ansible.builtin.debug:
    msg: "{{ [{'node': 'a', 'gpu': 0}, {'node': 'b', 'gpu': 1}] | heterogpu.inference.text_table(['node', 'gpu']) }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""

from typing import Any


def text_table(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    cells = [[column.replace("_", " ") for column in columns]]
    cells += [[_text(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(item) for item in value) or "-"
    return str(value)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"text_table": text_table}
