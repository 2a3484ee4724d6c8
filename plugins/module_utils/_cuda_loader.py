# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the loader and CUDA's own libraries which versions a program gets. PRIVATE: internal to the collection, may change at any time.

Libraries are loaded in a child process, which reads the loader's cache afresh and leaves nothing behind in the module.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from ansible_collections.heterogpu.inference.plugins.module_utils import _bounded

DRIVER = "libcuda.so.1"


def soname(version: str) -> str:
    return f"libcudart.so.{version.partition('.')[0]}"


def where(sonames: Sequence[str], timeout: float) -> dict[str, str]:
    """The real path that each name leads to; what cannot be loaded is left out."""

    def look(report: _bounded.Report) -> dict[str, str]:
        found = {}
        for name in sonames:
            report({"doing": f"loading {name}"})
            if _load(name) is not None:
                path = _mapped(name)
                if path:
                    found[name] = path
        return found

    return _bounded.call(look, timeout, "was asking the loader for CUDA's libraries") if sonames else {}


def versions(runtime: str, timeout: float) -> dict[str, int | None]:
    """What the runtime library and the driver library say of themselves, such as 12020; None when one does not answer."""

    def ask(report: _bounded.Report) -> dict[str, int | None]:
        answers: dict[str, int | None] = {}
        for key, library, function in (("runtime", runtime, "cudaRuntimeGetVersion"), ("driver", DRIVER, "cuDriverGetVersion")):
            report({"doing": f"{function} of {library}"})
            answers[key] = _number(library, function)
        return answers

    return _bounded.call(ask, timeout, "was asking CUDA for its version")


def _load(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _number(library: str, function: str) -> int | None:
    loaded, number = _load(library), ctypes.c_int(0)
    call = getattr(loaded, function, None)
    return number.value if call is not None and call(ctypes.byref(number)) == 0 else None


def _mapped(name: str) -> str | None:
    """The file behind a loaded library, such as libcudart.so.12.2.140; the kernel shows it without links."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = [line.split(None, 5)[5].strip() for line in maps if "/" in line]
    return next((path for path in paths if os.path.basename(path).startswith(name)), None)
