#!/usr/bin/python
# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: container_toolkit
short_description: Declares how containers of a node reach its GPUs
version_added: 0.1.0
description:
  - Keeps the CDI specification of the GPUs and MIG instances in step with the hardware. The toolkit's own units write it at boot and after
    a new driver, and, by this module, after every change of the geometry too.
  - Gives podman CDI names where it reads the specification, else NVIDIA's OCI runtime. A pair of podman and toolkit for which neither
    works is refused before the first change. Where podman only stumbles over additional groups of devices, these are left out.
  - Adds the runtime C(nvidia) to containerd by a drop-in, which a RuntimeClass can name. The main configuration is never written.
author:
  - heterogpu contributors (@heterogpu)
extends_documentation_fragment:
  - heterogpu.inference._attributes
  - heterogpu.inference._attributes.changing
requirements:
  - The package nvidia-container-toolkit 1.18 or later, and a loaded NVIDIA driver.
  - root (C(become=true)).
options:
  state:
    description: V(absent) removes the module's files and the specification. Packages and their units stay.
    type: str
    choices: [present, absent]
    default: present
  podman:
    description:
      - How containers of podman reach GPUs. V(auto) prefers CDI names and takes NVIDIA's OCI runtime where podman cannot read them.
      - V(ignore) leaves podman alone and does not check it.
    type: str
    choices: [auto, cdi, runtime, ignore]
    default: auto
  containerd:
    description: V(auto) adds the drop-in where containerd is installed.
    type: str
    choices: [auto, ignore]
    default: auto
  declared_toolkit:
    description: In check mode on a node without the toolkit, the version that the run would install.
    type: str
  timeout:
    description: Seconds that describing the GPUs may take; the driver may hang.
    type: float
    default: 60
  _rules:
    description: Compatibility table, set by the action plugin.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Let containers reach the GPUs
  heterogpu.inference.container_toolkit:
  become: true
"""

RETURN = r"""
steps:
  description: The changes in their order, made or in check mode planned.
  returned: success
  type: list
  elements: dict
  sample: [{action: refresh_specification, name: /var/run/cdi/nvidia.yaml}]
disruptive:
  description: Whether containers that use GPUs could not start again; only with O(state=absent). Running ones run on in any case.
  returned: success
  type: bool
reboot_required:
  description: Always V(false).
  returned: success
  type: bool
toolkit_version:
  description: Version of the toolkit.
  returned: when O(state=present)
  type: str
podman:
  description: Podman on this node.
  returned: when O(state=present)
  type: dict
  contains:
    version:
      description: Its version, or null.
      type: str
    way:
      description: V(cdi), V(runtime), or V(none) without podman.
      type: str
    readable:
      description: The newest CDI specification that it reads, when V(cdi) is the way.
      type: str
containerd:
  description: Whether containerd has the runtime C(nvidia).
  returned: when O(state=present)
  type: bool
specification:
  description: The CDI specification.
  returned: when O(state=present)
  type: dict
  contains:
    path:
      description: The file.
      type: str
    version:
      description: Its version, null while there is no driver.
      type: str
notes:
  description: What an operator should look at, a sentence each.
  returned: when O(state=present)
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.heterogpu.inference.plugins.module_utils._container_run import Request, run
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError


def argument_spec() -> dict[str, Any]:
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "podman": {"type": "str", "choices": ["auto", "cdi", "runtime", "ignore"], "default": "auto"},
        "containerd": {"type": "str", "choices": ["auto", "ignore"], "default": "auto"},
        "declared_toolkit": {"type": "str"},
        "timeout": {"type": "float", "default": 60},
        "_rules": {"type": "dict", "default": {}},
    }


def main() -> None:
    module = AnsibleModule(argument_spec(), supports_check_mode=True)

    def command(arguments: list[str]) -> tuple[int, str, str]:
        try:
            return module.run_command(arguments, handle_exceptions=False, environ_update={"LC_ALL": "C"})
        except OSError as error:
            return 127, "", f"{arguments[0]} cannot be started: {error.strerror}"

    parameters = module.params
    request = Request(
        state=parameters["state"],
        podman=parameters["podman"],
        containerd=parameters["containerd"],
        declared=parameters["declared_toolkit"] or None,
        timeout=parameters["timeout"],
        rules=parameters["_rules"],
    )
    try:
        module.exit_json(**run(request, module.check_mode, command))
    except GpuError as error:
        module.fail_json(msg=str(error), **error.facts)


if __name__ == "__main__":
    main()
