"""Single packages: content, maintainer scripts, and when they are built anew."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from _repository import DRIVERS, SYSTEMS, all_packages
from hypothesis import given
from hypothesis import strategies as st
from repository_builder import deb
from repository_builder.declarations import DeclarationError, Declarations, Package, fill


def find(name: str, version: str, system: str = "debian-12") -> Package:
    return next(package for package in all_packages(system) if package.name == name and package.values.get("version") == version)


@pytest.fixture(name="build")
def fixture_build(tmp_path: Path) -> Path:
    build = tmp_path / "build"
    for _branch, version in DRIVERS:
        folder = build / "driver" / version
        folder.mkdir(parents=True)
        (folder / f"libnvidia-ml.so.{version}").write_text(f"library {version}", encoding="utf-8")
        (folder / f"libcuda.so.{version}").write_text(f"stub {version}", encoding="utf-8")
    return build


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_library_package(build: Path, tmp_path: Path):
    package = find("libnvidia-compute-580-server", "580.95.05")
    target = tmp_path / "pool" / package.file_name
    deb.write(package, build, target)
    content = output("dpkg-deb", "--contents", str(target))
    assert "./usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 -> libnvidia-ml.so.580.95.05" in content
    assert "root/root" in content
    assert output("dpkg-deb", "--field", str(target), "Version").strip() == "580.95.05-0ubuntu0.22.04.1"
    assert output("dpkg-deb", "--info", str(target), "triggers").split() == ["activate-noawait", "ldconfig"] * 2


def test_a_changed_library_makes_a_new_package(build: Path):
    package = find("libnvidia-compute-580-server", "580.95.05")
    other = find("libnvidia-compute-580-server", "580.173.02")
    before, untouched = deb.fingerprint(package, build), deb.fingerprint(other, build)
    (build / "driver/580.95.05/libnvidia-ml.so.580.95.05").write_text("another library", encoding="utf-8")
    assert deb.fingerprint(package, build) != before
    assert deb.fingerprint(other, build) == untouched


@pytest.mark.parametrize(
    ("name", "flavour"), [("nvidia-kernel-source-580-server-open", "open"), ("nvidia-kernel-source-580-server", "proprietary")]
)
def test_module_stand_in_tells_version_and_flavour(build: Path, name: str, flavour: str):
    package = find(name, "580.173.02")
    files = {destination: source for destination, _mode, source in deb.payload(package, build)}
    module = files["/usr/src/nvidia-580.173.02/nvidia.ko"]
    assert module.splitlines() == ["name=nvidia", "version=580.173.02", f"flavour={flavour}"]
    assert set(files) == {
        f"/usr/src/nvidia-580.173.02/{file}"
        for file in ("dkms.conf", "nvidia.ko", "nvidia-uvm.ko", "nvidia-modeset.ko", "nvidia-drm.ko", "nvidia-peermem.ko")
    }


@pytest.mark.parametrize("system", SYSTEMS)
def test_maintainer_scripts_are_complete_and_parse(system: str):
    seen = 0
    for package in all_packages(system):
        for name, text in deb.scripts(package).items():
            assert text.startswith("#!/bin/sh\nset -e\n"), (package.name, name)
            subprocess.run(["sh", "-n"], input=text, text=True, check=True)
            seen += 1
    assert seen


def test_driver_daemons_are_started_only_where_their_package_does_it():
    assert "--no-persistence-mode" in "".join(
        str(component) for component in find("nvidia-compute-utils-580-server", "580.95.05").components
    )
    assert "--no-persistence-mode" not in "".join(str(component) for component in find("nvidia-persistenced", "580.95.05").components)
    assert "enable" not in deb.scripts(find("nvidia-fabricmanager-580", "580.95.05"))["postinst"].replace("enables", "")


def test_an_unknown_placeholder_is_refused():
    with pytest.raises(DeclarationError, match=r"\{flavour\}"):
        fill("nvidia-{flavour}", {"branch": "580"})
    with pytest.raises(DeclarationError, match="@NOTHING@"):
        deb.render("version @NOTHING@", {}, "a test")


def test_an_unknown_system_is_refused():
    with pytest.raises(DeclarationError, match="debian-11"):
        Declarations("debian-11")


def test_one_more_driver_version_appears_in_every_world():
    added = {
        package.name for package in Declarations("debian-12", ("580.178.04",)).packages() if package.values.get("version") == "580.178.04"
    }
    assert {"nvidia-fabricmanager-580", "nvidia-fabricmanager", "libnvidia-ml1", "nvidia-firmware-580-580.178.04"} <= added


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.from_regex(r"[0-9.]{0,6}", fullmatch=True), min_size=1))
def test_fill_replaces_every_placeholder(values: dict[str, str]):
    text = "-".join("{" + key + "}" for key in values)
    assert fill(text, values) == "-".join(values.values())
