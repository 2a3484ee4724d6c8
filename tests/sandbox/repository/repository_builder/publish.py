"""Indexes and signs what the nodes may see. Publishing again with other versions left out makes versions appear or vanish at run time."""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

from . import keys
from .declarations import Declarations

APT_ARCHITECTURES = "amd64"


def _stanzas(out: Path, groups: list[str]) -> list[str]:
    text = ""
    for group in groups:
        if (out / "pool" / group).is_dir():
            command = ["apt-ftparchive", "packages", f"pool/{group}"]
            text += subprocess.run(command, cwd=out, check=True, capture_output=True, text=True).stdout
    return [stanza.strip("\n") for stanza in text.split("\n\n") if stanza.strip()]


def is_hidden(stanza: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern like 'nvidia-smi=580.173.02*' or '580.173.02*' names this package version."""
    fields = dict(line.split(": ", 1) for line in stanza.splitlines() if not line.startswith(" ") and ": " in line)
    return any(
        fnmatch.fnmatchcase(fields["Version"], pattern.rpartition("=")[2])
        and fnmatch.fnmatchcase(fields["Package"], pattern.rpartition("=")[0] or "*")
        for pattern in patterns
    )


def _write_suite(declarations: Declarations, suite: str, out: Path, folder: Path, hidden: tuple[str, ...]) -> int:
    shown = [stanza for stanza in _stanzas(out, declarations.suite_groups(suite)) if not is_hidden(stanza, hidden)]
    index = folder / "main" / "binary-amd64"
    index.mkdir(parents=True)
    text = "".join(f"{stanza}\n\n" for stanza in shown).encode()
    (index / "Packages").write_bytes(text)
    (index / "Packages.gz").write_bytes(gzip.compress(text, mtime=0))
    options = {
        "Origin": "heterogpu sandbox",
        "Label": declarations.suites[suite]["label"],
        "Suite": suite,
        "Codename": suite,
        "Architectures": APT_ARCHITECTURES,
        "Components": "main",
        "Description": f"Stand-ins for {declarations.system}",
    }
    command = ["apt-ftparchive"]
    for key, value in options.items():
        command += ["-o", f"APT::FTPArchive::Release::{key}={value}"]
    release = subprocess.run([*command, "release", str(folder)], check=True, capture_output=True).stdout
    (folder / "Release").write_bytes(release)
    return len(shown)


def publish(declarations: Declarations, out: Path, hidden: tuple[str, ...] = ()) -> dict[str, int]:
    """Make dists/ anew and switch to it in one step; returns the number of package versions by suite."""
    work = out.with_name(f"{out.name}.work")
    home = work / "key"
    keys.ensure(home)
    try:
        keys.export(home, out)
        state = _state(declarations, out, home, hidden)
        target = out / f".dists-{state}"
        if not target.exists():
            _write_dists(declarations, out, target, hidden, home)
        _switch(out, target)
    finally:
        keys.stop_agent(home)
    return {
        suite: (target / suite / "main/binary-amd64/Packages").read_text(encoding="utf-8").count("Package: ")
        for suite in declarations.suites
    }


def _write_dists(declarations: Declarations, out: Path, target: Path, hidden: tuple[str, ...], home: Path) -> None:
    partial = out / ".dists-partial"
    shutil.rmtree(partial, ignore_errors=True)
    for suite in declarations.suites:
        _write_suite(declarations, suite, out, partial / suite, hidden)
        keys.sign(home, partial / suite / "Release")
    partial.replace(target)


def _state(declarations: Declarations, out: Path, home: Path, hidden: tuple[str, ...]) -> str:
    """Names what is published: the pool, the suites, the key and what is left out."""
    parts: list[object] = [
        declarations.system,
        declarations.suites,
        sorted(hidden),
        (out / f"{keys.KEYRING}.asc").read_text(encoding="utf-8"),
    ]
    parts.append((out.with_name(f"{out.name}.work") / "pool.json").read_text(encoding="utf-8"))
    parts.append((Path(__file__)).read_text(encoding="utf-8"))
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _switch(out: Path, target: Path) -> None:
    link = out / ".dists-link"
    link.unlink(missing_ok=True)
    link.symlink_to(target.name)
    link.replace(out / "dists")
    for old in out.glob(".dists-*"):
        if old.name != target.name:
            shutil.rmtree(old)
