# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What decides whether the driver loads at the next boot, from recorded trees."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _kernel_facts
from ansible_collections.heterogpu.inference.plugins.module_utils._sysfs import Sysfs
from recorded import RecordedTree

RUNNING, NEXT = "6.8.0-45-generic", "6.8.0-48-generic"


@pytest.fixture
def tree(tmp_path: Path) -> RecordedTree:
    tree = RecordedTree(tmp_path)
    tree.file("proc/sys/kernel/osrelease", RUNNING)
    return tree


def files(tree: RecordedTree) -> Sysfs:
    return Sysfs(str(tree.root))


def binary(tree: RecordedTree, name: str, content: bytes) -> None:
    path = tree.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_kernels_that_may_boot_and_not_the_rest_of_a_removed_one(tree: RecordedTree) -> None:
    tree.file(f"lib/modules/{NEXT}/modules.dep")
    tree.file(f"boot/vmlinuz-{NEXT}")
    tree.file(f"var/lib/dpkg/info/linux-image-{NEXT}.list", "/.")
    tree.file("lib/modules/6.8.0-40-generic/updates/dkms/nvidia.ko")
    found = _kernel_facts.kernels(files(tree))
    assert [(kernel["release"], kernel["running"], kernel["packaged"]) for kernel in found] == [(RUNNING, True, False), (NEXT, False, True)]


def test_the_version_of_the_module_by_dkms(tree: RecordedTree) -> None:
    tree.file(f"lib/modules/{RUNNING}/updates/dkms/nvidia.ko.zst")
    tree.file(f"var/lib/dkms/nvidia/580.95.05/{RUNNING}/x86_64/module/nvidia.ko.zst")
    tree.file("var/lib/dkms/nvidia-fs/2.17/source")
    tree.file(f"lib/modules/{RUNNING}/build/Makefile")
    (kernel,) = _kernel_facts.kernels(files(tree))
    assert (kernel["module_version"], kernel["headers"]) == ("580.95.05", True)


@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_the_version_of_the_module_by_itself(tree: RecordedTree, suffix: str) -> None:
    content = b"\x7fELF\0license=NVIDIA\0version=535.183.06\0srcversion=1.2\0"
    binary(tree, f"lib/modules/{RUNNING}/kernel/nvidia-535srv/nvidia.ko{suffix}", lzma.compress(content) if suffix else content)
    (kernel,) = _kernel_facts.kernels(files(tree))
    assert kernel["module_version"] == "535.183.06"


def test_no_module_has_no_version(tree: RecordedTree) -> None:
    (kernel,) = _kernel_facts.kernels(files(tree))
    assert kernel == {"release": RUNNING, "running": True, "module_version": None, "headers": False, "packaged": False}


@pytest.mark.parametrize(
    ("variable", "enrolled", "key", "expected"),
    [
        (None, None, None, {"enabled": False, "signing_key_enrolled": None}),
        (b"\x06\0\0\0\0", None, None, {"enabled": False, "signing_key_enrolled": None}),
        (b"\x06\0\0\0\1", None, None, {"enabled": True, "signing_key_enrolled": None}),
        (b"\x06\0\0\0\1", b"other", b"\x30\x82key", {"enabled": True, "signing_key_enrolled": False}),
        (b"\x06\0\0\0\1", b"list\x30\x82keyend", b"\x30\x82key", {"enabled": True, "signing_key_enrolled": True}),
    ],
)
def test_secure_boot(
    tree: RecordedTree, variable: bytes | None, enrolled: bytes | None, key: bytes | None, expected: dict[str, bool | None]
) -> None:
    for name, content in (
        (_kernel_facts.SECURE_BOOT, variable),
        (_kernel_facts.OWNER_KEYS[0], enrolled),
        (_kernel_facts.SIGNING_KEYS[0], key),
    ):
        if content is not None:
            binary(tree, name, content)
    assert _kernel_facts.secure_boot(files(tree)) == expected


def test_services(tree: RecordedTree) -> None:
    tree.file("lib/systemd/system/nvidia-persistenced.service", "[Service]\nType=forking")
    tree.file("lib/systemd/system/nvidia-fabricmanager.service", "[Install]\nWantedBy=multi-user.target")
    (tree.root / "run/systemd/units").mkdir(parents=True)
    (tree.root / "run/systemd/units/invocation:nvidia-persistenced.service").symlink_to("0123")
    found = _kernel_facts.read(files(tree))["services"]
    assert found["nvidia-persistenced"] == {"installed": True, "enabled": True, "active": True}
    assert found["nvidia-fabricmanager"] == {"installed": True, "enabled": False, "active": False}
    tree.file("etc/systemd/system/multi-user.target.wants/nvidia-fabricmanager.service")
    assert _kernel_facts.service(files(tree), "nvidia-fabricmanager")["enabled"]


def test_nouveau(tree: RecordedTree) -> None:
    assert not _kernel_facts.read(files(tree))["nouveau_loaded"]
    tree.file("sys/module/nouveau/refcnt", 0)
    assert _kernel_facts.read(files(tree))["nouveau_loaded"]
