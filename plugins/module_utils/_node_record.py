# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection keeps on a node about itself: lease, drain, records of the plan.

It lies on the node because a controller may be killed, or be another one next time. PRIVATE: internal to the collection, may
change at any time.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _whole_file
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError, Refused

FOLDER = "/var/lib/heterogpu"
RECORDS = {
    "record": "/etc/heterogpu/plan.json",
    "verified": f"{FOLDER}/plan.verified.json",
    "previous": f"{FOLDER}/plan.previous.json",
}
SITE, ADMINISTRATOR = "site", "administrator"
ACTIVE: Mapping[str, Any] = {"state": "active", "by": None, "reason": "", "services": []}


class LeaseHeld(Refused):
    """Another run holds the node."""


@contextmanager
def locked(folder: str = FOLDER) -> Iterator[None]:
    """One change of the state at a time; nothing here takes long."""
    os.makedirs(folder, mode=0o755, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read(path: str) -> dict[str, Any]:
    """The document in a file; empty when there is none."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise GpuError(f"The file {path} cannot be read ({error}); restore it from a copy or remove it, and run again.") from None
    if not isinstance(found, dict):
        raise GpuError(f"The file {path} holds no mapping; restore it from a copy or remove it, and run again.")
    return found


def write(path: str, document: Mapping[str, Any] | None) -> None:
    """Replace the file as a whole, or remove it; both survive a power failure."""
    if document is not None:
        _whole_file.write_json(path, document)
        return
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    _whole_file.sync(os.path.dirname(path))


def lease_after_take(
    held: Mapping[str, Any], owner: Mapping[str, Any], minutes: int, now: float, *, dead: Sequence[str] = (), by_force: bool = False
) -> dict[str, Any]:
    """The lease of `owner`, or LeaseHeld when somebody else has the node."""
    other = held.get("id") and held["id"] != owner["id"]
    if other and held["id"] not in dead and not by_force and float(held.get("expires", 0)) > now:
        left = max(1, int((float(held["expires"]) - now) // 60))
        raise LeaseHeld(
            f"Another run holds this node: {held.get('user')} on {held.get('host')}, process {held.get('pid')}, "
            f"for at most {left} minutes more. Wait until it ends; if it is gone, run again with site_lease_break=true.",
            holder=dict(held),
        )
    return {**owner, "expires": int(now) + 60 * minutes}


def lease_after_release(held: Mapping[str, Any], owner: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing when the lease was the owner's; that of somebody else stays."""
    return {} if held.get("id") == owner["id"] else dict(held)


def drain_after(current: Mapping[str, Any], wanted: str, by: str, reason: str, services: Sequence[str]) -> dict[str, Any]:
    """Who has drained the node after the request. What an administrator has drained, only an administrator puts back."""
    before = {**ACTIVE, **current}
    if wanted == "drained":
        owner = ADMINISTRATOR if ADMINISTRATOR in (by, before["by"]) else SITE
        keeps = before["state"] == "drained" and owner == before["by"]
        return {
            "state": "drained",
            "by": owner,
            "reason": before["reason"] if keeps and before["reason"] else reason,
            "services": sorted({*before["services"], *services}),
        }
    if before["state"] == "drained" and before["by"] == ADMINISTRATOR and by != ADMINISTRATOR:
        # The services were started again by the caller; the node itself stays out of service.
        return {**before, "services": []}
    return dict(ACTIVE)
