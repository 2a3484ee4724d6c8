# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of container_toolkit: hands the compatibility table of the collection to the node."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.heterogpu.inference.plugins.plugin_utils._container_rules import rules


class ActionModule(ActionBase):
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        result.update(self._execute_module(module_args={**self._task.args, "_rules": rules()}, task_vars=task_vars))
        result.get("invocation", {}).get("module_args", {}).pop("_rules", None)
        return result
