# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device files of MIG instances and the CDI specification. PRIVATE: internal to the collection, may change at any time.

The driver makes no device file for an instance; its helper does, from what /proc/driver/nvidia tells.
"""

from __future__ import annotations

# The program of the boot unit uses this too: it has no module to call.
# pylint: disable=ansible-bad-function
import glob
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator

from ansible_collections.heterogpu.inference.plugins.module_utils._errors import GpuError

CAPABILITIES = "/proc/driver/nvidia/capabilities"
DEVICES = "/dev/nvidia-caps"
MAJORS = "/proc/devices"
HELPER = "nvidia-modprobe"
CDI_UNIT = "nvidia-cdi-refresh.service"
UNIT_FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
TIMEOUT_S = 30.0


def make(folder: str = CAPABILITIES) -> list[str]:
    """The files that were missing."""
    missing = dict(_missing(folder))
    if not missing:
        return []
    reason = _by_helper(missing) if shutil.which(HELPER) else _by_hand(missing)
    left = [path for path, _capability in _missing(folder)]
    if left:
        raise GpuError(
            f"The device file {left[0]} and {len(left) - 1} more cannot be made ({reason or 'no reason was given'}); "
            f"install {HELPER} and run `{HELPER} -f {missing[left[0]]}` to see why."
        )
    return list(missing)


def _by_helper(missing: dict[str, str]) -> str:
    arguments = [part for path in missing.values() for part in ("-f", path)]
    try:
        done = subprocess.run([HELPER, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return " ".join((done.stdout + done.stderr).split())


def _by_hand(missing: dict[str, str]) -> str:
    """What the helper does, which not every distribution's packages bring."""
    try:
        with open(MAJORS, encoding="ascii") as stream:
            major = next(int(line.split()[0]) for line in stream if line.split()[1:] == ["nvidia-caps"])
        os.makedirs(DEVICES, mode=0o755, exist_ok=True)
        for device, path in missing.items():
            facts = _facts(path)
            os.mknod(device, stat.S_IFCHR, os.makedev(major, int(facts["DeviceFileMinor"])))
            os.chmod(device, int(facts["DeviceFileMode"]))
    except StopIteration:
        return f"{MAJORS} has no nvidia-caps"
    except (OSError, KeyError, ValueError) as error:
        return str(error)
    return ""


def _facts(path: str) -> dict[str, str]:
    with open(path, encoding="ascii") as stream:
        return dict(line.strip().split(": ", 1) for line in stream if ": " in line)


def _missing(folder: str) -> Iterator[tuple[str, str]]:
    """Device file and the file below /proc that describes it."""
    found = sorted({*glob.glob(f"{folder}/mig/*"), *glob.glob(f"{folder}/gpu*/mig/**/access", recursive=True)})
    for path in found:
        try:
            device = f"{DEVICES}/nvidia-cap{int(_facts(path)['DeviceFileMinor'])}"
        except (OSError, KeyError, ValueError):
            continue  # the instance went, or this driver tells it in another way
        if not os.path.exists(device):
            yield device, path


def refresh_cdi() -> bool:
    """Containers name devices by a specification that lists the device files. Not awaited: the unit may be ordered after the caller."""
    if not any(os.path.exists(f"{folder}/{CDI_UNIT}") for folder in UNIT_FOLDERS):
        return False
    command = ["systemctl", "start", "--no-block", CDI_UNIT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GpuError(f"The unit {CDI_UNIT} cannot be started: {error}.") from None
    if done.returncode != 0:
        raise GpuError(f"The unit {CDI_UNIT} cannot be started: {' '.join(done.stderr.split())}.")
    return True
