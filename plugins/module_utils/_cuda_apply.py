# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries out a plan of cuda_toolkit, or undoes it. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ansible_collections.heterogpu.inference.plugins.module_utils import _file_set
from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_plan import Step
from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_state import Run
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed


class Change:
    """Links, files and the loader's cache as one change: all of it or none."""

    def __init__(self, run: Run, links: Sequence[Step], files: Sequence[_file_set.Step], refresh: bool) -> None:
        self._run = run
        self._links = links
        self._files = files
        self._refresh = refresh
        self._done: list[Step] = []
        self._files_done = False

    def apply(self) -> None:
        try:
            for step in self._links:
                self._do(step)
                self._done.append(step)
            _file_set.apply(self._files)
            self._files_done = True
            if self._refresh:
                self._command(["ldconfig"])
        except (OSError, ApplyFailed, _file_set.FileSetError) as error:
            self.undo(str(error))

    def undo(self, reason: str) -> None:
        """Put everything back and raise: the message tells which state stands."""
        left = []
        for step in reversed(self._done):
            try:
                self._undo(step)
            except (OSError, ApplyFailed) as error:
                left.append(str(error))
        try:
            if self._files_done:
                _file_set.apply(_file_set.back(self._files))
            if self._refresh:
                self._command(["ldconfig"])
        except (OSError, ApplyFailed, _file_set.FileSetError) as error:
            left.append(str(error))
        stands = "the former default toolkit stands again" if not left else "and it could not be undone: " + " ".join(left)
        raise ApplyFailed(f"{reason.rstrip('.')}; {stands}.")

    def _do(self, step: Step) -> None:
        if step.action == "set_alternative":
            self._command(["update-alternatives", "--set", step.name, step.to])
        elif step.action == "free_alternative":
            self._command(["update-alternatives", "--auto", step.name])
        elif step.action == "remove_link":
            os.unlink(step.name)
        else:
            _link(step.name, step.to)

    def _undo(self, step: Step) -> None:
        if step.action in ("replace_link", "remove_link"):
            if step.before:
                _link(step.name, step.before)
            else:
                os.unlink(step.name)
        elif step.before == "auto":
            self._command(["update-alternatives", "--auto", step.name])
        elif step.before:
            self._command(["update-alternatives", "--set", step.name, step.before])

    def _command(self, command: list[str]) -> None:
        status, output, errors = self._run(command)
        if status != 0:
            text = " ".join((errors or output).split()) or "without a message"
            raise ApplyFailed(f"The command {' '.join(command)} ended with status {status}: {text}")


def _link(name: str, target: str) -> None:
    """Replace a link in one step, so that no program meets a gap."""
    temporary = f"{name}.heterogpu"
    if os.path.lexists(temporary):
        os.unlink(temporary)
    os.symlink(target, temporary)
    os.replace(temporary, name)
