# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Judges a driver against the hardware and firmware of one node, before anything is changed."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _catalog

_DATA = Path(__file__).resolve().parents[2] / "data"


def findings(
    gpu_info: Mapping[str, Any], version: str, branch: str, flavour: str, today: datetime.date | None = None
) -> dict[str, list[str]]:
    """`errors` refuse the driver on this node, `warnings` do not."""
    of_version = version.partition(".")[0]
    errors = list(_by_hardware(gpu_info, {"driver_branch": of_version, "driver_flavour": flavour}))
    if branch and str(branch) != of_version:
        errors.append(f"The driver version {version} is not of the branch {branch}. Correct gpu_driver_version or gpu_driver_branch.")
    secure_boot = gpu_info["driver"].get("secure_boot") or {}
    if secure_boot.get("enabled") and not secure_boot.get("signing_key_enrolled"):
        errors.append(
            "Secure Boot is on and no enrolled key signs modules that are built here, so the kernel would refuse the driver. "
            "Enrol the key of DKMS with `mokutil --import` and a reboot, or switch Secure Boot off."
        )
    return {"errors": errors, "warnings": list(_end_of_life(of_version, today or datetime.datetime.now(datetime.UTC).date()))}


def _by_hardware(gpu_info: Mapping[str, Any], facts: Mapping[str, str]) -> Iterator[str]:
    """Each broken rule once, with the GPUs that break it."""
    for rule in _rules():
        broken = [gpu["pci_address"] for gpu in gpu_info["gpus"] if _broken(rule, gpu, facts)]
        if broken:
            yield f"{rule.sentence} It concerns {', '.join(str(address) for address in broken)}. {rule.remedy}"


def _broken(rule: _catalog.Rule, gpu: Mapping[str, Any], facts: Mapping[str, str]) -> bool:
    """Before the driver is there only the bus tells the model."""
    text = gpu.get("compute_capability") or _capabilities().get(gpu.get("pci_device_id") or "")
    return text is not None and rule.broken(_catalog.capability(text), facts)


def _end_of_life(branch: str, today: datetime.date) -> Iterator[str]:
    for row in _compat()["driver_branches"]["rows"]:
        if row["branch"] == f"R{branch}" and str(row["eol"]) < f"{today:%Y-%m}":
            supported = [other["branch"] for other in _compat()["driver_branches"]["rows"] if str(other["eol"]) >= f"{today:%Y-%m}"]
            yield f"Driver branch R{branch} had its end of life in {row['eol']}; supported are {', '.join(supported)}. Plan the change."


@lru_cache(maxsize=1)
def _rules() -> tuple[_catalog.Rule, ...]:
    return tuple(
        rule
        for rule in _catalog.load(_DATA).rules
        if rule.subject == "node" and not rule.when and rule.fact in ("driver_branch", "driver_flavour")
    )


@lru_cache(maxsize=1)
def _compat() -> dict[str, Any]:
    return yaml.safe_load((_DATA / "compat.yml").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _capabilities() -> dict[str, str]:
    """Compute capability by PCI device id as sysfs writes it; the tables have vendor and device in one number."""
    found: dict[str, str] = {}
    for path in sorted((_DATA / "gpu-profiles").glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        for number in document["pci_device_ids"]:
            found[f"0x{int(number, 16) >> 16:04x}"] = str(document["compute_capability"])
    return found
