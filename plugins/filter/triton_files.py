# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: triton_files
short_description: Writes the unit files of Triton replicas
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Returns the environment file and the placement drop-in of each replica, for the O(heterogpu.inference.file_set#module:files) option.
options:
  _input:
    description: Replicas from P(heterogpu.inference.triton_replicas#filter).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Lay down the files of all replicas
  heterogpu.inference.file_set:
    files: "{{ resolved | heterogpu.inference.triton_files }}"
"""

RETURN = r"""
_value:
  description: Dictionaries with C(path) and C(content).
  type: list
  elements: dict
"""

from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils._triton_files import files


def triton_files(replicas: list[dict[str, Any]]) -> list[dict[str, str]]:
    return files(replicas)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"triton_files": triton_files}
