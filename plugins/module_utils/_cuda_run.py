# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The four rooms of cuda_toolkit. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _cuda_loader, _cuda_plan, _cuda_rules, _cuda_state, _file_set
from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_apply import Change
from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_state import Run, State, Toolkit
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed, DriverHang, GpuError, InvalidInput, Refused


@dataclass(frozen=True)
class Request:
    state: str
    version: str | None
    driver: str | None  # what the run is about to install, for check mode
    generation: str = ""
    planned: dict[str, str] = field(default_factory=dict)
    forward: bool = False
    timeout: float = 60
    rules: dict[str, Any] = field(default_factory=dict)
    capabilities: dict[str, str] = field(default_factory=dict)


def run(request: Request, check_mode: bool, command: Run) -> dict[str, Any]:
    if request.timeout <= 0:
        raise InvalidInput(f"The timeout is {request.timeout:g} s; give the seconds that one call may take, such as 60.")
    state = _cuda_state.probe(command, request.capabilities, request.timeout)
    result: dict[str, Any] = {
        "toolkits": [{"version": one.version, "release": one.release, "path": one.path} for one in state.toolkits.values()],
        "driver": {key: state.driver[key] for key in ("state", "loaded_version", "installed_version")},
        "disruptive": False,
        "reboot_required": False,
    }
    toolkit = None
    if request.state == "absent":
        plan = _cuda_plan.absent(state)
    else:
        version = _cuda_plan.wanted_version(state, request.version, request.state)
        toolkit = _cuda_plan.find(state, version, request.planned if check_mode else {})
        verdict = _judge(state, toolkit, request, check_mode)
        record = _cuda_plan.next_record(state, version, request.generation, request.state)
        plan = _cuda_plan.present(state, toolkit, verdict, record)
        result.update(version=version, release=toolkit.release, level=verdict.level, notes=list(verdict.notes))
    files = _file_steps(plan)
    refresh = plan.stale_loader or bool(plan.links) or any(step.path == _cuda_state.LOADER for step in files)
    steps = [step.as_dict() for step in plan.links]
    steps += [{"action": "write_file" if step.after is not None else "remove_file", "name": step.path} for step in files]
    steps += [{"action": "refresh_loader", "name": "ldconfig"}] if refresh else []
    result.update(changed=bool(steps), steps=steps, diff=_diff(plan, files))
    if check_mode:
        return result
    change = Change(command, plan.links, files, refresh)
    if steps:
        change.apply()
    if toolkit is not None:
        try:
            result["proof"] = _verify(state, toolkit, verdict.level, request.timeout)
        except (ApplyFailed, DriverHang) as error:
            if not steps:
                raise
            change.undo(str(error))
    return result


def _judge(state: State, toolkit: Toolkit, request: Request, check_mode: bool) -> _cuda_rules.Verdict:
    # The next boot loads what is installed; the declared driver stands in for one that a check run cannot install.
    driver = state.driver["installed_version"] or state.driver["loaded_version"]
    if check_mode and request.driver:
        driver = request.driver
    if driver is None:
        raise Refused(f"No NVIDIA driver is installed, so CUDA {toolkit.release} cannot be proven; install the driver first.")
    has_compat = toolkit.has_compat or (check_mode and request.forward)
    return _cuda_rules.judge(toolkit.release, driver, state.capabilities, has_compat, request.rules)


def _file_steps(plan: _cuda_plan.Plan) -> list[_file_set.Step]:
    wanted = [
        _file_set.WantedFile(path, content.encode(), _file_set.Attributes(0o644, 0, 0)) for path, content in sorted(plan.files.items())
    ]
    try:
        return _file_set.plan(wanted, plan.obsolete)
    except _file_set.FileSetError as error:
        raise GpuError(str(error)) from None


def _verify(state: State, toolkit: Toolkit, level: str, timeout: float) -> dict[str, Any]:
    """Ask the loader, CUDA's runtime and the driver's library; none of it parses text."""
    name = _cuda_loader.soname(toolkit.version)
    taken = _cuda_loader.where([name], timeout).get(name)
    if taken is None or not taken.startswith(toolkit.path + "/"):
        raise ApplyFailed(f"The loader takes {name} from {taken or 'nowhere'} instead of {toolkit.path}; look at /etc/ld.so.conf.d")
    answers = _cuda_loader.versions(taken, timeout)
    major, minor = (int(part) for part in toolkit.version.split("."))
    number = 1000 * major + 10 * minor
    if answers["runtime"] != number:
        raise ApplyFailed(f"The library {taken} says that it is CUDA {answers['runtime']}, not {number}; reinstall the toolkit")
    if state.driver["state"] == "ok":
        least = 1000 * major if level == _cuda_rules.MINOR else number
        if (answers["driver"] or 0) < least:
            raise ApplyFailed(
                f"The driver's {_cuda_loader.DRIVER} answers {answers['driver'] or 'nothing'} where CUDA {toolkit.version} needs {least}; "
                "look for another libcuda.so.1 in the loader's path"
            )
    return {"runtime_library": taken, "runtime_version": answers["runtime"], "driver_version": answers["driver"]}


def _diff(plan: _cuda_plan.Plan, files: list[_file_set.Step]) -> list[dict[str, str]]:
    links = [
        {"before_header": step.name, "after_header": step.name, "before": f"{step.before}\n", "after": f"{step.to}\n"}
        for step in plan.links
    ]
    return links + [step.diff() for step in files]
