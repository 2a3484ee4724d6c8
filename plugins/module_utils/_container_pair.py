# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a podman and NVIDIA's container toolkit get along. PRIVATE: internal to the collection, may change at any time.

Podman refuses a whole CDI specification that is newer than it knows, so the pair is checked before either is touched. Everything here
is pure; the tables are data of the collection that the controller hands over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._cuda_rules import numbers
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import Refused

NO_GIDS = "no-additional-gids-for-device-nodes"


@dataclass(frozen=True)
class Pair:
    """`way` is cdi, runtime, or none without podman; `readable` the newest specification that podman reads."""

    way: str
    flags: tuple[str, ...] = ()
    readable: str | None = None


def match(podman: str | None, toolkit: str, wish: str, rules: dict[str, Any]) -> Pair:
    """Raise Refused when containers could not reach the GPUs in the wished way."""
    written = _row(toolkit, rules["toolkits"], "toolkit")
    if written is None:
        raise Refused(
            f"NVIDIA's container toolkit {toolkit} is too old, it cannot refresh its specification by itself; "
            f"declare {rules['toolkits'][0]['toolkit']} or later in container_toolkit_version."
        )
    if podman is None or wish == "ignore":
        return Pair("none")
    reader = _row(podman, rules["podman"], "podman")
    if reader is None:
        raise Refused(
            f"Podman {podman} is older than {rules['podman'][0]['podman']} and reaches GPUs in no known way; "
            "upgrade it, or leave it alone with container_toolkit_podman: ignore."
        )
    readable = reader["cdi"]
    if wish in ("auto", "cdi") and readable:
        for flags, version in (((), written["cdi"]), ((NO_GIDS,), written["without_gids"])):
            if numbers(version) <= numbers(readable):
                return Pair("cdi", flags, readable)
    if wish == "cdi":
        raise Refused(
            f"Podman {podman} reads "
            + (f"CDI specifications up to {readable}" if readable else "no CDI specifications")
            + f", but NVIDIA's container toolkit {toolkit} writes {written['without_gids']} or later; "
            "upgrade podman, or allow NVIDIA's OCI runtime with container_toolkit_podman: auto."
        )
    return Pair("runtime")


def is_readable(version: str, pair: Pair) -> bool:
    """Whether a specification that was really written can be read; the table says only what may be written at most."""
    return pair.readable is None or numbers(version) <= numbers(pair.readable)


def _row(version: str, rows: Sequence[dict[str, Any]], key: str) -> dict[str, Any] | None:
    """The newest row up to this version; rows are ordered."""
    return next((row for row in reversed(rows) if numbers(row[key]) <= numbers(version)), None)
