# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries out a plan of container_toolkit, or undoes it. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.heterogpu.inference.plugins.module_utils import _file_set
from ansible_collections.heterogpu.inference.plugins.module_utils._container_plan import Units
from ansible_collections.heterogpu.inference.plugins.module_utils._container_state import UNITS, Run, unit
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed

REFRESH = UNITS[1]


class Change:
    """Files and units as one change: all of it or none."""

    def __init__(self, run: Run, files: Sequence[_file_set.Step], units: Units) -> None:
        self._run = run
        self._files = files
        self._units = units
        self._written = False
        self._enabled: list[str] = []

    def apply(self) -> None:
        try:
            _file_set.apply(self._files)
            self._written = True
            if self._units.reload:
                self._systemctl("daemon-reload")
            for name in self._units.enable:
                self._systemctl("enable", name)
                self._enabled.append(name)
            for name in self._units.restart:
                self._systemctl("restart", name)
            if self._units.refresh:
                self._systemctl("restart", REFRESH)
            self._restart_containerd()
        except (ApplyFailed, _file_set.FileSetError) as error:
            self.undo(str(error))

    def undo(self, reason: str) -> None:
        """Put everything back and raise: the message tells which state stands."""
        left = []
        for work in (self._undo_units, self._undo_files):
            try:
                work()
            except (ApplyFailed, _file_set.FileSetError) as error:
                left.append(str(error))
        stands = "the former configuration stands again" if not left else "and it could not be undone: " + " ".join(left)
        raise ApplyFailed(f"{reason.rstrip('.')}; {stands}.")

    def _undo_units(self) -> None:
        for name in self._enabled:
            self._systemctl("disable", name)

    def _undo_files(self) -> None:
        if self._written:
            _file_set.apply(_file_set.back(self._files))
            self._systemctl("daemon-reload")
            self._restart_containerd()

    def _restart_containerd(self) -> None:
        # Containers run on; what is not running reads its configuration when it starts.
        if self._units.containerd and unit(self._run, "containerd.service").active:
            self._systemctl("restart", "containerd.service")

    def _systemctl(self, *arguments: str) -> None:
        status, _output, errors = self._run(["systemctl", *arguments])
        if status != 0:
            text = " ".join(errors.split()) or "without a message"
            raise ApplyFailed(f"The command systemctl {' '.join(arguments)} ended with status {status}: {text}")
