# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of file_set: read the declared trees and hand their texts to the module in the same execution."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        files = list(arguments.get("files") or [])
        for tree in arguments.pop("trees", None) or []:
            files.extend(self._files_of(tree))
        arguments["files"] = files
        result.update(self._execute_module(module_args=arguments, task_vars=task_vars))
        return result

    def _files_of(self, tree: dict[str, Any]) -> Iterator[dict[str, str]]:
        try:
            source = self._find_needle("files", tree["source"])
        except AnsibleError:
            raise AnsibleActionFail(f"The folder {tree['source']!r} does not exist on the controller; correct trees[].source.") from None
        for folder, folders, names in os.walk(source):
            folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
            for name in sorted(name for name in names if not name.startswith(".")):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as stream:
                    content = stream.read()
                target = os.path.join(tree["destination"], os.path.relpath(path, source))
                yield {"path": target, "content": content, "mode": tree.get("mode", "0644")}
