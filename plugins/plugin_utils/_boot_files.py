# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files by which a node brings its GPUs up by itself. PRIVATE: internal to the collection, may change at any time.

The program at boot is the modules' own code: whatever `_boot` of module_utils imports goes to the node as it is.
"""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _devices
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _gpu_profiles, _nvml_carrier

FOLDER = "/usr/local/lib/heterogpu"
DECLARATION = "/etc/heterogpu/boot.json"
PACKAGE = "ansible_collections.heterogpu.inference.plugins.module_utils"
MODULES = f"{FOLDER}/{PACKAGE.replace('.', '/')}"
OBSOLETE = [f"{MODULES}/*.py"]
PROGRAM = "_boot"
VERSION = 1
_SOURCES = Path(__file__).resolve().parents[1] / "module_utils"


def program() -> list[dict[str, str]]:
    """The program with all it imports, and what the controller knows."""
    return [{"path": f"{MODULES}/{name}.py", "content": text} for name, text in _closure().items()] + [
        {"path": f"{FOLDER}/knowledge.json", "content": _knowledge()}
    ]


def declaration(geometry: Sequence[Mapping[str, Any]], settings: Sequence[Mapping[str, Any]], **options: Any) -> dict[str, str]:
    """What stands now and is to stand after every boot."""
    document = {"version": VERSION, "geometry": list(geometry), "settings": list(settings), **options}
    return {"path": DECLARATION, "content": json.dumps(document, indent=2, sort_keys=True) + "\n"}


def devices(uuids: Mapping[str, str | None]) -> dict[str, str]:
    """The map as the program writes it, for a node that has no program."""
    return {"path": _devices.PATH, "content": _devices.text(dict(uuids))}


@functools.lru_cache(maxsize=1)
def _closure() -> dict[str, str]:
    found: dict[str, str] = {}
    waiting = [PROGRAM]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = (_SOURCES / f"{name}.py").read_text(encoding="utf-8")
            waiting += _imports(found[name])
    return dict(sorted(found.items()))


def _imports(source: str) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{PACKAGE}."):
            names.append(node.module.rpartition(".")[2])
    return names


@functools.lru_cache(maxsize=1)
def _knowledge() -> str:
    by_name, _names = _gpu_profiles.tables()
    return json.dumps({"pynvml": _nvml_carrier.packed_pynvml(), "profile_tables": by_name}, sort_keys=True) + "\n"
