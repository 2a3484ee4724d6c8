"""The persistence daemon stand-in: sets the mode through NVML, keeps the devices open, and undoes both when it ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _repository import ROOT
from repository_builder import deb

TEMPLATE = ROOT / "tests/sandbox/repository/files/nvidia-persistenced.py"
FAKE_NVML = """
import pathlib
NVML_FEATURE_DISABLED, NVML_FEATURE_ENABLED = 0, 1
HERE = pathlib.Path(__file__).parent
class NVMLError(Exception): pass
def nvmlInit():
    if (HERE / "not-loaded").exists(): raise NVMLError("Driver Not Loaded")
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetMinorNumber(handle): return handle
def nvmlDeviceSetPersistenceMode(handle, mode):
    if handle == 1 and (HERE / "lost").exists(): raise NVMLError("GPU is lost")
    with (HERE / "calls").open("a") as log: print(handle, mode, file=log)
"""


class Daemon:
    """The daemon with its paths moved below a folder, on a made-up NVML."""

    def __init__(self, root: Path) -> None:
        self.root = root
        text = deb.render(TEMPLATE.read_text(encoding="utf-8"), {"version": "580.95.05"}, "the test")
        for path in ("/usr/lib/nvidia-persistenced", "/run/nvidia-persistenced", "/dev/nvidia"):
            text = text.replace(path, f"{root}{path}")
        for folder in ("usr/lib/nvidia-persistenced", "run", "dev"):
            (root / folder).mkdir(parents=True)
        (root / "daemon").write_text(text, encoding="utf-8")
        (self.library / "pynvml.py").write_text(FAKE_NVML, encoding="utf-8")
        for name in ("nvidiactl", "nvidia0", "nvidia1"):
            (root / "dev" / name).touch()

    @property
    def library(self) -> Path:
        return self.root / "usr/lib/nvidia-persistenced"

    @property
    def calls(self) -> list[str]:
        log = self.library / "calls"
        return log.read_text(encoding="ascii").splitlines() if log.exists() else []

    @property
    def pid(self) -> int | None:
        path = self.root / "run/nvidia-persistenced/nvidia-persistenced.pid"
        return int(path.read_text(encoding="ascii")) if path.exists() else None

    def start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(self.root / "daemon"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)

    def held(self) -> set[str]:
        folder = Path(f"/proc/{self.pid}/fd")
        targets = {os.readlink(path) for path in folder.iterdir()}
        return {Path(target).name for target in targets if target.startswith(str(self.root / "dev"))}

    def stop(self) -> None:
        assert self.pid
        descriptor = os.pidfd_open(self.pid)
        os.kill(self.pid, signal.SIGTERM)
        # The descriptor becomes readable when the process has ended.
        ended, _, _ = select.select([descriptor], [], [], 30)
        assert ended
        os.close(descriptor)


@pytest.fixture(name="daemon")
def fixture_daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path)
    yield daemon
    if daemon.pid and Path(f"/proc/{daemon.pid}").exists():
        daemon.stop()


def test_mode_is_set_and_devices_are_held(daemon: Daemon):
    assert daemon.start("--verbose").returncode == 0
    assert daemon.calls == ["0 1", "1 1"]
    assert daemon.held() == {"nvidiactl", "nvidia0", "nvidia1"}


def test_the_end_undoes_it(daemon: Daemon):
    daemon.start()
    daemon.stop()
    assert daemon.calls == ["0 1", "1 1", "0 0", "1 0"]


def test_without_persistence_mode_nothing_is_touched(daemon: Daemon):
    assert daemon.start("--no-persistence-mode").returncode == 0
    assert daemon.held() == set()
    daemon.stop()
    assert daemon.calls == []


def test_a_lost_gpu_does_not_keep_the_others_from_it(daemon: Daemon):
    (daemon.library / "lost").touch()
    done = daemon.start()
    assert (done.returncode, "GPU is lost" in done.stderr) == (0, True)
    assert daemon.held() == {"nvidiactl", "nvidia0"}


def test_without_a_driver_it_fails(daemon: Daemon):
    (daemon.library / "not-loaded").touch()
    done = daemon.start()
    assert (done.returncode, daemon.pid, "failed to initialize" in done.stderr) == (1, None, True)
