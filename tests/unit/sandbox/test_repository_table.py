"""data/packages.yml: complete, and in step with what the sandbox's repository offers."""

from __future__ import annotations

import subprocess

import pytest
from _repository import (
    DRIVERS,
    FLAVOURS,
    SOURCES,
    SYSTEMS,
    TABLE,
    declarations,
    driver_packages,
    expected_version,
    names,
    provided,
    reachable,
    relation,
    suite_packages,
    world,
)

WORLDS = [(system, source, branch, version) for system in SYSTEMS for source in SOURCES for branch, version in DRIVERS]
FIELDS = {
    "driver",
    "driver_metapackage",
    "kernel_module",
    "library",
    "utils",
    "persistenced",
    "fabric_manager",
    "nscq",
    "closure",
    "confidence",
    "source",
}
CONFIDENCE = {"verified", "corroborated", "memory"}


def older(first: str, second: str) -> bool:
    return subprocess.run(["dpkg", "--compare-versions", first, "lt", second], check=False).returncode == 0


def test_supported_systems():
    assert SYSTEMS == ["ubuntu-22.04", "ubuntu-24.04", "debian-12", "debian-13"]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("source", SOURCES)
def test_shape_of_a_source(system: str, source: str):
    entry = TABLE["systems"][system][source]
    assert entry["confidence"] in CONFIDENCE
    assert "{version}" in entry["package_version"]
    assert set(entry["branches"]) == set(TABLE["drivers"])
    for branch in entry["branches"].values():
        assert set(branch) - {"package_versions"} == FIELDS
        assert branch["confidence"] in CONFIDENCE
        assert set(branch["closure"]) == {"common", "open", "proprietary", "nvswitch"}
        assert set(branch["driver"]) == set(branch["kernel_module"]) == set(branch["driver_metapackage"]) == set(FLAVOURS)


@pytest.mark.parametrize(("system", "source", "branch", "version"), WORLDS)
def test_every_name_is_in_the_repository(system: str, source: str, branch: str, version: str):
    entry = world(system, source, branch)
    packages = driver_packages(system, source, branch, version)
    wanted = {entry[field] for field in ("library", "utils", "persistenced", "fabric_manager", "nscq")}
    for flavour in FLAVOURS:
        wanted |= {*entry["driver"][flavour], entry["driver_metapackage"][flavour], entry["kernel_module"][flavour]}
    for part in entry["closure"].values():
        wanted |= set(part)
    assert names(wanted, branch, version) <= set(packages)


@pytest.mark.parametrize(("system", "source", "branch", "version"), WORLDS)
def test_versions_follow_the_table(system: str, source: str, branch: str, version: str):
    entry = world(system, source, branch)
    packages = driver_packages(system, source, branch, version)
    for part in entry["closure"].values():
        for name in names(part, branch, version):
            assert packages[name].version == expected_version(system, source, branch, version, name), name


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize(("system", "source", "branch", "version"), WORLDS)
def test_the_closure_is_what_apt_would_bring_in(system: str, source: str, branch: str, version: str, flavour: str):
    entry = world(system, source, branch)
    packages = driver_packages(system, source, branch, version)
    prefer = names([entry["kernel_module"][flavour]], branch, version)
    start = names([*entry["driver"][flavour], entry["fabric_manager"], entry["nscq"]], branch, version)
    listed = names([*entry["closure"]["common"], *entry["closure"][flavour], *entry["closure"]["nvswitch"]], branch, version)
    assert reachable(packages, start, prefer) == listed


@pytest.mark.parametrize(("system", "source", "branch", "version"), WORLDS)
def test_the_fields_are_part_of_the_closure(system: str, source: str, branch: str, version: str):
    entry = world(system, source, branch)
    common = set(entry["closure"]["common"])
    assert {entry["library"], entry["utils"], entry["persistenced"]} <= common
    assert {entry["fabric_manager"], entry["nscq"]} == set(entry["closure"]["nvswitch"])
    for flavour in FLAVOURS:
        assert entry["kernel_module"][flavour] in entry["closure"][flavour]


