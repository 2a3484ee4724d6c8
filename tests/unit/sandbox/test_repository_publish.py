"""Publishing: signed, readable by apt's verifier, and able to gain and lose versions."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from _repository import all_packages, declarations
from repository_builder import deb, publish

PACKAGE = "nvidia-firmware-580-server-"
SUITE = "ubuntu"

pytestmark = pytest.mark.skipif(
    not shutil.which("apt-ftparchive") or not shutil.which("gpg"), reason="apt-ftparchive or gpg is not installed"
)


@pytest.fixture(name="out", scope="module")
def fixture_out(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    out = tmp_path_factory.mktemp("repository") / "public"
    work = out.with_name("public.work")
    out.mkdir()
    work.mkdir()
    (work / "pool.json").write_text(json.dumps({}), encoding="utf-8")
    for package in all_packages("debian-12"):
        if package.name.startswith("nvidia-fabricmanager") and package.group == "ubuntu-driver":
            deb.write(package, work, out / "pool" / package.group / package.file_name)
    publish.publish(declarations("debian-12"), out)
    yield out


def shown(out: Path) -> set[str]:
    text = (out / "dists" / SUITE / "main/binary-amd64/Packages").read_text(encoding="utf-8")
    return {line.split(": ", 1)[1].split("-")[0] for line in text.splitlines() if line.startswith("Version: ")}


def test_all_versions_are_shown(out: Path):
    publish.publish(declarations("debian-12"), out)
    assert shown(out) == {"535.183.06", "535.309.01", "580.95.05", "580.173.02"}


def test_signature_is_valid_for_the_exported_key(out: Path):
    for suite in declarations("debian-12").suites:
        subprocess.run(
            ["gpgv", "--keyring", str(out / "sandbox-archive-keyring.gpg"), str(out / "dists" / suite / "InRelease")],
            check=True,
            capture_output=True,
        )


def test_a_changed_index_does_not_fit_the_signed_release(out: Path):
    release = (out / "dists" / SUITE / "InRelease").read_text(encoding="utf-8")
    sums = subprocess.run(
        ["sha256sum", str(out / "dists" / SUITE / "main/binary-amd64/Packages")], check=True, capture_output=True, text=True
    ).stdout
    assert sums.split()[0] in release


def test_the_private_key_is_not_served(out: Path):
    assert not [path for path in out.rglob("*") if "private" in path.name or path.suffix == ".key"]


def test_a_version_vanishes_and_comes_back(out: Path):
    publish.publish(declarations("debian-12"), out, ("580.173.02*",))
    assert shown(out) == {"535.183.06", "535.309.01", "580.95.05"}
    publish.publish(declarations("debian-12"), out)
    assert "580.173.02" in shown(out)
    assert len(list(out.glob(".dists-*"))) == 1


def test_only_the_named_package_vanishes():
    stanza = "Package: nvidia-smi\nVersion: 580.95.05-1\nDepends: python3"
    assert publish.is_hidden(stanza, ("580.95.05*",))
    assert publish.is_hidden(stanza, ("nvidia-smi=580.*",))
    assert not publish.is_hidden(stanza, ("libcuda1=580.*", "535.*"))
