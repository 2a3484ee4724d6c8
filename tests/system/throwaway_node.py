# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container of the node image without systemd and network, which sees the sandbox's package repository as a folder."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path
from typing import Any

import ansible

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heterogpu-sandbox"
REPOSITORY = CACHE / "repository"
QUIET = "-y -qq -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root"
_ENVIRONMENT = {**os.environ, "CONTAINERS_CONF": str(CACHE / "engine/containers.conf")}
_MODULE = """
import json, sys
from ansible.module_utils.testing import patch_module_args
with patch_module_args(json.load(sys.stdin)):
    from ansible_collections.heterogpu.inference.plugins.modules.{name} import main
    main()
"""


class Node:
    def __init__(self, image: str) -> None:
        self.name = f"repository-test-{uuid.uuid4().hex[:8]}"
        mounts = {
            REPOSITORY: "/srv/apt",
            Path(ansible.__file__).parent: "/opt/lib/ansible",
            ROOT: "/opt/lib/ansible_collections/heterogpu/inference",
        }
        volumes = [f"--volume={source}:{target}:ro" for source, target in mounts.items()]
        self.podman("run", "-d", "--name", self.name, "--network", "none", *volumes, image, "sleep", "infinity")
        self.sh("mkdir -p /etc/apt/keyrings && cp /srv/apt/sandbox-archive-keyring.asc /etc/apt/keyrings/sandbox.asc")

    def podman(self, *arguments: str) -> None:
        subprocess.run(["podman", *arguments], check=True, capture_output=True, env=_ENVIRONMENT)

    def remove(self) -> None:
        self.podman("rm", "-f", "-t", "0", self.name)

    def try_sh(self, command: str) -> subprocess.CompletedProcess[str]:
        shell = ["podman", "exec", "-e", "DEBIAN_FRONTEND=noninteractive", "-e", "LC_ALL=C", self.name, "bash", "-ec", command]
        return subprocess.run(shell, check=False, capture_output=True, text=True, env=_ENVIRONMENT)

    def sh(self, command: str) -> str:
        done = self.try_sh(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def run_module(self, name: str, arguments: dict[str, Any], check: bool = False) -> dict[str, Any]:
        """Without a connection: the node has neither network nor SSH."""
        command = ["podman", "exec", "-i", "-e", "PYTHONPATH=/opt/lib", self.name, "python3", "-c", _MODULE.format(name=name)]
        text = json.dumps({**arguments, "_ansible_check_mode": check, "_ansible_diff": True})
        done = subprocess.run(command, check=False, input=text, capture_output=True, text=True, env=_ENVIRONMENT)
        assert done.stdout.strip(), done.stderr
        return json.loads(done.stdout)

    def use(self, suite: str) -> None:
        line = f"deb [signed-by=/etc/apt/keyrings/sandbox.asc] file:/srv/apt {suite} main"
        self.sh(f"echo '{line}' > /etc/apt/sources.list.d/sandbox.list && apt-get update {QUIET}")

    def apt(self, command: str) -> str:
        return self.sh(f"apt-get {QUIET} {command} 2>&1")

    def versions(self) -> dict[str, str]:
        lines = self.sh("dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\\n'").splitlines()
        return {name: version for status, name, version in map(str.split, lines) if status[1] == "i"}

    def held(self) -> set[str]:
        return set(self.sh("apt-mark showhold").split())

    def module(self) -> dict[str, str]:
        text = self.sh("cat /lib/modules/$(uname -r)/updates/dkms/nvidia.ko")
        return dict(line.split("=", 1) for line in text.splitlines())

    def files(self, path: str) -> list[str]:
        return self.sh(f"find {path} -path '*nvidia*' ! -type d 2>/dev/null || true").split()
