# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What decides whether the driver loads at the next boot, and its services. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import lzma
import os
import re
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs

SERVICES = ("nvidia-persistenced", "nvidia-fabricmanager")
UNITS = ("etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
EFI = "sys/firmware/efi"
SECURE_BOOT = f"{EFI}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
# The enrolled machine owner keys, where the running kernel has them and where the firmware's variable has them.
OWNER_KEYS = (f"{EFI}/mok-variables/MokListRT", f"{EFI}/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23")
# Certificates with which DKMS signs: Ubuntu's, and the one of DKMS itself.
SIGNING_KEYS = ("var/lib/shim-signed/mok/MOK.der", "var/lib/dkms/mok.pub")
# In a module's text section a field ends with a zero byte.
_TREE = re.compile(r"^nvidia(-current)?(-open)?$")
_VERSION = re.compile(rb"(?:^|[\0\n])version=(\d+\.\d+(?:\.\d+)?)(?=[\0\n]|$)")


def read(files: Sysfs) -> dict[str, Any]:
    return {
        "kernels": kernels(files),
        "nouveau_loaded": bool(files.names("sys/module/nouveau")),
        "secure_boot": secure_boot(files),
        "services": {name: service(files, name) for name in SERVICES},
    }


def kernels(files: Sysfs) -> list[dict[str, Any]]:
    """The running kernel and all that may boot next: a folder of modules is left behind by a removed one too."""
    running = files.text("proc/sys/kernel/osrelease") or ""
    found = [name for name in files.names("lib/modules") if name == running or _may_boot(files, name)]
    return [
        {
            "release": release,
            "running": release == running,
            "module_version": _module_version(files, release),
            "headers": os.path.isdir(files.path(f"lib/modules/{release}/build")),
            "packaged": os.path.exists(files.path(f"var/lib/dpkg/info/linux-image-{release}.list")),
        }
        for release in sorted({*found, running} - {""})
    ]


def _may_boot(files: Sysfs, release: str) -> bool:
    images = (f"boot/vmlinuz-{release}", f"lib/modules/{release}/vmlinuz")
    return any(os.path.exists(files.path(image)) for image in images)


def _module_version(files: Sysfs, release: str) -> str | None:
    for folder, _folders, names in os.walk(files.path(f"lib/modules/{release}")):
        for name in ("nvidia.ko", "nvidia.ko.xz", "nvidia.ko.zst", "nvidia.ko.gz"):
            if name in names:
                return _built_by_dkms(files, release) or _version_of(os.path.join(folder, name))
    return None


def _version_of(path: str) -> str | None:
    try:
        with lzma.open(path) if path.endswith(".xz") else open(path, "rb") as stream:
            match = _VERSION.search(stream.read())
    except (OSError, lzma.LZMAError):
        return None
    return match.group(1).decode() if match else None


def _built_by_dkms(files: Sysfs, release: str) -> str | None:
    """Cheaper than unpacking the module; two versions at once are left to the module itself."""
    trees = [f"var/lib/dkms/{name}" for name in files.names("var/lib/dkms") if _TREE.match(name)]
    versions = [version for tree in trees for version in files.names(tree) if files.names(f"{tree}/{version}/{release}")]
    return versions[0] if len(versions) == 1 else None


def secure_boot(files: Sysfs) -> dict[str, bool | None]:
    """Four bytes of attributes precede the value of an EFI variable. Without EFI there is no Secure Boot."""
    value = _bytes(files, SECURE_BOOT)
    enrolled = b"".join(_bytes(files, name) or b"" for name in OWNER_KEYS)
    keys = [key for key in (_bytes(files, name) for name in SIGNING_KEYS) if key]
    return {
        "enabled": bool(value and value[-1:] == b"\x01"),
        "signing_key_enrolled": any(key in enrolled for key in keys) if keys else None,
    }


def _bytes(files: Sysfs, name: str) -> bytes | None:
    try:
        with open(files.path(name), "rb") as stream:
            return stream.read()
    except OSError:
        return None


def service(files: Sysfs, name: str) -> dict[str, Any]:
    """Without an [Install] section a unit starts by other means, as Ubuntu's persistence daemon by a udev rule: nothing to enable."""
    unit = f"{name}.service"
    text = next((text for text in (files.text(f"{folder}/{unit}") for folder in UNITS) if text is not None), None)
    wanted = [folder for folder in files.names(UNITS[0]) if folder.endswith((".wants", ".requires"))]
    linked = any(unit in files.names(f"{UNITS[0]}/{folder}") for folder in wanted)
    return {
        "installed": text is not None,
        "enabled": linked or (text is not None and "[Install]" not in text),
        # systemd keeps this link while the unit is active.
        "active": os.path.islink(files.path(f"run/systemd/units/invocation:{unit}")),
    }
