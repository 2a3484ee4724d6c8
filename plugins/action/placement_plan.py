# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of placement_plan: variables in, plan out. The work is done by plugin_utils."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils import _catalog, _differences, _document, _inventory, _origin, _page, _planner, _schema, _sticky, _text

DATA = Path(__file__).parents[2] / "data"
ARGUMENTS = {
    "hosts": {"type": "list", "elements": "str"},
    "directory": {"type": "path"},
    "plan_in_force": {"type": "dict"},
    "records": {"type": "dict", "default": {}},
    "gpu_info": {"type": "dict", "default": {}},
    "limit": {"type": "list", "elements": "str"},
    "unreachable": {"type": "list", "elements": "str", "default": []},
}
FAULTS = (_inventory.InventoryError, _sticky.PlanError, _catalog.CatalogError)


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(ARGUMENTS)
        arguments = _origin.plain(arguments)
        variables = task_vars or {}
        try:
            return result | self._plan(arguments, variables)
        except FAULTS as error:
            raise AnsibleActionFail(str(error)) from None

    def _plan(self, arguments: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        directory = Path(arguments["directory"]) if arguments["directory"] else None
        catalog = _catalog.load(DATA)
        inventory = self._inventory(arguments, variables, catalog)
        facts = {name: found.get("gpu_info", found) for name, found in arguments["gpu_info"].items()}
        differences = _differences.compare(inventory, facts, catalog)
        inventory = _differences.with_slots(inventory, facts)
        in_force = _sticky.read(_last_plan(arguments["plan_in_force"], directory), arguments["records"])
        in_force = _differences.geometry_of(in_force, facts)
        differences += _differences.replaced_gpus(in_force, facts)
        plan = _planner.make_plan(inventory, catalog, in_force, arguments["limit"])
        differences += _differences.memory_differences(inventory, plan.document, facts, inventory.settings)
        found = [difference.document() for difference in differences]
        result = {
            "plan": plan.document,
            "complete": plan.complete,
            "text": _text.summary(plan, found),
            "moves": plan.moves,
            "started": plan.started,
            "stopped": plan.stopped,
            "geometry_changes": plan.geometry_changes,
            "drained": plan.drained,
            "blocked": plan.blocked(),
            "running": plan.running,
            "differences": found,
            "changed": False,
        }
        if directory is not None:
            files = {name: directory / name for name in ("plan.json", "plan.html")}
            result["files"] = [str(path) for path in files.values()]
            # The page also tells how the plan came about, so it is written together with a new plan, and only then.
            if self._write(files["plan.json"], _document.render(plan.document)) or not files["plan.html"].is_file():
                self._write(files["plan.html"], _page.render(plan, found, catalog))
                result["changed"] = True
        if self._task.diff:
            result["diff"] = {"prepared": "\n".join(_text.changes(plan)).lstrip("\n") + "\n"}
        return result

    def _inventory(self, arguments: Mapping[str, Any], variables: Mapping[str, Any], catalog: _catalog.Catalog) -> Any:
        names = arguments["hosts"] if arguments["hosts"] is not None else list(variables["groups"].get("gpu_nodes", ()))
        origins: dict[tuple[str, str | None], str] = {}
        hosts: list[_inventory.Host] = []
        cluster: dict[str, Any] = {}
        for name in sorted(names):
            if name not in variables["hostvars"]:
                raise AnsibleActionFail(f"hosts names {name!r}, which the inventory does not have; correct it.")
            known = variables["hostvars"][name]
            own: dict[str, Any] = {}
            for field in _schema.VARIABLES:
                if field.name in known:
                    value = known[field.name]
                    if file := _origin.file_of(value):
                        origins[field.name, name] = _origin.relative(file)
                    own[field.name] = _origin.plain(value)
            for field in _schema.CLUSTER_VARIABLES:
                if field.name in own:
                    cluster.setdefault(field.name, own[field.name])
                    origins.setdefault((field.name, None), origins.get((field.name, name), ""))
            # What runs on a node that does not answer is left alone, and nothing new is placed there.
            if name in arguments["unreachable"] and own.get("node_state", "active") == "active":
                own["node_state"] = "maintenance"
            if "ansible_host" in known:
                own["ansible_host"] = str(known["ansible_host"])
            # Groups that a run makes for itself are none of the inventory.
            groups = tuple(str(group) for group in known["group_names"] if not str(group).startswith("site_"))
            hosts.append(_inventory.Host(name, groups, own))

        return _inventory.load(hosts, cluster, catalog, lambda variable, host: origins.get((variable, host), ""))

    def _write(self, path: Path, content: str) -> bool:
        """Write a file that differs, as a whole or not at all; return whether it differs."""
        try:
            if path.is_file() and path.read_text(encoding="utf-8") == content:
                return False
            if not self._task.check_mode:
                path.parent.mkdir(parents=True, exist_ok=True)
                beside = path.with_suffix(path.suffix + ".new")
                beside.write_text(content, encoding="utf-8")
                os.replace(beside, path)
        except OSError as error:
            raise AnsibleActionFail(
                f"The plan cannot be written to {path}: {error.strerror}; correct directory or its permissions."
            ) from None
        return True


def _last_plan(given: dict[str, Any] | None, directory: Path | None) -> dict[str, Any] | None:
    if given is not None or directory is None or not (directory / "plan.json").is_file():
        return given
    path = directory / "plan.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _sticky.PlanError(
            f"The plan in force, {path}, cannot be read ({error}); restore it from a copy, or remove it to plan anew."
        ) from None
    return found
