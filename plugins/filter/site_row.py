# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: site_row
short_description: Shortens what was done on a node to one table row
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Counts packages, GPUs and units, for P(heterogpu.inference.text_table#filter).
options:
  _input:
    description: Dictionary with C(node), C(packages), C(geometry), C(units), C(stopped_units) and C(reboot_required).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show one row
  ansible.builtin.debug:
    msg: "{{ [site_changes | heterogpu.inference.site_row] | heterogpu.inference.text_table(['node', 'packages', 'geometry']) }}"
"""

RETURN = r"""
_value:
  description: The row.
  type: dict
"""

from typing import Any


def site_row(changes: dict[str, Any]) -> dict[str, str]:
    units = [_count(changes["units"], "unit", "started")] if changes["units"] else []
    units += [_count(changes["stopped_units"], "unit", "stopped")] if changes["stopped_units"] else []
    return {
        "node": changes["node"],
        "packages": _count(changes["packages"], "package", "installed"),
        "geometry": _count(changes["geometry"], "GPU", "changed"),
        "units": ", ".join(units) or "-",
        "reboot_required": "yes" if changes["reboot_required"] else "no",
    }


def _count(things: Any, noun: str, verb: str) -> str:
    if not things:
        return "-"
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'} {verb}"


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"site_row": site_row}
