#!/usr/bin/env python3
"""Writes the container engine's configuration for the sandbox, and only for it: podman reads it through CONTAINERS_CONF.

Nothing below /etc is touched. Prints what it changed. What the machine offers decides: a process without CAP_SYS_RESOURCE
cannot raise limits, and crun does not start containers on hybrid cgroups (version 1 controllers beside an empty version 2
hierarchy).
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

CAP_SYS_RESOURCE = 24
NOFILE_WISHED = 1_048_576
# Far more than a node needs; podman lowers its own limit, so that the controller's would be refused.
NPROC_WISHED = 32_768

# All containers draw on root's share of these. A node needs about six; the kernel's default of 128 ends at twenty nodes.
INOTIFY_INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_WISHED = 1024


def cache() -> Path:
    """Folder of everything the sandbox builds, shared by all checkouts."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "heterogpu-sandbox"


def has_capability(number: int) -> bool:
    """Whether this process may use the capability with this number."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


def has_unified_cgroups() -> bool:
    """Whether the machine has version 2 control groups alone."""
    return Path("/sys/fs/cgroup/cgroup.controllers").exists()


def limit(kind: int, wished: int) -> int:
    """The hard limit that a container can get."""
    hard = resource.getrlimit(kind)[1]
    if has_capability(CAP_SYS_RESOURCE) or hard == resource.RLIM_INFINITY:
        return wished
    return min(hard, wished)


def configuration() -> str:
    """Text of containers.conf."""
    nofile = limit(resource.RLIMIT_NOFILE, NOFILE_WISHED)
    nproc = limit(resource.RLIMIT_NPROC, NPROC_WISHED)
    manager = "systemd" if Path("/run/systemd/system").is_dir() else "cgroupfs"
    runtime = [] if has_unified_cgroups() else ['runtime = "runc"']
    return "\n".join(
        [
            "[containers]",
            'cgroupns = "private"',
            f'default_ulimits = ["nofile={nofile}:{nofile}", "nproc={nproc}:{nproc}"]',
            'log_driver = "k8s-file"',
            "[engine]",
            f'cgroup_manager = "{manager}"',
            'events_logger = "file"',
            *runtime,
            "[network]",
            'network_backend = "netavark"',
            "",
        ]
    )


def write_configuration() -> None:
    """Write containers.conf unless it is right."""
    path = cache() / "engine" / "containers.conf"
    text = configuration()
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"Wrote {path}.")


def raise_inotify_limit() -> None:
    """Raise the running kernel's limit, which lasts until the machine starts again."""
    present = int(INOTIFY_INSTANCES.read_text(encoding="ascii"))
    if present >= INOTIFY_WISHED:
        return
    try:
        INOTIFY_INSTANCES.write_text(f"{INOTIFY_WISHED}\n", encoding="ascii")
    except OSError as error:
        sys.exit(
            f"The kernel allows {present} inotify instances and the sandbox needs up to {INOTIFY_WISHED}, but {INOTIFY_INSTANCES} "
            f"cannot be written ({error.strerror}); raise it as the machine's administrator."
        )
    print(f"Raised {INOTIFY_INSTANCES} from {present} to {INOTIFY_WISHED}.")


if __name__ == "__main__":
    write_configuration()
    raise_inotify_limit()
