"""Apt on a throwaway node: install, hold, upgrade, downgrade, switch, remove and purge from the sandbox's repository."""

from __future__ import annotations

import pytest
import yaml
from throwaway_node import QUIET, REPOSITORY, ROOT, Node

TABLE = yaml.safe_load((ROOT / "data/packages.yml").read_text(encoding="utf-8"))
SYSTEM = "debian-12"
OLD, NEW = TABLE["drivers"]["580"]["versions"]
SOURCES = ["ubuntu", "nvidia"]

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.slow,  # test_package_set.py goes the same ways on nodes with the module
    pytest.mark.skipif(not (REPOSITORY / "dists").exists(), reason=f"{REPOSITORY} was not built yet"),
]


def closure(source: str, version: str, flavour: str = "open") -> dict[str, str]:
    """Every package of the driver with its exact version."""
    entry = TABLE["systems"][SYSTEM][source]
    branch = version.split(".", 1)[0]
    packages = entry["branches"][branch]["closure"]
    names = [*packages["common"], *packages[flavour], *packages["nvswitch"]]
    return {
        name.replace("{branch}", branch).replace("{version}", version): entry["package_version"].replace("{version}", version)
        for name in names
    }


def install(node: Node, packages: dict[str, str]) -> None:
    node.apt("install --allow-downgrades " + " ".join(f"{name}={version}" for name, version in packages.items()))
    assert packages.items() <= node.versions().items()


@pytest.mark.parametrize("source", SOURCES)
def test_upgrade_and_downgrade_move_the_whole_closure(node: Node, source: str):
    node.use(source)
    for version in (OLD, NEW, OLD):
        install(node, closure(source, version))
        assert node.module() == {"name": "nvidia", "version": version, "flavour": "open"}
        assert node.sh("readlink -f /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").endswith(f"libnvidia-ml.so.{version}\n")


@pytest.mark.parametrize("source", SOURCES)
def test_a_held_closure_stays_when_a_newer_version_is_there(node: Node, source: str):
    node.use(source)
    packages = closure(source, OLD)
    install(node, packages)
    node.sh("apt-mark hold " + " ".join(packages))
    node.apt("dist-upgrade")
    assert packages.items() <= node.versions().items()
    assert node.try_sh(
        f"apt-get {QUIET} install {next(iter(packages))}={closure(source, NEW).get(next(iter(packages)), 'gone')}"
    ).returncode


@pytest.mark.parametrize("source", SOURCES)
def test_the_module_flavours_replace_each_other(node: Node, source: str):
    node.use(source)
    install(node, closure(source, NEW, "open"))
    install(node, closure(source, NEW, "proprietary"))
    assert node.module()["flavour"] == "proprietary"
    modules = TABLE["systems"][SYSTEM][source]["branches"]["580"]["kernel_module"]
    assert modules["open"].replace("{branch}", "580") not in node.versions()


@pytest.mark.parametrize("source", SOURCES)
def test_another_branch(node: Node, source: str):
    node.use(source)
    install(node, closure(source, NEW, "proprietary"))
    older = TABLE["drivers"]["535"]["versions"][0]
    install(node, closure(source, older, "proprietary"))
    assert node.module()["version"] == older


@pytest.mark.parametrize("source", SOURCES)
def test_purge_leaves_nothing(node: Node, source: str):
    node.use(source)
    packages = closure(source, NEW)
    install(node, packages)
    node.apt("purge " + " ".join(packages))
    for path in ("/usr/src", "/var/lib/dkms", "/lib/modules", "/etc", "/usr/bin", "/usr/lib"):
        assert not node.files(path), path
    assert not node.sh("getent passwd nvidia-persistenced || true")


def test_pinning_the_metapackage_alone_does_not_pin_the_driver(node: Node):
    node.use("ubuntu")
    node.apt(f"install nvidia-headless-580-server={OLD}-0ubuntu0.22.04.1")
    assert node.versions()["libnvidia-compute-580-server"].startswith(NEW)


