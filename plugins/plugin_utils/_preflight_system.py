# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Judges a node's operating system, kernel, clock and PCIe fabric."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight_terms import (
    Details,
    Observed,
    checks,
    driver,
    error,
    listed,
    release,
    warning,
)

_MINIMUM_PYTHON = (3, 9)
# Certificates, tokens and logs of several nodes begin to disagree.
_MOST_SKEW_S = 2.0


def _system(observed: Observed) -> Iterator[Details]:
    system, supported = observed["system"], observed["supported_systems"]
    if system not in supported:
        yield error("operating system", f"The system {system} is not supported.", f"Use one of {listed(supported)}.")


def _python(observed: Observed) -> Iterator[Details]:
    version = observed["python"]["version"]
    if (version["major"], version["minor"]) < _MINIMUM_PYTHON:
        yield error(
            "python",
            f"Python {version['major']}.{version['minor']} is too old.",
            "Install Python 3.9 or newer and set ansible_python_interpreter.",
        )


def _kernel(observed: Observed) -> Iterator[Details]:
    kernels = driver(observed).get("kernels") or []
    running = next((kernel["release"] for kernel in kernels if kernel["running"]), None)
    newest = max((kernel["release"] for kernel in kernels), key=release, default=None)
    if running and newest != running:
        yield warning(
            "kernel",
            f"The node runs kernel {running} and will boot {newest} next.",
            "Drain and reboot it when it suits; the driver's module is made for both.",
        )
        return
    reboot = checks(observed).get("reboot") or {}
    if reboot.get("required"):
        because = f" because of {listed(reboot['packages'])}" if reboot["packages"] else ""
        yield warning("kernel", f"The distribution asks for a reboot{because}.", "Drain and reboot the node when it suits.")


def _secure_boot(observed: Observed) -> Iterator[Details]:
    state = driver(observed).get("secure_boot") or {}
    if state.get("enabled") and not state.get("signing_key_enrolled"):
        yield error(
            "secure boot",
            "Secure Boot is on and no enrolled key signs modules that are built on the node, so the kernel would refuse the driver.",
            "Enrol the key of DKMS with mokutil --import and a reboot, or switch Secure Boot off.",
        )


def _clock(observed: Observed) -> Iterator[Details]:
    clock = checks(observed).get("clock") or {}
    if clock.get("synchronised") is False:
        services = clock["services"]
        yield warning(
            "clock",
            f"The clock is not synchronised; {f'{listed(services)} runs, but has no time' if services else 'no time service runs'}.",
            "Look at chronyc sources or timedatectl timesync-status." if services else "Install chrony or enable systemd-timesyncd.",
        )
    skew = clock.get("skew_s") or 0.0
    if abs(skew) > _MOST_SKEW_S:
        yield warning(
            "clock",
            f"The clock is {abs(skew):g} s {'ahead of' if skew > 0 else 'behind'} the controller's.",
            "Synchronise both with the same time servers.",
        )


def _fabric(observed: Observed) -> Iterator[Details]:
    """Hints: GPUs that are given to virtual machines need both."""
    fabric = checks(observed).get("iommu") or {}
    ours = [gpu for gpu in fabric.get("gpus") or [] if gpu["kernel_driver"] in (None, "nvidia")]
    translated = [gpu["pci_address"] for gpu in ours if (gpu["iommu_type"] or "").startswith("DMA")]
    if translated:
        said = f" (kernel arguments: {' '.join(fabric['arguments'])})" if fabric["arguments"] else ""
        yield warning(
            "iommu",
            f"The IOMMU translates every access of GPU {listed(translated)}{said}; traffic between GPUs and to adapters is slow or fails.",
            "Boot with iommu=pt, unless the GPUs are for virtual machines.",
        )
    bridges = sorted({bridge for gpu in ours for bridge in gpu["redirecting_bridges"]})
    if bridges:
        yield warning(
            "acs",
            f"PCIe access control on {listed(bridges)} sends traffic between GPUs of one switch through the CPU.",
            "Switch ACS off in the firmware or with setpci at boot, unless the GPUs are for virtual machines.",
        )


def _read(observed: Observed) -> Iterator[Details]:
    message = observed.get("checks_message")
    if message:
        yield error("node", f"The node could not be read: {message}", "Correct that and run again.")


CHECKS = (_read, _system, _python, _kernel, _secure_boot, _clock, _fabric)
