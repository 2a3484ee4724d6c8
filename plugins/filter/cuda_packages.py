# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: cuda_packages
short_description: Names the packages of CUDA toolkits and NCCL
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Looks up the packages of a default toolkit, of others beside it, and of the NCCL that belongs to the default.
  - Metapackages that bring a driver are never among them.
options:
  _input:
    description: Version of the default toolkit, such as C(12.2).
    type: str
    required: true
  others:
    description: Versions of toolkits beside it.
    type: list
    elements: str
    default: []
  nccl:
    description: Version of NCCL, such as C(2.18), or a whole Debian version. Empty means the one that was built for the default toolkit.
    type: str
    default: ""
  forward:
    description: Whether to add the forward compatibility packages.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show the packages
  ansible.builtin.debug:
    msg: "{{ '12.2' | heterogpu.inference.cuda_packages(others=['12.6']) }}"
"""

RETURN = r"""
_value:
  description:
    - A dictionary with C(version), C(releases), C(nccl), C(packages), C(closure) and C(conflicts).
    - The last three are what M(heterogpu.inference.package_set) takes.
  type: dict
"""

from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _cuda_packages
from ansible_collections.heterogpu.inference.plugins.plugin_utils._driver_packages import PackageTableError


def cuda_packages(default: Any, *, others: list[Any] | None = None, nccl: Any = "", forward: bool = False) -> dict[str, Any]:
    try:
        return _cuda_packages.cuda_packages(str(default), [str(one) for one in others or []], str(nccl or ""), forward)
    except PackageTableError as error:
        raise AnsibleFilterError(str(error)) from None


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"cuda_packages": cuda_packages}
