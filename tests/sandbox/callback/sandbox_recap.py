# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what a playbook run did to each host as JSON, so that a second run's "nothing changed" is read and not parsed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: sandbox_recap
type: aggregate
short_description: Writes the recap of a run as JSON
description: Writes the counts of each host, and the names of the tasks that changed it, to the file that the environment names.
options:
  path:
    description: File to write.
    required: true
    type: path
    env:
      - name: SANDBOX_RECAP
"""


class CallbackModule(CallbackBase):
    """Collects the changed tasks by host; writes at the end of the run."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "sandbox_recap"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._changed: dict[str, list[str]] = {}

    def v2_runner_on_ok(self, result: Any) -> None:
        if result.is_changed():
            self._changed.setdefault(self.host_name(result), []).append(result.task_name)

    @staticmethod
    def host_name(result: Any) -> str:
        """The host's name under every supported ansible-core."""
        host = getattr(result, "host", None) or result._host
        return str(host.get_name())

    def v2_playbook_on_stats(self, stats: Any) -> None:
        hosts = {host: {**stats.summarize(host), "changed_tasks": self._changed.get(host, [])} for host in sorted(stats.processed)}
        path = Path(os.environ["SANDBOX_RECAP"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(hosts, indent=1) + "\n", encoding="utf-8")