def test_fabric_manager_drags_the_driver_of_the_distribution_along(node: Node):
    node.use("ubuntu")
    install(node, closure("ubuntu", OLD))
    node.apt(f"install nvidia-fabricmanager-580={NEW}-0ubuntu0.22.04.1")
    assert node.versions()["libnvidia-compute-580-server"].startswith(NEW)


def test_fabric_manager_of_nvidia_moves_alone(node: Node):
    node.use("nvidia")
    install(node, closure("nvidia", OLD))
    node.apt(f"install nvidia-fabricmanager={NEW}-1")
    assert node.versions()["libnvidia-ml1"].startswith(OLD)


def test_the_pinning_package_of_nvidia_holds_a_version(node: Node):
    node.use("nvidia")
    node.apt(f"install nvidia-driver-pinning-{OLD}")
    node.apt("install nvidia-driver-cuda nvidia-kernel-open-dkms nvidia-fabricmanager")
    assert closure("nvidia", OLD).items() - {("libnvidia-nscq", f"{OLD}-1")} <= node.versions().items()


def test_an_unknown_version_is_refused(node: Node):
    node.use("nvidia")
    done = node.try_sh(f"apt-get {QUIET} install nvidia-smi=580.1.1-1")
    assert done.returncode == 100
    assert "Version '580.1.1-1' for 'nvidia-smi' was not found" in done.stderr


def test_an_unsigned_source_is_refused(node: Node):
    node.sh("printf '' > /etc/apt/keyrings/sandbox.asc")
    with pytest.raises(AssertionError, match=r"NO_PUBKEY|not signed"):
        node.use("nvidia")


def test_toolkits_stand_side_by_side_and_bring_no_driver(node: Node):
    node.use("nvidia")
    node.apt("install cuda-toolkit-12-2 cuda-toolkit-12-6 libnccl2=2.18.5-1+cuda12.2 libnccl-dev=2.18.5-1+cuda12.2")
    assert "release 12.2" in node.sh("/usr/local/cuda-12.2/bin/nvcc --version")
    assert '"version": "12.6.3"' in node.sh("cat /usr/local/cuda/version.json")
    assert "NCCL_VERSION_CODE 21805" in node.sh("grep VERSION_CODE /usr/include/nccl.h")
    assert "nvidia-smi" not in node.versions()
    node.apt("purge '~ncuda' '~nnccl'")
    assert not node.sh("ls -d /usr/local/cuda* 2>/dev/null || true")


def test_container_toolkit_is_the_real_one(node: Node):
    node.use("container-toolkit")
    node.apt("install nvidia-container-toolkit")
    assert "version 1.20.2" in node.sh("nvidia-ctk --version")
    assert node.try_sh("nvidia-ctk cdi generate").returncode


def test_a_new_kernel_gets_the_module(node: Node):
    node.use("nvidia")
    install(node, closure("nvidia", OLD))
    node.sh("mkdir -p /lib/modules/9.9.9-test && run-parts --exit-on-error --arg=9.9.9-test /etc/kernel/postinst.d")
    assert f"nvidia/{OLD}, 9.9.9-test, x86_64: installed" in node.sh("dkms status")


def test_an_interrupted_installation_is_repaired(node: Node):
    node.use("nvidia")
    packages = closure("nvidia", NEW)
    node.apt("install dkms")
    node.sh("mv /usr/sbin/dkms /root/dkms && printf '#!/bin/sh\\nkill -9 $PPID\\n' > /usr/sbin/dkms && chmod 755 /usr/sbin/dkms")
    broken = node.try_sh(f"apt-get {QUIET} install " + " ".join(f"{name}={version}" for name, version in packages.items()))
    assert broken.returncode
    node.sh("mv /root/dkms /usr/sbin/dkms && dpkg --configure -a 2>&1")
    install(node, packages)
    assert node.module()["version"] == NEW
