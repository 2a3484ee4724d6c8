#!/usr/bin/env python3
"""Prints the machine's containers as JSON: name, sandbox, digest of the inputs, and whether each runs, stands still or is dead.

A container is dead when its monitor was killed, as at the end of a CI job: podman then still believes that it runs.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


def monitor_lives(container: dict[str, Any], proc: Path = Path("/proc")) -> bool:
    """Whether the process with the monitor's number is this container's monitor, and not a later process."""
    try:
        command = (proc / str(container["State"]["ConmonPid"]) / "cmdline").read_bytes()
    except OSError:
        return False
    return container["Id"].encode() in command.split(b"\0")


def state(container: dict[str, Any]) -> str:
    """running, still or dead."""
    status = container["State"]["Status"]
    if status in ("configured", "created", "exited", "stopped"):
        return "still"
    return "running" if status == "running" and monitor_lives(container) else "dead"


def main() -> None:
    names = subprocess.run(["podman", "ps", "--all", "--quiet"], check=True, capture_output=True, text=True).stdout.split()
    text = subprocess.run(["podman", "inspect", *names], check=True, capture_output=True, text=True).stdout if names else "[]"
    found = []
    for container in json.loads(text):
        labels = container["Config"].get("Labels") or {}
        found.append(
            {
                "name": container["Name"],
                "sandbox": labels.get("heterogpu.sandbox", ""),
                "digest": labels.get("heterogpu.digest", ""),
                "state": state(container),
            }
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
