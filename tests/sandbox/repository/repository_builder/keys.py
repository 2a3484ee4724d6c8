"""The sandbox's own signing key: made once, its public half exported for `signed-by`."""

from __future__ import annotations

import subprocess
from pathlib import Path

USER = "heterogpu sandbox repository <sandbox@heterogpu.invalid>"
KEYRING = "sandbox-archive-keyring"


def _gpg(home: Path, *arguments: str) -> bytes:
    command = ["gpg", "--homedir", str(home), "--batch", "--no-tty", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
    return subprocess.run([*command, *arguments], check=True, capture_output=True).stdout


def ensure(home: Path) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _gpg(home, "--list-secret-keys", "--with-colons"):
        _gpg(home, "--quick-generate-key", USER, "rsa3072", "sign", "never")


def export(home: Path, out: Path) -> None:
    """Write the public key in both forms that apt accepts."""
    for suffix, options in ((".gpg", []), (".asc", ["--armor"])):
        path = out / (KEYRING + suffix)
        content = _gpg(home, *options, "--export")
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def sign(home: Path, release: Path) -> None:
    """Write InRelease and Release.gpg beside the Release file."""
    _gpg(home, "--yes", "--digest-algo", "SHA256", "--clearsign", "--output", str(release.with_name("InRelease")), str(release))
    _gpg(
        home,
        "--yes",
        "--digest-algo",
        "SHA256",
        "--armor",
        "--detach-sign",
        "--output",
        str(release.with_name("Release.gpg")),
        str(release),
    )


def stop_agent(home: Path) -> None:
    """gpg leaves an agent behind for each home: end this one."""
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "gpg-agent"], check=False, capture_output=True)
