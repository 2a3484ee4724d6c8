# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xid errors since boot, from the kernel's log. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import os
import re

_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?\): (\d+)")
# One record a read; a log that is written faster than it is read must not keep the module.
MOST_RECORDS = 20000


def since_boot(path: str = "/dev/kmsg") -> dict[str, list[int]] | None:
    """Xid numbers by PCI address without its function, oldest first; None where the log cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    found: dict[str, list[int]] = {}
    try:
        for _record in range(MOST_RECORDS):
            try:
                record = os.read(descriptor, 8192)
            except BrokenPipeError:
                continue  # overwritten while it was read: the next one is whole
            except OSError:
                break
            if not record:
                break
            for address, number in _XID.findall(record.decode(errors="replace")):
                domain, bus, device = address.split(":")
                found.setdefault(f"{int(domain, 16):04x}:{bus}:{device}".lower(), []).append(int(number))
    finally:
        os.close(descriptor)
    return found
