# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts a built tree in the place of a folder of the kernel, and keeps what the tree does not have."""

from __future__ import annotations

import ctypes
import os

BIND = 0x1000
_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str = "none", flags: int = 0, data: str = "") -> None:
    """mount(2); a program for each of the mounts would cost a node more time than all the rest of its simulation."""
    if _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{source} cannot be mounted on {target}: {os.strerror(error)}", target)


def bind(source: str, target: str) -> None:
    mount(source, target, flags=BIND)


def unmount(target: str) -> None:
    if _libc.umount2(target.encode(), 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{target} cannot be unmounted: {os.strerror(error)}", target)


def replace(tree: str, target: str, merge: tuple[str, ...] = ()) -> None:
    """The tree in the place of `target`. Entries that only the kernel has appear in it as they are: bound, because an overlay's
    files cannot be polled, which systemd-logind does. `merge` names subfolders that get the kernel's entries the same way."""
    kept: list[tuple[int, str]] = []
    for folder in ("", *merge):
        real = os.path.join(target, folder)
        if not os.path.isdir(real):
            continue
        for name in os.listdir(real):
            if not os.path.lexists(os.path.join(tree, folder, name)):
                kept.append((_stand_in(os.path.join(real, name), os.path.join(tree, folder, name)), os.path.join(target, folder, name)))
    bind(tree, target)
    for descriptor, place in kept:
        if descriptor >= 0:
            bind(f"/proc/self/fd/{descriptor}", place)
            os.close(descriptor)


def _stand_in(real: str, copy: str) -> int:
    """Something to mount on, and a descriptor of what is mounted there. A link needs no mount: returns -1."""
    if os.path.islink(real):
        os.symlink(os.readlink(real), copy)
        return -1
    if os.path.isdir(real):
        os.makedirs(copy)
    else:
        with open(copy, "w", encoding="utf-8"):
            pass
    return os.open(real, os.O_PATH)


def overlay(tree: str, target: str, work: str) -> None:
    """New entries beside those that the kernel has and goes on adding; for folders of links, which nobody polls."""
    os.makedirs(tree, exist_ok=True)
    os.makedirs(work, exist_ok=True)
    mount("overlay", target, kind="overlay", data=f"lowerdir={target},upperdir={tree},workdir={work}")
