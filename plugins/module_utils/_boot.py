# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a node's GPUs to their declared state at boot. PRIVATE: internal to the collection, may change at any time.

A program on the node, started by heterogpu-gpu.service: python3 -m ansible_collections.heterogpu.inference.plugins.module_utils._boot
It does what the modules do, with their code, and writes the map of devices. What fails does not keep the rest from being tried;
each failure is one sentence in the journal, and the exit code says that there was one.
"""

from __future__ import annotations

# A program that a unit starts: it has no module to call.
# pylint: disable=ansible-bad-function
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import (
    _bounded,
    _device_files,
    _devices,
    _mig_run,
    _mig_steps,
    _nvml,
    _settings_run,
)
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import DriverUnavailable, GpuError, InvalidInput

DECLARATION = "/etc/heterogpu/boot.json"
KNOWLEDGE = "/usr/local/lib/heterogpu/knowledge.json"
VERSION = 1
# The unit is ordered after these, so that it may wait for their start.
ORDERED_BEFORE = ("nvidia-persistenced", "nvidia-persistenced.service", "nvidia-fabricmanager", "nvidia-fabricmanager.service")
RETRY_S = 1.0
RESET_TIMEOUT_S = 120.0


def main() -> int:
    try:
        declaration, knowledge = _load(DECLARATION), _load(KNOWLEDGE)
        if declaration.get("version") != VERSION:
            raise InvalidInput(f"{DECLARATION} is not of version {VERSION}; run the role mig of this node again.")
        return Boot(declaration, knowledge).run()
    except GpuError as error:
        return _fail(str(error))


def _load(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as stream:
            document = json.load(stream)
        if not isinstance(document, dict):
            raise ValueError("no object")
        return document
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}); run the role mig of this node again.") from None


def _fail(sentence: str) -> int:
    print(sentence, file=sys.stderr, flush=True)
    return 1


def _say(text: str) -> None:
    print(text, flush=True)


class Boot:
    def __init__(self, declaration: dict[str, Any], knowledge: dict[str, Any]) -> None:
        self.declaration = declaration
        self.nvml_source = knowledge.get("pynvml")
        self.tables = knowledge.get("profile_tables") or {}
        self.timeout = float(declaration.get("timeout", 60.0))
        self.failures = 0
        self.driver_answers = False

    def run(self) -> int:
        self._try(self._await_driver)
        if not self.driver_answers:
            return 1
        for step in (self._geometry, self._settings, self._device_files, self._map, self._cdi):
            self._try(step)
        return 1 if self.failures else 0

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except GpuError as error:
            self.failures += 1
            _fail(str(error))
        except OSError as error:
            self.failures += 1
            _fail(f"A file cannot be written ({error}); free space or repair the file system, and run `systemctl restart heterogpu-gpu`.")
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            self.failures += 1
            _fail(f"{DECLARATION} is not as the role mig writes it ({type(error).__name__}: {error}); run the role of this node again.")

    def _await_driver(self) -> None:
        """Bounded, and only for what time can mend: a module that is not loaded yet, a GPU that is not there yet."""
        wanted = {entry["gpus"] for name in ("geometry", "settings") for entry in self.declaration[name]}
        limit = float(self.declaration.get("driver_timeout", 120.0))
        deadline = time.monotonic() + limit
        said = False
        while True:
            try:
                missing = wanted - set(_bounded.call(self._addresses, self.timeout, "was waiting for the driver"))
                self.driver_answers = True
                if not missing or time.monotonic() >= deadline:
                    return  # the selection that names a missing GPU says so
                reason = f"GPU {min(missing)} does not answer yet"
            except DriverUnavailable as error:
                if error.state not in ("absent", "not_loaded", "unusable"):
                    raise
                if time.monotonic() >= deadline:
                    raise GpuError(f"{error} The boot waited {limit:g} s for it.") from None
                reason = str(error)
            if not said:
                _say(f"Waiting up to {limit:g} s for the driver: {reason}")
                said = True
            time.sleep(RETRY_S)

    def _addresses(self, report: _bounded.Report) -> list[str]:
        nvml = _nvml.load(self.nvml_source)
        with _nvml.Session(nvml):
            return [_nvml.pci_address(nvml, device) for _index, device in _nvml.devices(nvml) if device is not None]

    def _request(self, geometry: list[dict[str, Any]]) -> _mig_run.Request:
        return _mig_run.Request(
            geometry,
            allow_empty=True,
            timeout=self.timeout,
            nvml_source=self.nvml_source,
            tables=self.tables,
            paused_services=list(self.declaration.get("paused_services") or []),
            awaited_services=ORDERED_BEFORE,
        )

    def _geometry(self) -> None:
        result = _mig_run.run(self._request(self.declaration["geometry"]), False, reset_gpu)
        for step in result["steps"]:
            _say(f"Done: {_mig_steps.describe(step)}")
        if result["reboot_required"]:
            raise GpuError("A MIG mode is pending and becomes current only with another boot of this node.")

    def _settings(self) -> None:
        result = _settings_run.run(_settings_run.Request(self.declaration["settings"], self.timeout, self.nvml_source), False)
        for step in result["steps"]:
            _say(f"Done: set {step['setting']} of {step['gpu']} from {step['before']} to {step['after']}")

    def _device_files(self) -> None:
        for path in _device_files.make():
            _say(f"Done: make {path}")

    def _map(self) -> None:
        """What stands, whatever was declared: a service whose device exists can start."""
        result = _mig_run.run(self._request([]), True, reset_gpu)
        if _devices.write(_devices.of(result["gpus"])):
            _say(f"Done: write {_devices.PATH}")

    def _cdi(self) -> None:
        _device_files.refresh_cdi()


def reset_gpu(pci_address: str) -> tuple[int, str]:
    """NVML has no call that resets a GPU."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--gpu-reset", "-i", pci_address], capture_output=True, text=True, timeout=RESET_TIMEOUT_S, check=False
        )
    except OSError as error:
        return 127, f"nvidia-smi cannot be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        return 124, f"nvidia-smi did not end within {RESET_TIMEOUT_S:g} s"
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
