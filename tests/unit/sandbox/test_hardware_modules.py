# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel side below a folder: what loading shows, and who keeps a module from being unloaded."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from _hardware import node
from gpu_sandbox import device_files, kmod, loaded, modules
from gpu_sandbox.pci import PciTree
from gpu_sandbox.tree import Tree

VERSION = "580.95.05"


class Machine:
    """A node's folders; device files are made as plain files, which needs no privilege."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("run", "dev", "proc", "module", "library", "etc"):
            (root / name).mkdir()
        self.become("hgx_a100_8")

    def become(self, profile: str, **declared: Any) -> None:
        self.hardware = node(profile, **declared)
        (self.root / "etc/hardware.json").write_text(json.dumps(self.hardware), encoding="utf-8")
        shutil.rmtree(self.root / "run/sys", ignore_errors=True)
        PciTree(Tree(str(self.root / "run/sys")), self.hardware).build()

    def install(self, version: str = VERSION, flavour: str = "proprietary", names: tuple[str, ...] = tuple(modules.NEEDS)) -> None:
        folder = self.root / "library" / os.uname().release / "updates/dkms"
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            text = f"name={name}\nversion={version}\nflavour={flavour}\n"
            (folder / f"{name.replace('_', '-')}.ko").write_text(text, encoding="utf-8")

    def hold(self, file_name: str, pid: int = 71) -> None:
        """A process with a device file open."""
        (self.root / f"proc/{pid}/fd").mkdir(parents=True)
        (self.root / f"proc/{pid}/fd/3").symlink_to(self.root / "dev" / file_name)

    def loaded(self) -> list[str]:
        return sorted(modules.read())

    def device_files(self) -> set[str]:
        return {str(path.relative_to(self.root / "dev")) for path in (self.root / "dev").rglob("*") if path.is_file()}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(modules, "RUN", str(tmp_path / "run"))
    monkeypatch.setattr(modules, "HARDWARE", str(tmp_path / "etc/hardware.json"))
    for name, folder in (("DEV", "dev"), ("PROC", "proc"), ("SYS_MODULE", "module"), ("LIBRARY", "library")):
        monkeypatch.setattr(modules, name, str(tmp_path / folder))

    def plain_file(path: str, mode: int, _device: int) -> None:
        Path(path).touch()

    monkeypatch.setattr(device_files.os, "mknod", plain_file)
    return Machine(tmp_path)


def test_nothing_to_load_without_a_package(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert kmod.main("modprobe", "nvidia") == 1
    assert "FATAL: Module nvidia not found in directory" in capsys.readouterr().err
    assert kmod.main("modinfo", "nvidia") == 1


def test_loading_shows_the_driver(machine: Machine) -> None:
    machine.install()
    assert kmod.main("modprobe", "nvidia") == 0
    proc = machine.root / "run/proc/driver"
    assert f"Kernel Module  {VERSION}  " in (proc / "nvidia/version").read_text(encoding="ascii")
    gpu = machine.hardware["gpus"][3]
    information = (proc / f"nvidia/gpus/{gpu['pci_address']}/information").read_text(encoding="ascii")
    assert f"GPU UUID: \t {gpu['uuid']}\n" in information
    assert "Device Minor: \t 3\n" in information
    expected = {"nvidiactl", "nvidia-nvswitchctl", "nvidia-caps/nvidia-cap1", "nvidia-caps/nvidia-cap2"}
    assert machine.device_files() == expected | {f"nvidia{n}" for n in range(8)} | {f"nvidia-nvswitch{n}" for n in range(6)}
    assert (machine.root / "module/nvidia/version").read_text(encoding="ascii").strip() == VERSION
    device = machine.root / f"run/sys/bus/pci/devices/{gpu['pci_address']}"
    assert (device / "driver").resolve().name == "nvidia"
    assert len(os.listdir(proc / "nvidia-nvswitch/devices")) == 6


def test_unloading_leaves_nothing(machine: Machine) -> None:
    machine.install()
    assert kmod.main("modprobe", "nvidia") == 0
    (machine.root / "run/driver.json").write_text("{}", encoding="utf-8")
    assert kmod.main("modprobe", "-r", "nvidia") == 0
    assert machine.loaded() == []
    assert machine.device_files() == set()
    assert not (machine.root / "run/driver.json").exists()
    assert not (machine.root / "module/nvidia").exists()
    assert not (machine.root / "run/proc/driver/nvidia").exists()
    device = machine.root / f"run/sys/bus/pci/devices/{machine.hardware['gpus'][0]['pci_address']}"
    assert not os.path.lexists(device / "driver")


def test_dependencies_come_and_keep(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.install()
    assert kmod.main("modprobe", "-a", "nvidia-uvm", "nvidia-drm") == 0
    assert machine.loaded() == ["nvidia", "nvidia_drm", "nvidia_modeset", "nvidia_uvm"]
    assert sorted(os.listdir(machine.root / "module/nvidia/holders")) == ["nvidia_modeset", "nvidia_uvm"]
    assert (machine.root / "module/nvidia/refcnt").read_text(encoding="ascii") == "2\n"
    assert kmod.main("rmmod", "nvidia") == 1
    assert "Module nvidia is in use by: nvidia_modeset nvidia_uvm" in capsys.readouterr().err
    assert kmod.main("modprobe", "-r", "nvidia_drm") == 0
    assert machine.loaded() == ["nvidia", "nvidia_uvm"]
    assert (machine.root / "module/nvidia/refcnt").read_text(encoding="ascii") == "1\n"
    assert kmod.main("modprobe", "-r", "nvidia_uvm", "nvidia") == 0
    assert machine.loaded() == []


@pytest.mark.parametrize("file_name", ["nvidia3", "nvidiactl", "nvidia-caps/nvidia-cap30", "nvidia-nvswitch1"])
def test_open_device_file_keeps_the_driver(machine: Machine, file_name: str, capsys: pytest.CaptureFixture[str]) -> None:
    machine.install()
    kmod.main("modprobe", "nvidia")
    machine.hold(file_name)
    assert kmod.main("rmmod", "nvidia") == 1
    assert capsys.readouterr().err == "rmmod: ERROR: Module nvidia is in use\n"
    assert machine.loaded() == ["nvidia"]


def test_open_file_of_a_dependant_keeps_only_that(machine: Machine) -> None:
    machine.install()
    kmod.main("modprobe", "nvidia_uvm")
    machine.hold("nvidia-uvm")
    assert modules.held("nvidia_uvm")
    assert not modules.held("nvidia")


@pytest.mark.parametrize("file_name", ["holders.json", "fabricmanager.json"])
def test_living_user_of_the_gpus_keeps_the_driver_and_a_dead_one_does_not(machine: Machine, file_name: str) -> None:
    machine.install()
    kmod.main("modprobe", "nvidia")
    user = {"kind": "nvml", "gpu": "0000:07:00.0", "pid": 4242}
    document = [user] if file_name == "holders.json" else user
    (machine.root / "run" / file_name).write_text(json.dumps(document), encoding="utf-8")
    assert not modules.held("nvidia")
    (machine.root / "proc/4242").mkdir()
    assert kmod.main("rmmod", "nvidia") == 1


def test_open_flavour_does_not_drive_a_v100(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.become("pcie_v100_8")
    machine.install(flavour="open")
    assert kmod.main("modprobe", "nvidia") == 1
    assert "could not insert 'nvidia': No such device" in capsys.readouterr().err
    assert machine.device_files() == set()
    machine.install(flavour="proprietary")
    assert kmod.main("modprobe", "nvidia") == 0


def test_flavour_shows(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.install(flavour="open")
    assert kmod.main("modprobe", "nvidia") == 0
    assert "Open Kernel Module" in (machine.root / "run/proc/driver/nvidia/version").read_text(encoding="ascii")
    assert kmod.main("modinfo", "-F", "license", "nvidia") == 0
    assert capsys.readouterr().out == "Dual MIT/GPL\n"


def test_upgraded_dependant_does_not_fit_the_loaded_driver(machine: Machine) -> None:
    machine.install()
    kmod.main("modprobe", "nvidia")
    machine.install(version="580.173.02")
    assert kmod.main("modprobe", "nvidia_uvm") == 1
    assert modules.read()["nvidia"]["version"] == VERSION


def test_dry_run_and_unload_of_what_is_not_loaded(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.install()
    assert kmod.main("modprobe", "-n", "nvidia") == 0
    assert kmod.main("modprobe", "-r", "nvidia") == 0
    assert kmod.main("rmmod", "nvidia") == 1
    assert machine.loaded() == []
    assert "Module nvidia is not currently loaded" in capsys.readouterr().err


def test_lsmod_lists_users(machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    listed = machine.root / "modules"
    listed.write_text("overlay 212992 2 - Live 0x0000000000000000\nib_core 65536 1 mlx5_ib, Live 0x0000000000000000\n", encoding="ascii")
    monkeypatch.setattr(kmod, "PROC_MODULES", str(listed))
    machine.install()
    kmod.main("modprobe", "nvidia_uvm")
    assert kmod.main("lsmod") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["nvidia", "16384", "1", "nvidia_uvm"] in rows
    assert ["ib_core", "65536", "1", "mlx5_ib"] in rows
    assert ["overlay", "212992", "2"] in rows


def test_other_modules_go_to_the_real_tool(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def become(path: str, arguments: list[str]) -> None:
        seen.append((path, arguments))
        raise SystemExit

    monkeypatch.setattr(os, "execv", become)
    with pytest.raises(SystemExit):
        kmod.main("modprobe", "ib_umad")
    assert seen == [("/usr/bin/kmod", ["modprobe", "ib_umad"])]


def test_instances_get_device_files_with_the_mode_of_their_capability(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = machine.root / "capabilities/gpu0/mig/gi3/ci0"
    folder.mkdir(parents=True)
    for place, minor in ((folder.parent, 30), (folder, 31)):
        (place / "access").write_text(f"DeviceFileMinor: {minor}\nDeviceFileMode: 256\nDeviceFileModify: 1\n", encoding="ascii")
    device_files.make_capabilities(str(machine.root / "capabilities"), str(machine.root / "dev"))
    assert machine.device_files() == {"nvidia-caps/nvidia-cap30", "nvidia-caps/nvidia-cap31"}
    assert stat.S_IMODE((machine.root / "dev/nvidia-caps/nvidia-cap30").stat().st_mode) == 0o400


def test_minor_numbers_are_those_of_the_drivers_table() -> None:
    """Known lines: config and monitor first, then nine numbers for each of fifteen GPU instances of a GPU."""
    table = dict(line.rsplit(" ", 1) for line in loaded.mig_minors().splitlines())
    assert (table["config"], table["monitor"]) == ("1", "2")
    assert (table["gpu0/gi0/access"], table["gpu0/gi0/ci0/access"], table["gpu0/gi1/access"]) == ("3", "4", "12")
    assert table["gpu1/gi0/access"] == "138"
    assert len(set(table.values())) == len(table)
