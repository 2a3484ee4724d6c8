# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role's argument specs are its interface: they, the defaults and the variables' names agree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"
NAMES = sorted(path.name for path in ROLES.iterdir())


def load(role: str, path: str) -> Any:
    file = ROLES / role / path
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else None


@pytest.mark.parametrize("role", NAMES)
def test_defaults_are_documented_and_documented_defaults_are_true(role: str) -> None:
    defaults = load(role, "defaults/main.yml") or {}
    options = load(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert set(defaults) == set(options)
    assert {name: option.get("default") for name, option in options.items()} == defaults
    assert all(option["description"] for option in options.values())


@pytest.mark.parametrize("role", NAMES)
def test_names_show_to_whom_a_variable_belongs(role: str) -> None:
    assert all(name.startswith(f"{role}_") for name in load(role, "defaults/main.yml") or {})
    assert all(name.startswith(f"_{role}_") for name in load(role, "vars/main.yml") or {})
    texts = [path.read_text(encoding="utf-8") for path in (ROLES / role).glob("[th]a[sn]*/*.yml")]
    registers = {name for text in texts for name in re.findall(r"^\s+register: (\S+)$", text, re.MULTILINE)}
    assert all(name.startswith(f"__{role.partition('_')[0]}") for name in registers), registers


@pytest.mark.parametrize("role", NAMES)
def test_readme_says_what_the_role_will_and_will_not_do(role: str) -> None:
    readme = (ROLES / role / "README.md").read_text(encoding="utf-8")
    assert readme.startswith(f"# {role}\n")
    assert readme.index("\n## Will\n") < readme.index("\n## Will not\n")


@pytest.mark.parametrize("role", NAMES)
def test_no_role_calls_a_shell(role: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROLES / role).rglob("*.yml")]
    assert not any(re.search(r"ansible\.builtin\.(shell|raw|script)\b", text) for text in texts)
