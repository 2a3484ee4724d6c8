"""Apt on a throwaway node: install, hold, upgrade, downgrade, switch, remove and purge from the sandbox's repository."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heterogpu-sandbox"
REPOSITORY = CACHE / "repository"
TABLE = yaml.safe_load((ROOT / "data/packages.yml").read_text(encoding="utf-8"))
SYSTEM = "debian-12"
OLD, NEW = TABLE["drivers"]["580"]["versions"]
SOURCES = ["ubuntu", "nvidia"]
QUIET = "-y -qq -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root"

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(not (REPOSITORY / "dists").exists(), reason=f"{REPOSITORY} was not built yet"),
]


class Node:
    """A container of the node image without systemd, that sees the repository as a folder."""

    def __init__(self, image: str) -> None:
        self.name = f"repository-test-{uuid.uuid4().hex[:8]}"
        self.podman("run", "-d", "--name", self.name, "--network", "none", "-v", f"{REPOSITORY}:/srv/apt:ro", image, "sleep", "infinity")
        self.sh("mkdir -p /etc/apt/keyrings && cp /srv/apt/sandbox-archive-keyring.asc /etc/apt/keyrings/sandbox.asc")

    def podman(self, *arguments: str) -> None:
        environment = {**os.environ, "CONTAINERS_CONF": str(CACHE / "engine/containers.conf")}
        subprocess.run(["podman", *arguments], check=True, capture_output=True, env=environment)

    def try_sh(self, command: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CONTAINERS_CONF": str(CACHE / "engine/containers.conf")}
        shell = ["podman", "exec", "-e", "DEBIAN_FRONTEND=noninteractive", "-e", "LC_ALL=C", self.name, "bash", "-ec", command]
        return subprocess.run(shell, check=False, capture_output=True, text=True, env=environment)

    def sh(self, command: str) -> str:
        done = self.try_sh(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def use(self, suite: str) -> None:
        line = f"deb [signed-by=/etc/apt/keyrings/sandbox.asc] file:/srv/apt {suite} main"
        self.sh(f"echo '{line}' > /etc/apt/sources.list.d/sandbox.list && apt-get update {QUIET}")

    def apt(self, command: str) -> str:
        return self.sh(f"apt-get {QUIET} {command} 2>&1")

    def versions(self) -> dict[str, str]:
        lines = self.sh("dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\\n'").splitlines()
        return {name: version for status, name, version in map(str.split, lines) if status[1] == "i"}

    def module(self) -> dict[str, str]:
        text = self.sh("cat /lib/modules/$(uname -r)/updates/dkms/nvidia.ko")
        return dict(line.split("=", 1) for line in text.splitlines())

    def files(self, path: str) -> list[str]:
        return self.sh(f"find {path} -path '*nvidia*' ! -type d 2>/dev/null || true").split()


@pytest.fixture(name="image", scope="module")
def fixture_image() -> str:
    done = subprocess.run([str(ROOT / "tests/sandbox/image/build")], check=True, capture_output=True, text=True)
    return done.stdout.split()[-1]


@pytest.fixture(name="node")
def fixture_node(image: str) -> Iterator[Node]:
    node = Node(image)
    yield node
    node.podman("rm", "-f", "-t", "0", node.name)


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
