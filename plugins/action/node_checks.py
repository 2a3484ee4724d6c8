# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of node_checks: compares the clocks."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.heterogpu.inference.plugins.plugin_utils._clock import skew


class ActionModule(ActionBase):
    _requires_connection = True
    _supports_check_mode = True
    _supports_diff = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        before = time.time()
        result.update(self._execute_module(module_args=self._task.args, task_vars=task_vars))
        after = time.time()
        clock = result.get("node_checks", {}).get("clock")
        if clock is not None:
            clock["skew_s"] = skew(before, clock.pop("now"), after)
        return result
