# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps make a toolkit the default of a node. PRIVATE: internal to the collection, may change at any time.

Pure: state in, steps out. Files are not steps here; they are compared and written by the core of file_set.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_loader import soname
from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_rules import FORWARD, Verdict
from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_state import (
    LINK,
    LOADER,
    PROFILE,
    RECORD,
    Alternative,
    State,
    Toolkit,
)
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput, Refused

_HEADER = "# Written by heterogpu.inference; changes are lost.\n"
_PROFILE = (
    _HEADER
    + f"""export CUDA_HOME={LINK}
case ":$PATH:" in
    *:{LINK}/bin:*) ;;
    *) export PATH="{LINK}/bin:$PATH" ;;
esac
"""
)


@dataclass(frozen=True)
class Step:
    """One change of a link, with what undoes it."""

    action: str  # set_alternative, free_alternative, replace_link, remove_link
    name: str
    to: str
    before: str

    def as_dict(self) -> dict[str, str]:
        return {"action": self.action, "name": self.name, "from": self.before, "to": self.to}


@dataclass
class Plan:
    links: list[Step] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # path: content
    obsolete: list[str] = field(default_factory=list)
    stale_loader: bool = False


def wanted_version(state: State, version: str | None, target: str) -> str:
    if target != "previous":
        if version is None:
            raise InvalidInput("The option version is missing; name the default toolkit, such as 12.2.")
        return version
    former = state.record.get("previous") or (state.record.get("current") if state.record.get("undone") else None)
    if not former:
        raise Refused(f"No earlier default toolkit is recorded in {RECORD}; name one in version.")
    return former["version"]


def next_record(state: State, version: str, generation: str, target: str) -> dict[str, Any]:
    """Two generations. A way back is gone only once, so that running it again changes nothing."""
    record = state.record
    if target == "previous":
        return {"current": record["previous"], "previous": None, "undone": True} if record.get("previous") else record
    current = {"version": version, "generation": generation}
    if record.get("current") == current:
        return record
    before = {"version": state.default, "generation": ""} if state.default else None
    return {"current": current, "previous": record.get("current") or before, "undone": False}


def find(state: State, version: str, planned: dict[str, str]) -> Toolkit:
    """`planned` are toolkits that the run is about to install: version by release."""
    if version in state.toolkits:
        return state.toolkits[version]
    if version in planned:
        return Toolkit(version, planned[version], f"{LINK}-{version}")
    raise Refused(
        f"CUDA {version} is not installed below {LINK}-{version}, installed are {', '.join(sorted(state.toolkits)) or 'none'}; "
        f"install the package cuda-toolkit-{version.replace('.', '-')} or declare another version."
    )


def present(state: State, toolkit: Toolkit, verdict: Verdict, record: dict[str, Any]) -> Plan:
    plan = Plan(files=_files(toolkit, verdict, record))
    major = "cuda-" + toolkit.version.partition(".")[0]
    is_planned = toolkit.version not in state.toolkits
    if "cuda" in state.alternatives or is_planned:
        for name in ("cuda", major):
            plan.links += _set(state.alternatives.get(name), name, toolkit, is_planned)
    elif state.link_is_folder:
        raise Refused(f"{LINK} is a folder where a link belongs; move it to {LINK}-X.Y and run again.")
    elif state.link != toolkit.path:
        plan.links.append(Step("replace_link", LINK, toolkit.path, state.link or ""))
    taken = state.loaded_from.get(soname(toolkit.version))
    plan.stale_loader = not is_planned and (taken is None or not taken.startswith(toolkit.path + "/"))
    return plan


def absent(state: State) -> Plan:
    """Give the choice back to the packages; toolkits stay."""
    plan = Plan(obsolete=[LOADER, PROFILE, RECORD])
    if state.record:
        plan.links = [Step("free_alternative", one.name, "auto", one.value) for one in state.alternatives.values() if not one.automatic]
        if "cuda" not in state.alternatives and state.link and not state.link_is_folder:
            plan.links.append(Step("remove_link", LINK, "", state.link))
    return plan


def _set(group: Alternative | None, name: str, toolkit: Toolkit, is_planned: bool) -> list[Step]:
    if is_planned:
        before = "" if group is None else group.value
        return [] if before == toolkit.path else [Step("set_alternative", name, toolkit.path, before)]
    if group is None:
        return []
    if toolkit.path not in group.choices:
        raise Refused(
            f"CUDA {toolkit.version} is installed but is no choice of update-alternatives for {group.link}; "
            f"reinstall the package cuda-toolkit-{toolkit.version.replace('.', '-')}-config-common."
        )
    # A choice that is not fixed moves on when the next toolkit is installed.
    if group.value == toolkit.path and not group.automatic:
        return []
    return [Step("set_alternative", name, toolkit.path, "auto" if group.automatic else group.value)]


def _files(toolkit: Toolkit, verdict: Verdict, record: dict[str, Any]) -> dict[str, str]:
    folders = [f"{toolkit.path}/lib64"]
    if verdict.level == FORWARD:
        # Before the driver's own libcuda; with a driver that is new enough it must not be found at all.
        folders.insert(0, f"{toolkit.path}/compat")
    return {
        LOADER: _HEADER + "".join(folder + "\n" for folder in folders),
        PROFILE: _PROFILE,
        RECORD: json.dumps(record, sort_keys=True) + "\n",
    }
