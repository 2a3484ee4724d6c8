# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries the controller's pynvml to modules that use NVML. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import base64
import functools
import importlib.util
import zlib
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


@functools.lru_cache(maxsize=1)
def packed_pynvml() -> str:
    """The source of the installed nvidia-ml-py: about 65 KiB as text. It is found, not imported: the controller has no driver."""
    found = importlib.util.find_spec("pynvml")
    if found is None or not found.origin:
        raise AnsibleActionFail(
            "The controller's Python has no pynvml; install the package nvidia-ml-py there (see requirements.txt of the collection)."
        )
    return base64.b64encode(zlib.compress(Path(found.origin).read_bytes(), 9)).decode()


class NvmlAction(ActionBase):
    """Runs the module of the same name with pynvml in its arguments."""

    _supports_check_mode = True
    _supports_diff = True

    def extra_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """What else the controller knows and the node needs."""
        return {}

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        carried = {"_nvml_source": packed_pynvml(), **self.extra_arguments(self._task.args)}
        result.update(self._execute_module(module_args={**self._task.args, **carried}, task_vars=task_vars))
        # What the controller carries is no input of the task and would fill every verbose log.
        shown = result.get("invocation", {}).get("module_args", {})
        for name in carried:
            shown.pop(name, None)
        return result
