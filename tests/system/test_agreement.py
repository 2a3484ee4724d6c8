# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-smi and pynvml, started by hand in a node, say the same."""

from __future__ import annotations

import inspect
import json
import re

import pynvml
import pytest
from system_sandbox import Node

pytestmark = pytest.mark.sandbox
# Unmodified pynvml, given to the node's own Python by pipe; the node has no such package.
PROBE = """
import json
nvmlInit()
text = lambda value: value.decode() if isinstance(value, bytes) else value
gpus = []
for index in range(nvmlDeviceGetCount()):
    handle = nvmlDeviceGetHandleByIndex(index)
    migs = []
    try:
        mode = nvmlDeviceGetMigMode(handle)[0]
        for slot in range(nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                migs.append(text(nvmlDeviceGetUUID(nvmlDeviceGetMigDeviceHandleByIndex(handle, slot))))
            except NVMLError_NotFound:
                pass
    except NVMLError_NotSupported:
        mode = None
    gpus.append({
        "uuid": text(nvmlDeviceGetUUID(handle)),
        "name": text(nvmlDeviceGetName(handle)),
        "memory": nvmlDeviceGetMemoryInfo(handle, version=nvmlMemory_v2).total // 1024**2,
        "mode": {1: "Enabled", 0: "Disabled", None: "[N/A]"}[mode],
        "migs": migs,
    })
print(json.dumps({"driver": text(nvmlSystemGetDriverVersion()), "gpus": gpus}))
"""


@pytest.mark.parametrize("name", ["a100-1", "v100-1"])
def test_both_clients_agree(nodes: dict[str, Node], name: str) -> None:
    node = nodes[name]
    seen = json.loads(node.run("python3 -", stdin=inspect.getsource(pynvml) + PROBE))
    rows = [
        line.split(", ")
        for line in node.run("nvidia-smi --query-gpu=uuid,name,memory.total,mig.mode.current --format=csv,noheader,nounits").splitlines()
    ]
    assert rows == [[gpu["uuid"], gpu["name"], str(gpu["memory"]), gpu["mode"]] for gpu in seen["gpus"]]
    listed = re.findall(r"UUID: (MIG-[0-9a-f-]+)", node.run("nvidia-smi -L"))
    assert listed == [uuid for gpu in seen["gpus"] for uuid in gpu["migs"]]
    assert f"Driver Version: {seen['driver']}" in node.run("nvidia-smi")
