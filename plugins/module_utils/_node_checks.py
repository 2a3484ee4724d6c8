# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a node to judge it and is no fact of its GPUs. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import os
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _checks_clock, _checks_iommu, _checks_owners
from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs

REBOOT = "run/reboot-required"


def read(root: str = "/") -> dict[str, Any]:
    files = Sysfs(root)
    return {
        "clock": _checks_clock.read(files),
        "iommu": _checks_iommu.read(files),
        "owners": _checks_owners.read(files),
        "reboot": {
            "required": os.path.exists(files.path(REBOOT)),
            "packages": sorted(set((files.text(f"{REBOOT}.pkgs") or "").split())),
        },
    }
