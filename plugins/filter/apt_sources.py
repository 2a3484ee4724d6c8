# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: apt_sources
short_description: Writes a package repository as deb822 text
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Turns a repository with its key into the text of a C(.sources) file. An empty repository gives an empty list.
options:
  _input:
    description:
      - Dictionary with C(name), C(uris), C(suites), C(components), C(key), which is armoured text or a path on the node, and C(proxy).
    type: dict
    required: true
  mirror:
    description: Address of a mirror to use instead of the repository's own, such as C(https://mirror.example.com/apt) or C(file:/srv/apt).
    type: str
    default: ""
  as_files:
    description: Return C(path) and C(content), as M(heterogpu.inference.file_set) takes them, instead of C(name) and C(content).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Write the repository of the driver
  heterogpu.inference.file_set:
    files: "{{ gpu_driver_repository | heterogpu.inference.apt_sources(as_files=true) }}"
"""

RETURN = r"""
_value:
  description: At most one dictionary.
  type: list
  elements: dict
"""

from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.heterogpu.inference.plugins.plugin_utils._apt_sources import RepositoryError, deb822


def apt_sources(repository: dict[str, Any], as_files: bool = False, mirror: str = "") -> list[dict[str, str]]:
    if not repository:
        return []
    try:
        source = deb822(repository, mirror)
    except RepositoryError as error:
        raise AnsibleFilterError(str(error)) from None
    if as_files:
        return [{"path": f"/etc/apt/sources.list.d/{source['name']}.sources", "content": source["content"]}]
    return [source]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"apt_sources": apt_sources}
