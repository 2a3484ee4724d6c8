# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a mix, checks it, and describes each of its nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import yaml

from . import describe, profiles
from .errors import MixError

__all__ = ["MixError", "compile_mix"]

ADDRESS = r"^\d{1,3}(\.\d{1,3}){3}$"
NAME = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
GPU_DEVICES = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["model", "count"],
        "properties": {
            "model": {"type": "string"},
            "count": {"type": "integer", "minimum": 1, "maximum": 32},
            "numa_nodes": {"type": "array", "items": {"type": "integer", "minimum": -1}},
            "nvlink_set": {"type": "string"},
        },
    },
}
HARDWARE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["gpu_devices"],
    "properties": {
        "gpu_devices": GPU_DEVICES,
        "numa_nodes": {"type": "integer", "minimum": 1, "maximum": 8},
        "cpus_per_numa_node": {"type": "integer", "minimum": 1},
        "memory_mib_per_numa_node": {"type": "integer", "minimum": 1},
        "hcas": {"type": "integer", "minimum": 0, "maximum": 16},
    },
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["sandbox", "network", "control", "nodes"],
    "properties": {
        "sandbox": {"type": "string", "pattern": NAME},
        "network": {"type": "string"},
        "control": {
            "type": "object",
            "required": ["name", "address"],
            "additionalProperties": False,
            "properties": {"name": {"type": "string", "pattern": NAME}, "address": {"type": "string", "pattern": ADDRESS}},
        },
        "nodes": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "address"],
                "oneOf": [{"required": ["node_profile"]}, {"required": ["hardware"]}],
                "properties": {
                    "name": {"type": "string", "pattern": NAME},
                    "address": {"type": "string", "pattern": ADDRESS},
                    "groups": {"type": "array", "items": {"type": "string"}},
                    "node_profile": {"type": "string"},
                    "hardware": HARDWARE,
                    "passthrough": {"type": "boolean"},
                },
            },
        },
    },
}


def compile_mix(path: Path) -> dict[str, dict[str, Any]]:
    """Node name to hardware description."""
    try:
        mix = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise MixError(f"The mix {path} cannot be read ({' '.join(str(error).split())}); correct the file.") from None
    _check(mix, path)
    return {node["name"]: describe.node(mix["sandbox"], node, _profile(node, path)) for node in mix["nodes"]}


def _check(mix: Any, path: Path) -> None:
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(SCHEMA).iter_errors(mix))
    if error is not None:
        where = ".".join(str(part) for part in error.absolute_path) or "the top level"
        raise MixError(f"The mix {path} is wrong at {where}: {error.message}; compare it with tests/sandbox/mixes/default.yml.")


def _profile(node: dict[str, Any], path: Path) -> dict[str, Any]:
    where = f"node {node['name']} of the mix {path}"
    if "node_profile" in node:
        return profiles.load(node["node_profile"], where)
    return profiles.generate(node["hardware"], where)
