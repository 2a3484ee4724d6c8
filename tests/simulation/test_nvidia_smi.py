# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-smi of the simulated driver, as an operator calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HARDWARE = Path(__file__).resolve().parents[1] / "sandbox/hardware"


@pytest.fixture
def smi(simulated_node: Callable[..., Any]) -> Callable[..., tuple[int, str]]:
    node = simulated_node(["a100_80gb", "v100"])

    def call(*arguments: str, uid: int = 0) -> tuple[int, str]:
        environment = {**os.environ, **node.environment(uid), "PYTHONPATH": str(HARDWARE)}
        done = subprocess.run(
            [sys.executable, "-m", "nvidia_smi", *arguments], env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    call.node = node  # type: ignore[attr-defined]
    return call


def test_two_times_fourteen_are_two_2g_instances(smi: Any) -> None:
    assert smi("-mig", "1", "-i", "0") == (0, "Enabled MIG Mode for GPU 00000000:07:00.0\nAll done.\n")
    code, text = smi("mig", "-cgi", "14,14", "-C")
    assert code == 0 and text.count("using profile MIG 2g.20gb (ID 14)") == 2 and text.count("created compute instance") == 2
    _code, listed = smi("-L")
    assert listed.count("MIG 2g.20gb") == 2 and "GPU 1: Tesla V100" in listed
    assert smi("mig", "-dgi")[0] == 19
    assert smi("mig", "-dci")[0] == 0
    assert smi("mig", "-dgi")[0] == 0
    assert smi("mig", "-lgi") == (6, "No GPU instances found: Not Found\n")


def test_v100_is_a_warning(smi: Any) -> None:
    code, text = smi("-mig", "1", "-i", "1")
    assert code == 0 and "Not Supported\nTreating as warning and moving on.\nAll done." in text


def test_a_busy_gpu_stays_pending_and_is_not_reset(smi: Any) -> None:
    smi.node.add_holder("0000:07:00.0", pid=os.getpid())
    assert "pending enable state" in smi("-mig", "1", "-i", "0")[1]
    code, text = smi("--gpu-reset", "-i", "0")
    assert code == 19 and "in use by one or more other processes" in text
    smi.node.remove_holders()
    assert smi("--gpu-reset", "-i", "0")[0] == 0
    assert smi("--query-gpu=mig.mode.current,mig.mode.pending", "--format=csv,noheader", "-i", "0")[1] == "Enabled, Enabled\n"


def test_queries(smi: Any) -> None:
    assert smi("--query-gpu=index,memory.total", "--format=csv,noheader,nounits")[1].splitlines()[0] == "0, 81920"
    assert smi("--query-gpu=nonsense", "--format=csv")[0] == 2
    for arguments in ((), ("-q",), ("topo", "-m"), ("mig", "-lgip"), ("mig", "-lgipp"), ("--query-compute-apps=pid,used_memory",)):
        assert smi(*arguments)[0] == 0, arguments


def test_exit_codes_of_a_driver_that_is_not_there(smi: Any) -> None:
    smi.node.load_driver("535.183.06")
    assert smi("-L") == (18, "Failed to initialize NVML: Driver/library version mismatch\n")
    smi.node.unload_driver()
    assert smi("-L")[0] == 9


def test_ordinary_users_may_look_only(smi: Any) -> None:
    assert smi("-L", uid=1000)[0] == 0
    assert smi("-mig", "1", "-i", "0", uid=1000)[0] == 4


def test_lost_gpu_is_named_with_the_way_out(smi: Any) -> None:
    smi.node.set_health(**{"0000:0f:00.0": {"lost": True}})
    code, said = smi("-L")
    assert (code, said) == (15, "Unable to determine the device handle for GPU1: GPU is lost.  Reboot the system to recover this GPU\n")


def test_what_is_not_permitted_or_not_a_number_is_no_traceback(smi: Any) -> None:
    smi("-mig", "1", "-i", "0")
    assert smi("mig", "-lgi", uid=1000) == (4, "Insufficient Permissions\n")
    assert smi("-pl", "abc")[0] == 2
    assert smi("mig", "-dgi", "-gi", "x")[0] == 2
