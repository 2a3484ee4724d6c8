# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is generated from the description of the inventory is up to date, and right."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import inventory_folders
import jsonschema
import planning
import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _reference, _role_options, _schema

DOCS = planning.ROOT / "docs"
TEMPLATE = planning.ROOT / "inventories" / "template"
FILES = {
    DOCS / "inventory.md": _reference.reference(),
    DOCS / "inventory.schema.json": json.dumps(_reference.json_schema(), indent=1) + "\n",
    **{TEMPLATE / name: text for name, text in _reference.template().items()},
}
SPECS = {role: planning.ROOT / "roles" / role / "meta" / "argument_specs.yml" for role in _role_options.OPTIONS}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_generated_files_are_up_to_date(path: Path, update_golden: bool) -> None:
    if update_golden:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILES[path], encoding="utf-8")
    assert path.read_text(encoding="utf-8") == FILES[path], "run pytest tests/unit/plugins/plugin_utils --update-golden"


@pytest.mark.parametrize("role", SPECS)
def test_options_that_stand_for_variables_are_described_by_them(role: str, update_golden: bool) -> None:
    text = SPECS[role].read_text(encoding="utf-8")
    if update_golden:
        text = _role_options.renewed(role, text)
        SPECS[role].write_text(text, encoding="utf-8")
    assert text == _role_options.renewed(role, text), "run pytest tests/unit/plugins/plugin_utils --update-golden"
    options = yaml.safe_load(text)["argument_specs"]["main"]["options"]
    assert {name: options[name] for name in _role_options.OPTIONS[role]} == _role_options.specs(role)


def test_the_template_is_a_valid_inventory_and_names_every_variable() -> None:
    source = inventory_folders.read(TEMPLATE)
    hosts = {name: source.variables[name] for name in source.groups}
    made = planning.plan(hosts, source.groups)
    assert made.document["services"]["chat"]["replicas"] == 16
    text = "".join(_reference.template().values())
    assert [field.name for field in _schema.VARIABLES if f"\n{field.name}:" not in text and f"\n# {field.name}:" not in text] == []


@pytest.mark.parametrize("name", ["hongkong", "template"])
def test_the_schema_accepts_the_inventories(name: str) -> None:
    source = inventory_folders.read(planning.ROOT / "inventories" / name)
    for host, groups in source.groups.items():
        if "gpu_nodes" in groups:
            jsonschema.validate(source.variables[host], _reference.json_schema())


def test_the_argument_specs_accept_the_reference_inventory_and_refuse_a_fault() -> None:
    source = inventory_folders.read(planning.ROOT / "inventories" / "hongkong")
    validator = ArgumentSpecValidator(_without_descriptions(_reference.argument_spec(_schema.VARIABLES)))
    known = {field.name for field in _schema.VARIABLES}
    variables = {key: value for key, value in source.variables["a100-1"].items() if key in known}
    assert not validator.validate(copy.deepcopy(variables)).error_messages
    variables["inference_services"] = [variables["inference_services"][0] | {"class": "urgent"}]
    assert validator.validate(variables).error_messages


def _without_descriptions(spec: dict) -> dict:
    return {
        name: {key: _without_descriptions(value) if key == "options" else value for key, value in option.items() if key != "description"}
        for name, option in spec.items()
    }


def test_the_template_survives_yaml() -> None:
    for text in _reference.template().values():
        assert yaml.safe_load(text) is None or isinstance(yaml.safe_load(text), dict)
