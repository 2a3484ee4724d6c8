# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: container_toolkit_packages
short_description: Names the packages of NVIDIA's container toolkit
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Looks up what makes up a version of the container toolkit.
options:
  _input:
    description: The version, such as C(1.20.2). Empty means the one that the collection was tested with.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show the packages
  ansible.builtin.debug:
    msg: "{{ '1.20.2' | heterogpu.inference.container_toolkit_packages }}"
"""

RETURN = r"""
_value:
  description:
    - A dictionary with C(version), C(packages) and C(closure).
    - The last two are what M(heterogpu.inference.package_set) takes.
  type: dict
"""

from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils import _cuda_packages


def container_toolkit_packages(version: Any) -> dict[str, Any]:
    return _cuda_packages.container_toolkit_packages(str(version or ""))


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"container_toolkit_packages": container_toolkit_packages}
