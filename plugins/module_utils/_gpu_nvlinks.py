# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVLinks of a GPU. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils import _pci
from ansible_collections.heterogpu.inference.plugins.module_utils._nvml import Reader, text

REMOTE_TYPES = {0: "gpu", 1: "npu", 2: "switch"}


def read(reader: Reader) -> list[dict[str, Any]]:
    links = []
    for link in range(reader.nvml.NVML_NVLINK_MAX_LINKS):
        state = reader.get("nvmlDeviceGetNvLinkState", link)
        if state is None:
            break  # a GPU numbers its links without holes
        remote = reader.get("nvmlDeviceGetNvLinkRemotePciInfo", link)
        links.append(
            {
                "link": link,
                "active": bool(state),
                "version": reader.get("nvmlDeviceGetNvLinkVersion", link),
                "remote_type": REMOTE_TYPES.get(reader.get("nvmlDeviceGetNvLinkRemoteDeviceType", link)),
                "remote_pci_address": _pci.normalise(text(remote.busId)) if remote else None,
                "errors": _errors(reader, link),
            }
        )
    return links


def _errors(reader: Reader, link: int) -> int | None:
    """Replays, recoveries and CRC errors since the driver was loaded, together; all of them are signs of a bad link."""
    counts = [reader.get("nvmlDeviceGetNvLinkErrorCounter", link, counter) for counter in range(reader.nvml.NVML_NVLINK_ERROR_COUNT)]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
