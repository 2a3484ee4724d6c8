# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xid errors since boot, from the kernel's log. PRIVATE: internal to the collection, may change at any time.

NVML tells Xid errors only to who waits for them. The log is a ring: it reaches back to the boot unless it overflowed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Any

_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?\): (\d+)")
# One record a read; a log that is written faster than it is read must not keep the module.
MOST_RECORDS = 20000


def since_boot(path: str = "/dev/kmsg") -> dict[str, list[dict[str, Any]]] | None:
    """Xid numbers and their counts by PCI address without its function, in the order of their first appearance.

    None where the log cannot be read, which takes root on most systems.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        counts = _count(descriptor)
    finally:
        os.close(descriptor)
    return {slot: [{"xid": xid, "count": count} for xid, count in xids.items()] for slot, xids in counts.items()}


def _count(descriptor: int) -> dict[str, Counter[int]]:
    counts: dict[str, Counter[int]] = {}
    for _record in range(MOST_RECORDS):
        try:
            record = os.read(descriptor, 8192)
        except BrokenPipeError:
            continue  # overwritten while it was read: the next one is whole
        except OSError:
            break  # the end of what is there now
        if not record:
            break
        for address, number in _XID.findall(record.decode(errors="replace")):
            counts.setdefault(slot(address), Counter())[int(number)] += 1
    return counts


def slot(address: str) -> str:
    """The driver writes a PCI address with four or eight digits of domain and without its function."""
    domain, bus, device = address.partition(".")[0].split(":")
    return f"{int(domain, 16):04x}:{bus}:{device}".lower()
