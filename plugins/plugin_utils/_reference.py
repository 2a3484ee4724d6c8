# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is generated from the description of the inventory: JSON Schema, argument specs, reference, template.

PRIVATE: internal to the collection, may change at any time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ._describe import Field, figure
from ._schema import CLUSTER_VARIABLES, NODE_VARIABLES, VARIABLES

JSON_TYPES = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "list": "array",
    "dict": "object",
    "map": "object",
}
ARGUMENT_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "list": "list", "dict": "dict", "map": "dict"}
# YAML 1.1 reads 8.03e9 as text, and templates may give numbers as text.
NUMERIC_TEXT = {"type": "string", "pattern": r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"}


# --- JSON Schema --------------------------------------------------------------------------------


def json_schema() -> dict[str, Any]:
    """A schema of all variables of one node, for editors and other programs."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Inventory variables of heterogpu.inference",
        "type": "object",
        # A variable that is there but empty has its default.
        "properties": {
            field.name: _property(field) if field.required else {"anyOf": [_property(field), {"type": "null"}]} for field in VARIABLES
        },
        "required": [field.name for field in VARIABLES if field.required],
    }


def _property(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"description": _plain(field.help)}
    if field.default is not None:
        found["default"] = field.default
    if field.type == "either":
        return found | {"anyOf": [_property(choice) for choice in field.either]}
    if field.type in {"integer", "number"}:
        return found | {"anyOf": [_numeric(field), NUMERIC_TEXT]}
    found["type"] = JSON_TYPES[field.type]
    found |= {
        "string": _string,
        "list": _list,
        "map": _map,
        "dict": _dict,
        "boolean": lambda _field: {},
    }[field.type](field)
    return found


def _numeric(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"type": JSON_TYPES[field.type]}
    if field.minimum is not None:
        found["minimum"] = field.minimum
    if field.maximum is not None:
        found["maximum"] = field.maximum
    return found


def _string(field: Field) -> dict[str, Any]:
    if field.choices:
        return {"enum": list(field.choices)}
    return {"pattern": f"^({field.pattern})$"} if field.pattern else {"minLength": 1}


def _list(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"items": _property(field.items)} if field.items else {}
    return found | ({"minItems": 1} if field.not_empty else {})


def _map(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"additionalProperties": _property(field.items)} if field.items else {}
    if field.pattern:
        found["propertyNames"] = {"pattern": f"^({field.pattern})$"}
    return found | ({"minProperties": 1} if field.not_empty else {})


def _dict(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"properties": {key.name: _property(key) for key in field.keys}, "additionalProperties": False}
    required = [key.name for key in field.keys if key.required]
    if required:
        found["required"] = required
    return found | ({"minProperties": 1, "maxProperties": 1} if field.exactly_one_key else {})


# --- argument specs -----------------------------------------------------------------------------


def argument_spec(fields: Iterable[Field]) -> dict[str, Any]:
    """The options of a role's argument spec for some variables."""
    return {field.name: _option(field) for field in fields}


def _option(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"description": _plain(field.help), "type": ARGUMENT_TYPES.get(field.type, "raw")}
    if field.required:
        found["required"] = True
    if field.default is not None:
        found["default"] = field.default
    if field.choices:
        found["choices"] = list(field.choices)
    if field.type == "list" and field.items is not None:
        found["elements"] = ARGUMENT_TYPES.get(field.items.type, "raw")
        if field.items.type == "dict":
            found["options"] = argument_spec(field.items.keys)
    if field.type == "dict":
        found["options"] = argument_spec(field.keys)
    return found


# --- docs/inventory.md --------------------------------------------------------------------------


def reference() -> str:
    """The reference of all variables."""
    lines = [
        "# The inventory",
        "",
        "<!-- Generated from plugins/plugin_utils/_schema.py; to renew it: pytest tests/unit/plugins/plugin_utils --update-golden -->",
        "",
        "A datacenter is described by the variables below. `inventories/template` has all of them with comments:",
        "copy it for a new datacenter. Nodes are the hosts of the group `gpu_nodes`; pools are its child groups.",
        "`playbooks/plan.yml` checks the inventory and computes the plan; no node has to be reachable for that.",
        "Every problem is reported with the file, the variable and the value.",
        "",
        "## Of the whole datacenter",
        "",
        "These are the same for all nodes: put them into `group_vars/all`.",
        "",
    ]
    for field in CLUSTER_VARIABLES:
        lines += _reference_of(field)
    lines += ["## Of a pool or a node", "", "Put these into the `group_vars` of a pool, or into `host_vars` of a node that differs.", ""]
    for field in NODE_VARIABLES:
        lines += _reference_of(field)
    return "\n".join(lines).rstrip() + "\n"


def _reference_of(field: Field) -> Iterator[str]:
    yield f"### `{field.name}`"
    yield ""
    yield f"{field.help}"
    yield ""
    yield f"Type: {_type(field)}. {_default(field)}"
    yield ""
    keys = _keys(field)
    if keys:
        yield "| key | type | default | meaning |"
        yield "|---|---|---|---|"
        for key in keys:
            yield f"| `{key.name}` | {_type(key)} | {_default_cell(key)} | {key.help} |"
        yield ""
    if field.example is not None and field.type in {"list", "dict", "map"}:
        yield "```yaml"
        yield f"{field.name}:"
        yield from _yaml_body(field.example, "  ")
        yield "```"
        yield ""


def _keys(field: Field) -> tuple[Field, ...]:
    inner = field.items if field.items is not None else field
    return inner.keys


def _type(field: Field) -> str:
    if field.type == "either":
        return " or ".join(dict.fromkeys(_type(choice) for choice in field.either))
    if field.choices:
        return "one of " + ", ".join(f"`{choice}`" for choice in field.choices)
    words = {"dict": "mapping", "map": "mapping of names", "list": "list", "string": "text", "integer": "whole number"}.get(
        field.type, field.type
    )
    if field.type == "list" and field.items is not None:
        words = {"string": "list of texts", "integer": "list of whole numbers"}.get(field.items.type, "list")
    if field.unit:
        words += f" in {field.unit}"
    if field.minimum is not None and field.maximum is not None:
        words += f", {figure(field.minimum)} to {figure(field.maximum)}"
    elif field.minimum is not None:
        words += f", {figure(field.minimum)} or more"
    return words


def _default(field: Field) -> str:
    if field.required:
        return "Required."
    return f"Default: {_default_cell(field)}."


def _default_cell(field: Field) -> str:
    if field.required:
        return "required"
    if field.default_text:
        return field.default_text
    return f"`{_scalar(field.default)}`"


# --- inventories/template -----------------------------------------------------------------------


def template() -> dict[str, str]:
    """The files of the template inventory."""
    hosts = """---
# Copy this folder for a new datacenter, then fill in the hosts. Pools are child groups of gpu_nodes, named as you like;
# each has a file of its name in group_vars (copy group_vars/pool.yml).
all:
  children:
    gpu_nodes:
      children:
        pool:
          hosts:
            node-1: {ansible_host: 192.0.2.11}
"""
    return {
        "hosts.yml": hosts,
        "group_vars/all/models.yml": _template_file([field for field in CLUSTER_VARIABLES if field.name == "inference_models"]),
        "group_vars/all/services.yml": _template_file([field for field in CLUSTER_VARIABLES if field.name == "inference_services"]),
        "group_vars/all/planning.yml": _template_file([field for field in CLUSTER_VARIABLES if not field.required]),
        "group_vars/pool.yml": _template_file(NODE_VARIABLES),
    }


def _template_file(fields: Iterable[Field]) -> str:
    lines = ["---", "# What is commented out has the default shown, or none. docs/inventory.md says more."]
    for field in fields:
        lines.append("")
        lines += [f"# {line}" for line in _wrapped(_plain(f"{field.help} ({_type(field)})"))]
        lines += [
            f"#   {line}"
            for key in _keys(field)
            for line in _wrapped(_plain(f"{key.name}: {key.help} ({_type(key)}; {_default_word(key)})"))
        ]
        mark = "" if field.required else "# "
        value = field.example if field.required else field.default
        if field.required:
            lines.append(f"{mark}{field.name}:")
            lines += [mark + line for line in _yaml_body(value, "  ")]
        elif value is None:
            shown = _scalar(field.choices[0] if field.choices else field.example)
            lines.append(f"{mark}{field.name}: {shown}  # default: {_plain(field.default_text)}")
        else:
            lines.append(f"{mark}{field.name}: {_scalar(value)}")
            if field.example is not None and value == []:
                lines.append("#   for example:")
                lines += [f"#   {text.strip()}" for text in _yaml_body(field.example, "")]
    return "\n".join(lines) + "\n"


def _default_word(field: Field) -> str:
    return "required" if field.required else f"default: {_default_cell(field)}"


def _wrapped(text: str, width: int = 110) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _plain(text: str) -> str:
    return text.replace("`", "")


def _yaml_body(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, entry in value.items():
            if isinstance(entry, dict) and len(_scalar(entry)) > 70:
                yield f"{indent}{key}:"
                yield from _yaml_body(entry, indent + "  ")
            else:
                yield f"{indent}{key}: {_scalar(entry)}"
    elif isinstance(value, list):
        for entry in value:
            if isinstance(entry, dict) and len(_scalar(entry)) > 110:
                body = list(_yaml_body(entry, indent + "  "))
                yield f"{indent}- {body[0].strip()}"
                yield from body[1:]
            else:
                yield f"{indent}- {_scalar(entry)}"


def _scalar(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_scalar(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_scalar(entry) for entry in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Times, versions and lists of numbers would be read as something else.
        quoted = not value or ":" in value or (value[0].isdigit() and not value.endswith("b"))
        return json.dumps(value) if quoted else value
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
