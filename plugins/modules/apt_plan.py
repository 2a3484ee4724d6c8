#!/usr/bin/python
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: apt_plan
short_description: Says what apt would install from a repository that the node does not have yet
version_added: 0.1.0
description:
  - Resolves packages and their dependencies with the node's own apt and package database, in a private folder that is removed afterwards.
    The node's sources, lists and packages stay as they are, in check mode and outside of it.
  - When every package is installed in the wanted version, no repository is contacted.
  - Also compares the free space of file systems with what the packages and other declared consumers need.
author:
  - heterogpu contributors (@heterogpu)
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.info
options:
  packages:
    description: What must be installed, as C(name=version) or C(name).
    type: list
    elements: str
    default: []
  repositories:
    description: Repositories to use besides the node's own sources, each as a file of deb822 text.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the file below C(sources.list.d), without C(.sources).
        type: str
        required: true
      content:
        description: The text of the deb822 file, with the key in C(Signed-By).
        type: str
        required: true
      proxy:
        description: Proxy for the hosts of this repository.
        type: str
        default: ""
  preferences:
    description: Text of an apt preferences file to respect besides the node's own.
    type: str
    default: ""
  change_held:
    description: Whether packages that are held may change, because it is their owner who asks.
    type: bool
    default: false
  space:
    description: File systems that something else than apt is going to fill.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: A path on the file system; it need not exist yet.
        type: path
        required: true
      mib:
        description: Space that is needed there, in MiB.
        type: int
        required: true
  timeout:
    description: Seconds that one call of apt may take.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Ask whether the driver can be installed at all
  heterogpu.inference.apt_plan:
    packages:
      - nvidia-headless-580-server=580.95.05-0ubuntu0.22.04.1
    repositories:
      - name: gpu-mirror
        content: |
          Types: deb
          URIs: https://mirror.example.com/ubuntu
          Suites: jammy
          Components: main
          Signed-By: /usr/share/keyrings/mirror.gpg
"""

RETURN = r"""
install:
  description: Packages that apt would install or change, dependencies included, in apt's order.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the package.
      type: str
    version:
      description: Version that would be installed.
      type: str
    installed_version:
      description: Version that is installed now, or null.
      type: str
remove:
  description: Names of the packages that apt would remove.
  returned: success
  type: list
  elements: str
problems:
  description: One sentence for everything that stands in the way; empty when the packages can be installed.
  returned: success
  type: list
  elements: str
space:
  description: Needed and free space per file system, in MiB.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: Mount point.
      type: str
    needed_mib:
      description: Sum of all needs there.
      type: int
    free_mib:
      description: Space that root can still write.
      type: int
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils._apt_plan import Apt, AptRequest, resolve
from ansible_collections.heterogpu.inference.plugins.module_utils._free_space import SpaceNeed, compare
from ansible_collections.heterogpu.inference.plugins.module_utils._package_files import proxy_options

_REPOSITORY = {
    "name": {"type": "str", "required": True},
    "content": {"type": "str", "required": True},
    "proxy": {"type": "str", "default": ""},
}
_SPACE = {
    "path": {"type": "path", "required": True},
    "mib": {"type": "int", "required": True},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "list", "elements": "str", "default": []},
            "repositories": {"type": "list", "elements": "dict", "options": _REPOSITORY, "default": []},
            "preferences": {"type": "str", "default": ""},
            "change_held": {"type": "bool", "default": False},
            "space": {"type": "list", "elements": "dict", "options": _SPACE, "default": []},
            "timeout": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    parameters = module.params
    request = AptRequest(
        packages=parameters["packages"],
        repositories={entry["name"]: entry["content"] for entry in parameters["repositories"]},
        preferences=parameters["preferences"],
        options=proxy_options(parameters["repositories"]),
        change_held=parameters["change_held"],
    )
    plan = resolve(request, Apt(parameters["timeout"]))
    needs = [SpaceNeed(entry["path"], entry["mib"]) for entry in parameters["space"]]
    needs += [SpaceNeed("/usr", plan.installed_mib), SpaceNeed("/var/cache/apt/archives", plan.download_mib)]
    module.exit_json(
        changed=False,
        install=[change.as_dict() for change in plan.install],
        remove=plan.remove,
        problems=plan.problems,
        space=[filesystem.as_dict() for filesystem in compare(needs)],
    )


if __name__ == "__main__":
    main()
