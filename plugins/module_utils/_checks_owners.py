# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who else keeps a driver or a MIG geometry on this node. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _kernel_facts
from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs

# What the driver container writes. The operator's validator writes the others too when it found the node's own driver, and
# /run/nvidia/driver may then be the node's own root.
OPERATOR_DRIVER = ("run/nvidia/nvidia-driver.pid", "run/nvidia/validations/.driver-ctr-ready")
OPERATOR = ("run/nvidia/validations/driver-ready", "run/nvidia/validations/toolkit-ready")
RUNFILE = ("usr/bin/nvidia-uninstall", "usr/bin/nvidia-installer")
MIG_MANAGER = "nvidia-mig-manager"
MIG_MANAGER_FILES = ("etc/nvidia-mig-manager", "var/lib/nvidia-mig-manager")
# kubelet names the folder of a pod's logs <namespace>_<name>_<uid>.
PODS = "var/log/pods"
KUBELET = ("var/lib/kubelet/config.yaml", "var/lib/kubelet/kubeconfig", "etc/kubernetes/kubelet.conf")
_PACKAGE = re.compile(r"^(nvidia-|libnvidia-|cuda-drivers|libcuda1$|xserver-xorg-video-nvidia)")


def read(files: Sysfs) -> dict[str, Any]:
    pods = sorted({name.split("_")[1] for name in files.names(PODS) if name.count("_") >= 2})
    return {
        "driver": {
            "packages": sorted(_packages(files)),
            "operator": _there(files, (*OPERATOR_DRIVER, *OPERATOR)),
            "operator_driver": _there(files, OPERATOR_DRIVER) + [name for name in pods if "nvidia-driver-daemonset" in name],
            "runfile": _there(files, RUNFILE),
        },
        "geometry": {
            "mig_manager": _kernel_facts.service(files, MIG_MANAGER),
            "files": _there(files, MIG_MANAGER_FILES),
            "pods": [name for name in pods if "mig-manager" in name],
        },
        "kubelet": bool(_there(files, KUBELET)),
    }


def _there(files: Sysfs, names: tuple[str, ...]) -> list[str]:
    return [f"/{name}" for name in names if os.path.exists(files.path(name))]


def _packages(files: Sysfs) -> Iterator[str]:
    """Installed packages by which a driver comes, from dpkg's own list."""
    for stanza in (files.text("var/lib/dpkg/status") or "").split("\n\n"):
        name = stanza.partition("\n")[0].partition(": ")[2]
        if _PACKAGE.match(name) and re.search(r"^Status: \S+ \S+ installed$", stanza, re.MULTILINE):
            yield name
