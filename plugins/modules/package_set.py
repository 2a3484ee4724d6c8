#!/usr/bin/python
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: package_set
short_description: Keeps packages that belong together at exact versions, and can return to the former ones
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Installs exact versions, pins the whole closure in apt's preferences and holds what of it is installed, so that neither a rerun nor
    unattended upgrades move a part of it.
  - Everything is resolved and downloaded before the first change. What cannot be resolved, would remove foreign packages or would move
    packages that somebody else holds is refused. When the change fails, the former versions are put back.
  - The package files of the current and of the former set stay on the node, so that O(state=previous) needs no repository.
  - An interrupted installation is finished first, and apt's lock is awaited. When all is right, no repository is contacted.
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.changing
requirements:
  - apt 2.0 or later on the node.
  - root (C(become=true)).
options:
  name:
    description: Name of the set, part of the names of its preferences file and of its record below C(/var/lib/heterogpu/packages).
    type: str
    required: true
  packages:
    description: What must be installed, as C(name=version), or C(name) where the version does not matter.
    type: list
    elements: str
    default: []
  closure:
    description:
      - All that belongs together, as C(name=version). It is pinned, and what of it is installed has that version and is held.
      - Empty means O(packages).
    type: list
    elements: str
    default: []
  keep:
    description:
      - Shell patterns of other packages that stay in the version that is installed, such as those of the kernel.
        They are pinned and held too.
    type: list
    elements: str
    default: []
  replaces:
    description:
      - Shell patterns of packages that must not be there beside the set, such as another flavour of it. They are removed in the same step.
    type: list
    elements: str
    default: []
  conflicts:
    description: Shell patterns of packages that must not be there and are not removed. One that is installed is a refusal.
    type: list
    elements: str
    default: []
  repositories:
    description: Repositories of the set, each as a file of deb822 text below C(/etc/apt/sources.list.d).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the file, without C(.sources).
        type: str
        required: true
      content:
        description: The text of the file, with the key in C(Signed-By).
        type: str
        required: true
      proxy:
        description: Proxy for the hosts of this repository, or V(DIRECT) for none although the node has one.
        type: str
        default: ""
  state:
    description:
      - V(present) brings the declared set. V(absent) removes its packages whatever their version, its holds, pins, sources and record.
      - V(released) removes the same without the packages, which stay as they are.
      - V(previous) returns to the set before the last success, once.
    type: str
    choices: [present, absent, released, previous]
    default: present
  lock_timeout:
    description: Seconds to wait for another program that uses apt or dpkg.
    type: int
    default: 300
  timeout:
    description: Seconds that one call of apt may take. Building kernel modules is a part of it.
    type: int
    default: 900
"""

EXAMPLES = r"""
- name: Keep NCCL at one version
  heterogpu.inference.package_set:
    name: nccl
    packages: [libnccl2=2.18.5-1+cuda12.2, libnccl-dev=2.18.5-1+cuda12.2]
  become: true

- name: Return to what was there before
  heterogpu.inference.package_set:
    name: nccl
    state: previous
  become: true
"""

RETURN = r"""
steps:
  description: What was done in its order, or in check mode would be.
  returned: success
  type: list
  elements: dict
  sample: [{action: install, package: libnccl2, from: null, to: 2.18.5-1+cuda12.2}]
disruptive:
  description: Whether an installed package changes or goes.
  returned: success
  type: bool
reboot_required:
  description: Whether packages of the node ask for a reboot in C(/run/reboot-required).
  returned: success
  type: bool
install:
  description: Packages that are installed or change, dependencies included.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the package.
      type: str
    version:
      description: The new version.
      type: str
    installed_version:
      description: The former version, or null.
      type: str
remove:
  description: Packages that are removed.
  returned: success
  type: list
  elements: str
held:
  description: Packages that are held.
  returned: success
  type: list
  elements: str
problems:
  description: One sentence for everything that stands in the way. The module fails unless it is empty.
  returned: always, but for errors of the tools
  type: list
  elements: str
record:
  description:
    - The C(current) and the C(previous) set, each null or with its C(packages) as C(name=version) and the names whose files are C(kept).
  returned: success
  type: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError
from ansible_collections.heterogpu.inference.plugins.module_utils._package_goal import Request
from ansible_collections.heterogpu.inference.plugins.module_utils._package_plan import Wanted
from ansible_collections.heterogpu.inference.plugins.module_utils._package_run import run

_LISTS = ("packages", "closure", "keep", "replaces", "conflicts")


def argument_spec() -> dict[str, Any]:
    repository = {
        "name": {"type": "str", "required": True},
        "content": {"type": "str", "required": True},
        "proxy": {"type": "str", "default": ""},
    }
    return {
        "name": {"type": "str", "required": True},
        **{name: {"type": "list", "elements": "str", "default": []} for name in _LISTS},
        "repositories": {"type": "list", "elements": "dict", "options": repository, "default": []},
        "state": {"type": "str", "choices": ["present", "absent", "released", "previous"], "default": "present"},
        "lock_timeout": {"type": "int", "default": 300},
        "timeout": {"type": "int", "default": 900},
    }


def main() -> None:
    module = AnsibleModule(argument_spec(), supports_check_mode=True)
    parameters = module.params
    request = Request(
        name=parameters["name"],
        state=parameters["state"],
        wanted=Wanted(**{name: parameters[name] for name in _LISTS}),
        repositories=parameters["repositories"],
        lock_timeout=parameters["lock_timeout"],
        timeout=parameters["timeout"],
    )
    try:
        module.exit_json(**run(request, module.check_mode))
    except GpuError as error:
        module.fail_json(msg=str(error), **error.facts)


if __name__ == "__main__":
    main()
