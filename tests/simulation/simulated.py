# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One simulated node on the host: its folders, what a test may do to it, and what it recorded."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pynvml

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "tests/sandbox/hardware"))
from sandbox_hardware import profiles  # noqa: E402 - found by the line above

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "heterogpu-sandbox"
NVSWITCH = {"pci_address": "0000:c4:00.0", "device_id": "0x1af1", "numa_node": 0, "pci_path": []}


@functools.cache
def build_library(driver: str) -> Path:
    """The TEST build of the driver's library; make rebuilds it only when its sources changed."""
    out = CACHE / "driver-test"
    subprocess.run(
        ["make", "-s", "-C", str(REPOSITORY / "tests/sandbox/driver"), "test-library", f"OUT={out}", f"VERSION={driver}"],
        check=True,
    )
    return out / f"test-{driver}" / "libnvidia-ml.so.1"


# Short names of the tests for the boards of data/gpu-profiles.
BOARDS = {
    "a100_80gb": "NVIDIA A100-SXM4-80GB",
    "a100_40gb": "NVIDIA A100-SXM4-40GB",
    "a30_24gb": "NVIDIA A30",
    "h100_80gb": "NVIDIA H100 80GB HBM3",
    "h200_141gb": "NVIDIA H200",
    "b200_180gb": "NVIDIA B200",
    "v100": "Tesla V100-SXM2-16GB",
}


def describe_gpu(index: int, board: str, nvlinks: int) -> dict[str, Any]:
    facts = profiles.board(BOARDS[board])
    return {
        "pci_address": f"0000:{7 + 8 * index:02x}:00.0",
        "gpu_profile": facts["nvml_name"],
        "name": facts["nvml_name"],
        "uuid": f"GPU-00000000-0000-4000-8000-{index:012d}",
        "serial": f"13205{index:08d}",
        "minor_number": index,
        "device_id": facts["pci_device_id"],
        "subsystem_id": facts["pci_subsystem_id"],
        "vbios": facts["vbios"],
        "numa_node": index % 2,
        "pcie_generation": facts["pcie"]["generation"],
        "pcie_width": facts["pcie"]["width"],
        "pci_path": [f"0000:{6 + 8 * index:02x}:00.0"],
        "nvlinks": [{"remote_type": "switch", "remote_pci": NVSWITCH["pci_address"], "version": 3}] * nvlinks,
    }


class SimulatedNode:
    """A machine below `root`; every method stands for something that happens to real hardware or to a process on it."""

    def __init__(self, root: Path, gpus: list[str], driver: str, library: Path, *, nvlinks: int = 0, passthrough: bool = False) -> None:
        self.root, self.library, self.driver = root, library, driver
        self.run, self.etc, self.var = root / "run/gpu-sandbox", root / "etc/gpu-sandbox", root / "var/lib/gpu-sandbox"
        for folder in (self.run, self.etc, self.var, root / "dev"):
            folder.mkdir(parents=True)
        described = [describe_gpu(index, profile, nvlinks) for index, profile in enumerate(gpus)]
        if passthrough:
            described = [{**gpu, "passthrough": True} for gpu in described]
        hardware = {
            "version": 1,
            "node": "simulated",
            "numa_nodes": [
                {"id": 0, "cpulist": "0-31,64-95", "memory_mib": 515072, "distances": [10, 32]},
                {"id": 1, "cpulist": "32-63,96-127", "memory_mib": 516096, "distances": [32, 10]},
            ],
            "gpus": described,
            "nvswitches": [NVSWITCH] if nvlinks else [],
            "gpu_profiles": {BOARDS[name]: profiles.board(BOARDS[name]) for name in set(gpus)},
        }
        self._write(self.etc / "hardware.json", hardware)
        self.load_driver()
        if nvlinks:
            self.start_fabric_manager()

    # --- how pynvml reaches it ---
    def environment(self, uid: int = 0) -> dict[str, str]:
        return {"GPU_SANDBOX_ROOT": str(self.root), "GPU_SANDBOX_UID": str(uid), "LD_LIBRARY_PATH": str(self.library.parent)}

    def use_in_process(self) -> None:
        """pynvml keeps its library in a module variable. A copy of the file is a library with state of its own."""
        own = self.root / "libnvidia-ml.so.1"
        shutil.copy(self.library, own)
        # getenv() in the library reads the C environment, which os.environ keeps up to date.
        pynvml.nvmlLib = ctypes.CDLL(str(own))
        pynvml._nvmlGetFunctionPointer_cache.clear()

    def forget_in_process(self) -> None:
        pynvml.nvmlLib = None
        pynvml._nvmlGetFunctionPointer_cache.clear()

    # --- what happens to it ---
    def load_driver(self, version: str | None = None, **others: Any) -> None:
        modules = {"nvidia": {"version": version or self.driver, "flavour": "proprietary"}, **others}
        self._write(self.run / "modules.json", modules)

    def unload_driver(self) -> None:
        for name in ("modules.json", "driver.json"):
            (self.run / name).unlink(missing_ok=True)

    def reboot(self) -> None:
        """/run is lost, /var stays."""
        shutil.rmtree(self.run)
        self.run.mkdir()
        self.load_driver()

    def start_fabric_manager(self, version: str | None = None) -> None:
        self._write(self.run / "fabricmanager.json", {"version": version or self.driver})

    def stop_fabric_manager(self) -> None:
        (self.run / "fabricmanager.json").unlink(missing_ok=True)

    def set_faults(self, *faults: dict[str, Any]) -> None:
        (self.run / "fault-counters.json").unlink(missing_ok=True)
        self._write(self.run / "faults.json", list(faults))

    def clear_faults(self) -> None:
        (self.run / "faults.json").unlink(missing_ok=True)
        (self.run / "fault-counters.json").unlink(missing_ok=True)

    def add_holder(
        self, gpu: str, gpu_instance_id: int | None = None, compute_instance_id: int | None = None, pid: int = 0, used_memory_mib: int = 512
    ) -> None:
        path = self.run / "holders.json"
        holders = json.loads(path.read_text()) if path.exists() else []
        holder: dict[str, Any] = {"kind": "nvml", "gpu": gpu, "pid": pid, "used_memory_mib": used_memory_mib}
        if gpu_instance_id is not None:
            holder["gpu_instance_id"] = gpu_instance_id
        if compute_instance_id is not None:
            holder["compute_instance_id"] = compute_instance_id
        self._write(path, [*holders, holder])

    def remove_holders(self) -> None:
        (self.run / "holders.json").unlink(missing_ok=True)

    def set_health(self, **gpus: dict[str, Any]) -> None:
        self._write(self.run / "health.json", gpus)

    # --- what it recorded ---
    def mutations(self) -> list[dict[str, Any]]:
        path = self.var / "mutations.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def forget_mutations(self) -> None:
        (self.var / "mutations.jsonl").unlink(missing_ok=True)

    def state(self) -> dict[str, Any]:
        path = self.run / "driver.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Put the GPUs into a state at once, as a test's starting point."""
        self._write(self.run / "driver.json", state)

    @staticmethod
    def _write(path: Path, document: Any) -> None:
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(document))
        temporary.rename(path)
