# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a CUDA release works with a driver and GPUs, by NVIDIA's rules. PRIVATE: internal to the collection, may change at any time.

The rules are data of the collection; the controller hands them to the node. Everything here is pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._errors import Refused

FULL, FORWARD, MINOR = "full", "forward", "minor_version"


@dataclass(frozen=True)
class Verdict:
    """`level` says by which rule the release works; `notes` what an operator should know although it does."""

    level: str
    minimum_driver: str | None
    notes: tuple[str, ...] = ()


def numbers(version: str) -> tuple[int, ...]:
    """(12, 2, 1) of 12.2.1."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def judge(release: str, driver: str, capabilities: Sequence[str], has_compat: bool, rules: dict[str, Any]) -> Verdict:
    """Raise Refused with the way out, or tell on which ground the release works."""
    cuda = ".".join(release.split(".")[:2])
    row = _row(release, rules["toolkits"])
    notes = _check_gpus(cuda, capabilities, row)
    minimum = row["min_driver"] if row else None
    if minimum and numbers(driver) >= numbers(minimum):
        return Verdict(FULL, minimum, notes)
    if has_compat and _over(driver, _compat(cuda, rules)):
        return Verdict(FORWARD, minimum, notes)
    floor = rules["minor"].get(cuda.partition(".")[0])
    if floor and numbers(driver) >= numbers(floor):
        if row is None:
            notes += (f"CUDA {release} is not in the collection's table; only the rule for its major version was applied.",)
        else:
            notes += (
                f"Driver {driver} runs CUDA {release} by minor version compatibility (full from {minimum} on): "
                "code that is compiled at run time from PTX of this release does not work.",
            )
        return Verdict(MINOR, minimum, notes)
    raise Refused(_refusal(release, cuda, driver, minimum or floor, rules))


def _row(release: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The row of the newest update release up to this one, else of the first one."""
    same = sorted((row for row in rows if numbers(row["cuda"])[:2] == numbers(release)[:2]), key=lambda row: numbers(row["cuda"]))
    if not same:
        return None
    older = [row for row in same if numbers(row["cuda"]) <= numbers(release)]
    return older[-1] if older else same[0]


def _check_gpus(cuda: str, capabilities: Sequence[str], row: dict[str, Any] | None) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    for capability in sorted(set(capabilities)):
        support = (row or {}).get("sm_" + capability.replace(".", ""))
        if support is False:
            raise Refused(
                f"CUDA {cuda} has no code for the GPUs of this node with compute capability {capability}; "
                "declare a release of CUDA 12 in cuda_version for this node."
            )
        if support == "deprecated":
            notes += (f"CUDA {cuda} is among the last releases with code for compute capability {capability}.",)
    return notes


def _compat(cuda: str, rules: dict[str, Any]) -> dict[str, Any] | None:
    return next((row for row in rules["compat"] if row["cuda"] == cuda), None)


def _over(driver: str, compat: dict[str, Any] | None) -> bool:
    """Whether the branch of this driver is listed, from this version on."""
    return compat is not None and any(
        numbers(first)[0] == numbers(driver)[0] and numbers(driver) >= numbers(first) for first in compat["kernel_drivers"]
    )


def _refusal(release: str, cuda: str, driver: str, needed: str | None, rules: dict[str, Any]) -> str:
    if needed is None:
        return (
            f"Nothing is known about CUDA {release} and driver {driver}; declare a release in cuda_version that the collection's table has."
        )
    compat = _compat(cuda, rules)
    way = f"declare driver {needed} or later in gpu_driver_version, or an older release in cuda_version"
    if _over(driver, compat) and compat is not None:
        way += f", or install {compat['package']} with cuda_forward_compatibility: true"
    return f"CUDA {release} does not work with driver {driver}, it needs {needed} or later; {way}."
