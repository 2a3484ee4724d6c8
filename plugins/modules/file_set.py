#!/usr/bin/python
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: file_set
short_description: Declares several small files of a node at once
version_added: 0.1.0
description:
  - Writes the files whose content, mode or owner differs and removes the obsolete ones, in one module execution.
  - All new contents are written beside their targets before the first target is replaced, so that a full disk changes nothing.
    When a replacement fails in the middle, the files replaced before are put back.
author:
  - heterogpu contributors (@heterogpu)
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.changing
options:
  files:
    description: The files as they must be. Parent folders are created with mode C(0755).
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path on the node.
        type: path
        required: true
      content:
        description: The whole text of the file.
        type: str
        required: true
      mode:
        description: Permission bits as an octal number in a string.
        type: str
        default: "0644"
      owner:
        description: Name of the owning user.
        type: str
        default: root
      group:
        description: Name of the owning group.
        type: str
        default: root
  trees:
    description: Folders on the controller whose text files become part of O(files). Hidden files and C(__pycache__) are left out.
    type: list
    elements: dict
    default: []
    suboptions:
      source:
        description: Folder on the controller, absolute or relative to the role's C(files).
        type: str
        required: true
      destination:
        description: Absolute path of the folder on the node.
        type: path
        required: true
      mode:
        description: Permission bits of every file below O(trees[].destination).
        type: str
        default: "0644"
  obsolete:
    description:
      - Absolute shell patterns. A regular file that matches one of them and is not declared in O(files) is removed,
        and its folder too when that becomes empty.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Lay down the drop-ins of two replicas and remove those of former ones
  heterogpu.inference.file_set:
    files:
      - path: /etc/systemd/system/triton@chat-0.service.d/10-placement.conf
        content: |
          [Service]
          CPUAffinity=0-15
    obsolete:
      - /etc/systemd/system/triton@*.service.d/10-placement.conf
"""

RETURN = r"""
changed_files:
  description: Paths that were or would be written.
  returned: success
  type: list
  elements: str
removed_files:
  description: Paths that were or would be removed.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils._file_set import FileSetError, WantedFile, apply, plan

_FILE = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str", "required": True},
    "mode": {"type": "str", "default": "0644"},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
}
_TREE = {
    "source": {"type": "str", "required": True},
    "destination": {"type": "path", "required": True},
    "mode": {"type": "str", "default": "0644"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "options": _FILE, "default": []},
            "trees": {"type": "list", "elements": "dict", "options": _TREE, "default": []},
            "obsolete": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        wanted = [WantedFile.from_options(options) for options in module.params["files"]]
        steps = plan(wanted, module.params["obsolete"])
        if not module.check_mode:
            apply(steps)
    except FileSetError as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=bool(steps),
        changed_files=[step.path for step in steps if step.after is not None],
        removed_files=[step.path for step in steps if step.after is None],
        diff=[step.diff() for step in steps],
    )


if __name__ == "__main__":
    main()
