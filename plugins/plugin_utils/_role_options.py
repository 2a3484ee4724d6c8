# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of roles that stand for variables of the inventory: their argument specs come from the description in _schema.

PRIVATE: internal to the collection, may change at any time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ._reference import argument_spec
from ._schema import BY_NAME

BEGIN = "      # From the description of the inventory's variables; to renew it: pytest tests/unit/plugins/plugin_utils --update-golden"
END = "      # The role's own."
WIDTH = 150

_FLAVOUR = "{{ ((plan_node | default({})).driver | default({})).flavour | default(gpu_driver_flavour) | default('proprietary') }}"
# By role: the option, the variable that it stands for, and the option's default.
OPTIONS: Mapping[str, Mapping[str, tuple[str, Any]]] = {
    "nvidia_driver": {
        "nvidia_driver_version": ("gpu_driver_version", "{{ gpu_driver_version }}"),
        "nvidia_driver_branch": ("gpu_driver_branch", "{{ gpu_driver_branch | default('') }}"),
        "nvidia_driver_source": ("gpu_driver_source", "{{ gpu_driver_source | default('ubuntu') }}"),
        "nvidia_driver_flavour": ("gpu_driver_flavour", _FLAVOUR),
        "nvidia_driver_repository": ("gpu_driver_repository", "{{ gpu_driver_repository | default({}) }}"),
        "nvidia_driver_mirror": ("gpu_driver_mirror", "{{ gpu_driver_mirror | default('') }}"),
    },
    "cuda": {
        "cuda_version": ("cuda_version", "12.2"),
        "cuda_toolkit_versions": ("cuda_toolkit_versions", []),
        "cuda_nccl_version": ("nccl_version", "{{ nccl_version | default('') }}"),
        "cuda_repository": ("cuda_repository", {}),
    },
    "container_toolkit": {
        "container_toolkit_version": ("container_toolkit_version", ""),
        "container_toolkit_repository": ("container_toolkit_repository", {}),
    },
    "mig": {
        "mig_settings": ("gpu_settings", "{{ gpu_settings | default([]) }}"),
        "mig_devices": ("gpu_devices", "{{ gpu_devices | default([]) }}"),
    },
    "preflight": {
        "preflight_node_state": ("node_state", "{{ node_state | default('active') }}"),
        "preflight_devices": ("gpu_devices", "{{ gpu_devices | default([]) }}"),
        "preflight_driver_version": ("gpu_driver_version", "{{ gpu_driver_version }}"),
        "preflight_driver_source": ("gpu_driver_source", "{{ gpu_driver_source | default('ubuntu') }}"),
        "preflight_driver_flavour": ("gpu_driver_flavour", _FLAVOUR),
        "preflight_driver_repository": ("gpu_driver_repository", "{{ gpu_driver_repository | default({}) }}"),
        "preflight_driver_mirror": ("gpu_driver_mirror", "{{ gpu_driver_mirror | default('') }}"),
        "preflight_gpu_settings": ("gpu_settings", "{{ gpu_settings | default([]) }}"),
    },
}


def specs(role: str) -> dict[str, Any]:
    """The argument specs of a role's options that stand for variables."""
    found: dict[str, Any] = {}
    for option, (variable, default) in OPTIONS[role].items():
        spec = argument_spec([BY_NAME[variable]])[variable]
        # A template fills the option in where the inventory leaves the variable out, and a dictionary may be left empty.
        spec.pop("required", None)
        for key in spec.get("options", {}).values() if spec["type"] == "dict" else ():
            key.pop("required", None)
        if spec["type"] == "int":
            spec["type"] = "raw"  # empty where the inventory leaves the variable out
        found[option] = spec | {"default": default}
    return found


def renewed(role: str, text: str) -> str:
    """The text of a role's argument_specs.yml with the options between the two marks as they are described now."""
    head, _begin, rest = text.partition(f"{BEGIN}\n")
    _old, _end, tail = rest.partition(f"{END}\n")
    return f"{head}{BEGIN}\n{body(role)}{END}\n{tail}"


def body(role: str) -> str:
    return "\n".join(_mapping(specs(role), "      ")) + "\n"


def _mapping(values: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{key}:"
            yield from _mapping(value, f"{indent}  ")
        elif isinstance(value, str) and len(f"{indent}{key}: {value}") > WIDTH and key == "description":
            yield f"{indent}{key}: >-"
            yield from _folded(value, f"{indent}  ")
        else:
            yield f"{indent}{key}: {_scalar(value)}"


def _folded(text: str, indent: str) -> Iterator[str]:
    line = indent
    for word in text.split():
        if len(line) + len(word) + 1 > WIDTH and line.strip():
            yield line
            line = indent
        line += word if line == indent else f" {word}"
    yield line


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_scalar(entry) for entry in value) + "]"
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9 ,./'()_-]*", value) and value not in {"yes", "no", "on", "off", "null"}:
        return value
    return json.dumps(value, ensure_ascii=False)
