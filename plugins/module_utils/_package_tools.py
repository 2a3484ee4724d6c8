# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's dpkg and apt: read, lock, repair, change. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence

from ansible_collections.heterogpu.inference.plugins.module_utils._apt_plan import Apt
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import ApplyFailed, GpuError, Refused
from ansible_collections.heterogpu.inference.plugins.module_utils._package_plan import Package

# The lock that frontends such as apt and unattended-upgrades hold all along, and the one of dpkg itself, which outlives a killed frontend.
FRONTEND_LOCK, DATABASE_LOCK = "/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock"
STATUS, UPDATES = "/var/lib/dpkg/status", "/var/lib/dpkg/updates"
PAUSE_S = 0.5
GRACE_S = 20
_FORMAT = "${Package}\t${Architecture}\t${Version}\t${db:Status-Want}\t${db:Status-Status}\n"
# A changed configuration file of an administrator stays, without a question that nobody answers.
_INSTALL = ("--no-install-recommends", "--allow-downgrades", "--allow-change-held-packages")
_KEEP_CONFIGURATION = ("-oDpkg::Options::=--force-confdef", "-oDpkg::Options::=--force-confold")
# apt's lock is held already, by this process.
_NO_LOCK = "-oDebug::NoLocking=true"
_QUIET = ("-y", "-q", "-oDpkg::Use-Pty=0", _NO_LOCK)


def packages(apt: Apt) -> dict[str, Package]:
    """All that dpkg knows, of the machine's own architecture."""
    native = apt.run("dpkg", "--print-architecture").output.strip()
    answer = apt.run("dpkg-query", "-W", "-f", _FORMAT)
    if answer.status != 0:
        raise GpuError(f"The package database of the node cannot be read ({answer.errors.strip()}); repair dpkg and run again.")
    found = {}
    for line in answer.output.splitlines():
        name, architecture, version, want, status = line.split("\t")
        if architecture in (native, "all"):
            found[name] = Package(version, status, want == "hold")
    return found


def journal() -> list[str]:
    """Steps that dpkg made and did not enter into its status yet: it was killed. apt does not read them."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(name for name in os.listdir(UPDATES) if name.isdigit())
    return []


def status_without(root: str, names: Collection[str]) -> str:
    """A copy of dpkg's status in which these packages do not occur."""
    with open(STATUS, encoding="utf-8") as stream:
        stanzas = stream.read().split("\n\n")
    path = os.path.join(root, "status")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("\n\n".join(stanza for stanza in stanzas if stanza.partition("\n")[0].partition(": ")[2] not in names))
    return path


def identify(archive: str, apt: Apt) -> tuple[str, str]:
    """Name and version of a package file."""
    answer = apt.run("dpkg-deb", "-W", "--showformat", "${Package}\t${Version}", archive)
    name, _tab, version = answer.output.partition("\t")
    if answer.status != 0 or not version:
        raise GpuError(f"The file {archive} is no package ({answer.errors.strip()}); remove it and run again.")
    return name, version


@contextlib.contextmanager
def exclusive(timeout: float) -> Iterator[None]:
    """Holds apt's lock from the last look to the last step, so that nothing moves in between."""
    descriptors = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640) for path in (FRONTEND_LOCK, DATABASE_LOCK)]
    try:
        deadline = time.monotonic() + timeout
        for descriptor, path in zip(descriptors, (FRONTEND_LOCK, DATABASE_LOCK)):
            while not _taken(descriptor):
                if time.monotonic() >= deadline:
                    raise Refused(
                        f"Another program holds {path} and did not end within {timeout:g} s; nothing was changed. "
                        f"Find it with `fuser {path}`, wait for it and run again."
                    )
                time.sleep(PAUSE_S)
        # dpkg takes its own lock itself.
        fcntl.lockf(descriptors[1], fcntl.LOCK_UN)
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class Changer:
    """Calls that change the node. They are made under `exclusive`."""

    def __init__(self, timeout_s: int) -> None:
        self.timeout_s = timeout_s

    def configure(self) -> None:
        """Finish what an interrupted dpkg left. What it cannot finish is for apt, which gets the declared versions next."""
        self._try("dpkg", "--force-confdef", "--force-confold", "--configure", "-a")

    def install(self, archives: Sequence[str], gone: Sequence[str]) -> None:
        self._do(
            "install the packages",
            "apt-get",
            "install",
            *_QUIET,
            *_INSTALL,
            *_KEEP_CONFIGURATION,
            *archives,
            *(f"{name}-" for name in gone),
        )

    def purge(self, names: Sequence[str]) -> None:
        self._do("remove the packages", "apt-get", "purge", *_QUIET, "--allow-change-held-packages", *names)

    def hold(self, names: Sequence[str]) -> None:
        if names:
            self._do("hold the packages", "apt-mark", "hold", _NO_LOCK, *names)

    def release(self, names: Sequence[str]) -> None:
        if names:
            self._do("release the packages", "apt-mark", "unhold", _NO_LOCK, *names)

    def _do(self, what: str, *command: str) -> None:
        status, output = self._try(*command)
        if status != 0:
            raise ApplyFailed(f"{command[0]} could not {what} (status {status}): {_last_words(output)}")

    def _try(self, *command: str) -> tuple[int, str]:
        """Output goes to a file: a daemon that a package starts may keep it open for good."""
        environment = {
            **os.environ,
            "LC_ALL": "C",
            "DEBIAN_FRONTEND": "noninteractive",
            "DPKG_FRONTEND_LOCKED": "1",
            # It would restart other services of the node.
            "NEEDRESTART_SUSPEND": "1",
        }
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(  # pylint: disable=ansible-bad-function,consider-using-with
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )
            try:
                status = process.wait(self.timeout_s)
            except subprocess.TimeoutExpired:
                _end(process)
                status = 124
            output.seek(0)
            text = output.read().decode(errors="replace")
        return status, text + (f"\nE: It did not end within {self.timeout_s} seconds" if status == 124 else "")


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all its children: a dpkg that goes on alone would hold its lock."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
            return


def _last_words(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("E: ", "dpkg: error", "Error!")) or "subprocess returned error" in line]
    return " / ".join(dict.fromkeys((telling or lines)[-6:])).rstrip(".") + "."
