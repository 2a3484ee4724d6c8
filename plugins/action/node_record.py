# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of node_record: says which run asks, and whether the run that holds the lease still lives."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = {**self._task.args, "_owner": this_run()}
        done = self._execute_module("heterogpu.inference.node_record", arguments, task_vars=task_vars)
        holder = done.get("holder") or {}
        if done.get("failed") and holder and not alive(holder):
            done = self._execute_module("heterogpu.inference.node_record", {**arguments, "_dead": [holder["id"]]}, task_vars=task_vars)
        return result | done


def this_run() -> dict[str, Any]:
    """The process of ansible-playbook; its workers are children of it."""
    pid = os.getppid()
    host, boot = socket.gethostname(), _boot()
    return {"id": f"{host}/{boot}/{pid}/{_started(pid)}", "user": getpass.getuser(), "host": host, "boot": boot, "pid": pid}


def alive(holder: dict[str, Any]) -> bool:
    """Whether the run may still be going on. Of a run on another controller nobody here can tell."""
    if holder.get("host") != socket.gethostname():
        return True
    if holder.get("boot") != _boot():
        return False
    pid = holder.get("pid")
    return holder.get("id") == f"{holder['host']}/{holder['boot']}/{pid}/{_started(pid)}"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _started(pid: Any) -> str:
    """When the process started, in clock ticks after boot; empty when it is gone. A pid alone may be another process by now."""
    try:
        text = Path(f"/proc/{int(pid)}/stat").read_text(encoding="utf-8", errors="replace")
    except (OSError, TypeError, ValueError):
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