@pytest.mark.parametrize(("system", "source", "branch", "version"), WORLDS)
def test_module_flavours_exclude_each_other(system: str, source: str, branch: str, version: str):
    packages = driver_packages(system, source, branch, version)
    first, second = (
        packages[next(iter(names([world(system, source, branch)["kernel_module"][flavour]], branch, version)))] for flavour in FLAVOURS
    )
    assert provided(second) & set(relation(first, "Conflicts"))
    assert provided(first) & set(relation(second, "Conflicts"))


@pytest.mark.parametrize(("branch", "version"), DRIVERS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_fabric_manager_of_the_distribution_is_tied_to_the_driver_version(system: str, branch: str, version: str):
    packages = driver_packages(system, "ubuntu", branch, version)
    manager = packages[f"nvidia-fabricmanager-{branch}"]
    tie = f"nvidia-kernel-common-{branch}-server-{version}"
    assert tie in relation(manager, "Depends")
    carriers = [package for package in suite_packages(system, "ubuntu") if tie in provided(package)]
    assert [package.values["version"] for package in carriers] == [version]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_versions_grow(system: str, source: str):
    ordered = [expected_version(system, source, branch, version, "any") for branch, version in DRIVERS]
    assert all(older(first, second) for first, second in zip(ordered, ordered[1:]))


@pytest.mark.parametrize("system", SYSTEMS)
def test_sandbox_has_the_branch_names_of_both_worlds(system: str):
    every = {package.name for suite in declarations(system).suites for package in suite_packages(system, suite)}
    assert {"nvidia-driver-580-server", "nvidia-driver-580", "nvidia-driver-580-open", "nvidia-open", "cuda-drivers-580"} <= every


@pytest.mark.parametrize("cuda", list(TABLE["cuda"]["toolkits"]))
def test_toolkit_closure_is_complete_and_brings_no_driver(cuda: str):
    entry = TABLE["cuda"]["toolkits"][cuda]
    offered = {package.name: package for package in suite_packages("debian-12", "cuda") if package.values.get("cuda", cuda) == cuda}
    brought = reachable(offered, [entry["toolkit"]], set())
    assert brought == set(entry["closure"]) | set(TABLE["cuda"]["shared"])
    assert all(offered[name].version == version for name, version in entry["closure"].items())
    assert offered[entry["compat"]].version == entry["compat_version"]
    assert entry["closure"][entry["toolkit"]] == entry["version"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_metapackages_that_must_not_be_installed_bring_a_driver(system: str):
    offered = {package.name: package for package in suite_packages(system, "nvidia")}
    drivers = {package.name for package in offered.values() if "branch" in package.values}
    for name in TABLE["cuda"]["never_install"]:
        assert reachable(offered, [name], set()) & drivers, name


def test_nccl_and_container_toolkit_are_offered():
    offered = {(package.name, package.version) for package in suite_packages("debian-12", "nvidia")}
    for entry in TABLE["nccl"]["versions"].values():
        assert {(name, entry["version"]) for name in TABLE["nccl"]["packages"]} <= offered
    toolkit = TABLE["container_toolkit"]
    assert {(name, toolkit["version"]) for name in toolkit["packages"]} <= offered


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("suite", ["ubuntu", "nvidia", "nvidia-ubuntu"])
def test_every_dependency_is_offered_or_in_the_node_image(system: str, suite: str):
    packages = suite_packages(system, suite)
    offered = set().union(*(provided(package) for package in packages)) | {"libc6", "libjansson4", "python3"}
    missing = {name for package in packages for name in relation(package, "Depends") if name not in offered}
    assert not missing


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("suite", ["ubuntu", "nvidia", "nvidia-ubuntu", "cuda", "container-toolkit"])
def test_a_suite_has_each_package_version_once(system: str, suite: str):
    keys = [(package.name, package.version) for package in suite_packages(system, suite)]
    assert len(keys) == len(set(keys))
