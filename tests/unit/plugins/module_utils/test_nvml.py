# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVML through carried bindings: one failed fact is one null, not a failed GPU."""

from __future__ import annotations

import base64
import sys
import zlib
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _nvml
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import DriverUnavailable, InvalidInput

CODES = {"SUCCESS": 0, "NOT_SUPPORTED": 3, "NO_PERMISSION": 4, "DRIVER_NOT_LOADED": 9, "LIBRARY_NOT_FOUND": 12, "FUNCTION_NOT_FOUND": 13}
CODES |= {"GPU_IS_LOST": 15, "LIB_RM_VERSION_MISMATCH": 18, "IN_USE": 19, "UNKNOWN": 999}


class Error(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.value = CODES.get(name, 77)


def fails(name: str) -> Any:
    def call(*arguments: Any) -> None:
        raise Error(name)

    return call


def nvml(**functions: Any) -> Any:
    return SimpleNamespaceByIdentity(NVMLError=Error, **{f"NVML_ERROR_{name}": code for name, code in CODES.items()}, **functions)


class SimpleNamespaceByIdentity(SimpleNamespace):
    """Modules can be keys of a cache; plain namespaces cannot."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def pack(source: str) -> str:
    return base64.b64encode(zlib.compress(source.encode())).decode()


def test_carried_source_becomes_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    # As pynvml does: it looks itself up while it is imported.
    module = _nvml.load(pack("import sys\nanswer = 42\nsys.modules[__name__].found = answer\n"))
    assert module.found == 42 and sys.modules["pynvml"] is module and _nvml.load(pack("")) is module


def test_without_source_and_without_pynvml_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # an import of it fails
    with pytest.raises(InvalidInput, match="install nvidia-ml-py on the controller"):
        _nvml.load(None)


def test_errors_have_their_documented_names() -> None:
    fake = nvml()
    assert _nvml.error_name(fake, Error("IN_USE")) == "IN_USE"
    assert _nvml.error_name(fake, Error("of the future")) == "code 77"
    assert _nvml.error_name(fake, ValueError("no code")) == "code None"


@pytest.mark.parametrize("name", ["NOT_SUPPORTED", "NO_PERMISSION", "FUNCTION_NOT_FOUND"])
def test_what_a_gpu_has_not_is_null_and_no_error(name: str) -> None:
    reader = _nvml.Reader(nvml(nvmlAsk=fails(name)), "device")
    assert reader.get("nvmlAsk") is None and reader.errors == {}
    assert _nvml.try_get(reader.nvml, "nvmlAsk", "device") is None


def test_another_failure_is_null_and_remembered() -> None:
    reader = _nvml.Reader(nvml(nvmlAsk=fails("UNKNOWN"), nvmlName=lambda device, number: f"{device} {number}".encode()), "device")
    assert reader.get("nvmlAsk") is None and reader.get("nvmlName", 7) == "device 7"
    assert reader.errors == {"nvmlAsk": "UNKNOWN"}
    with pytest.raises(Error):
        _nvml.try_get(reader.nvml, "nvmlAsk", "device")


def test_a_function_that_the_bindings_lack_is_null() -> None:
    assert _nvml.Reader(nvml(), "device").get("nvmlOfTheFuture") is None
    assert _nvml.try_get(nvml(), "nvmlOfTheFuture") is None


def test_a_lost_gpu_is_not_read_on() -> None:
    with pytest.raises(_nvml.GpuLost):
        _nvml.Reader(nvml(nvmlAsk=fails("GPU_IS_LOST")), "device").get("nvmlAsk")


@pytest.mark.parametrize(
    ("name", "state", "way_out"),
    [
        ("LIBRARY_NOT_FOUND", "absent", "install the NVIDIA driver"),
        ("DRIVER_NOT_LOADED", "not_loaded", "modprobe nvidia"),
        ("LIB_RM_VERSION_MISMATCH", "mismatch", "reboot the node"),
        ("NO_PERMISSION", "no_permission", "become"),
        ("UNKNOWN", "unusable", "NVML answered UNKNOWN.*journalctl"),
    ],
)
def test_a_driver_that_cannot_be_used_is_told_with_the_way_out(name: str, state: str, way_out: str) -> None:
    with pytest.raises(DriverUnavailable, match=way_out) as caught, _nvml.Session(nvml(nvmlInit=fails(name))):
        pass
    assert caught.value.state == state


def test_a_failing_shutdown_does_not_hide_the_result() -> None:
    with _nvml.Session(nvml(nvmlInit=lambda: None, nvmlShutdown=fails("UNKNOWN"))) as session:
        assert session
