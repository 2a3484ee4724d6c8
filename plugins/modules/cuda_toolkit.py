#!/usr/bin/python
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cuda_toolkit
short_description: Declares the default CUDA toolkit of a node and proves that it works with the driver
version_added: 0.1.0
description:
  - Chooses one of the toolkits that are installed below C(/usr/local/cuda-X.Y). C(/usr/local/cuda), the loader's path and the login
    shells' environment then lead to it, and stay there when another toolkit is installed.
  - Refuses, before the first change, a toolkit that the installed driver or a GPU of the node cannot run. The rules are the collection's
    table of drivers, minor version compatibility, and the forward compatibility package C(cuda-compat).
  - Afterwards the loader, CUDA's runtime library and the driver's library are asked for their versions. When one of them disagrees,
    the former default is restored.
  - Where the packages registered C(/usr/local/cuda) with update-alternatives, it is set there; otherwise it is a plain link.
author:
  - heterogpu contributors (@heterogpu)
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.changing
requirements:
  - root (C(become=true)).
options:
  version:
    description: The default toolkit, such as V(12.2). Required with O(state=present).
    type: str
  state:
    description:
      - V(present) makes O(version) the default. V(previous) returns to the one before the last change, once.
      - V(absent) removes the module's files and gives the choice back to the packages. Toolkits stay installed.
    type: str
    choices: [present, previous, absent]
    default: present
  declared_driver:
    description: In check mode, the driver version that the run would install; without it the installed one counts.
    type: str
  generation:
    description:
      - Any text that stands for what the default belongs to, such as the list of packages that were installed with it.
        Another one counts as a change that V(previous) undoes, even when the default stayed the same.
    type: str
    default: ""
  planned:
    description: In check mode, releases of toolkits that the run would install, by version, such as C({"12.2":"12.2.2"}).
    type: dict
    default: {}
  planned_forward:
    description: In check mode, whether the run would install the forward compatibility package of the toolkit.
    type: bool
    default: false
  timeout:
    description: Seconds that one call into a library or command may take.
    type: float
    default: 60
  _rules:
    description: Compatibility rules, set by the action plugin.
    type: dict
    default: {}
  _capabilities:
    description: Compute capability by PCI device id, set by the action plugin.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: CUDA 12.2 is the default
  heterogpu.inference.cuda_toolkit:
    version: "12.2"
  become: true

- name: Back to the default before
  heterogpu.inference.cuda_toolkit:
    state: previous
  become: true
"""

RETURN = r"""
steps:
  description: The changes in their order, made or in check mode planned.
  returned: success
  type: list
  elements: dict
  sample: [{action: set_alternative, name: cuda, from: auto, to: /usr/local/cuda-12.2}]
disruptive:
  description: Always V(false). Running programs keep the libraries that they have loaded.
  returned: success
  type: bool
reboot_required:
  description: Always V(false).
  returned: success
  type: bool
version:
  description: The default toolkit.
  returned: unless O(state=absent)
  type: str
release:
  description: Its full version, such as V(12.2.2).
  returned: unless O(state=absent)
  type: str
level:
  description:
    - On which ground it works with the driver. V(full), V(minor_version) for an older driver of the same major version,
      V(forward) with the forward compatibility package, which is then in the loader's path.
  returned: unless O(state=absent)
  type: str
notes:
  description: What an operator should know about this pair of toolkit and driver or GPU, a sentence each.
  returned: unless O(state=absent)
  type: list
  elements: str
proof:
  description: What the libraries said of themselves.
  returned: outside of check mode, unless O(state=absent)
  type: dict
  contains:
    runtime_library:
      description: The file that the loader takes.
      type: str
    runtime_version:
      description: CUDA's number of the runtime, such as V(12020).
      type: int
    driver_version:
      description: The newest CUDA that the driver's library knows, as a number; null without a loaded driver.
      type: int
driver:
  description: The driver by the node's files.
  returned: success
  type: dict
  contains:
    state:
      description: V(ok), V(mismatch), V(not_loaded) or V(absent).
      type: str
    loaded_version:
      description: Version of the loaded kernel module.
      type: str
    installed_version:
      description: Version of the installed library.
      type: str
toolkits:
  description: The installed toolkits.
  returned: success
  type: list
  elements: dict
  contains:
    version:
      description: Such as V(12.2).
      type: str
    release:
      description: Such as V(12.2.2).
      type: str
    path:
      description: Its folder.
      type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_run import Request, run
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError


def argument_spec() -> dict[str, Any]:
    return {
        "version": {"type": "str"},
        "state": {"type": "str", "choices": ["present", "previous", "absent"], "default": "present"},
        "declared_driver": {"type": "str"},
        "generation": {"type": "str", "default": ""},
        "planned": {"type": "dict", "default": {}},
        "planned_forward": {"type": "bool", "default": False},
        "timeout": {"type": "float", "default": 60},
        "_rules": {"type": "dict", "default": {}},
        "_capabilities": {"type": "dict", "default": {}},
    }


def main() -> None:
    module = AnsibleModule(argument_spec(), required_if=[("state", "present", ["version"])], supports_check_mode=True)

    def command(arguments: list[str]) -> tuple[int, str, str]:
        try:
            return module.run_command(arguments, handle_exceptions=False, environ_update={"LC_ALL": "C"})
        except OSError as error:
            return 127, "", f"{arguments[0]} cannot be started: {error.strerror}"

    parameters = module.params
    request = Request(
        state=parameters["state"],
        version=parameters["version"],
        driver=parameters["declared_driver"] or None,
        generation=parameters["generation"],
        planned=parameters["planned"],
        forward=parameters["planned_forward"],
        timeout=parameters["timeout"],
        rules=parameters["_rules"],
        capabilities=parameters["_capabilities"],
    )
    try:
        module.exit_json(**run(request, module.check_mode, command))
    except GpuError as error:
        module.fail_json(msg=str(error), **error.facts)


if __name__ == "__main__":
    main()
