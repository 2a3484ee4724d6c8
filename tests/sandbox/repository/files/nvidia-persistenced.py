#!/usr/bin/python3
"""Persistence daemon of the sandbox: sets persistence mode through NVML and keeps the devices open, which NVML does not list as a user."""

import argparse
import os
import pathlib
import pwd
import signal
import sys

sys.path.insert(0, "/usr/lib/nvidia-persistenced")

import pynvml

RUN = pathlib.Path("/run/nvidia-persistenced")


def set_persistence(mode):
    """Switch all GPUs; returns the device files of those that took it."""
    paths = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        try:
            pynvml.nvmlDeviceSetPersistenceMode(handle, mode)
        except pynvml.NVMLError as error:
            print(f"device {index}: persistence mode not changed: {error}", file=sys.stderr)
            continue
        paths.append(f"/dev/nvidia{pynvml.nvmlDeviceGetMinorNumber(handle)}")
    return paths


def hold(paths):
    """Open the device files for as long as the daemon runs."""
    held = []
    for path in ["/dev/nvidiactl", *paths]:
        try:
            held.append(os.open(path, os.O_RDWR))
        except OSError as error:
            print(f"{path} cannot be held open: {error.strerror}", file=sys.stderr)
    return held


def let_go_of_terminal():
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def run(options, ready):
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    held = []
    if options.persistence_mode:
        held = hold(set_persistence(pynvml.NVML_FEATURE_ENABLED))
    user = pwd.getpwnam(options.user) if options.user else None
    RUN.mkdir(exist_ok=True)
    (RUN / "nvidia-persistenced.pid").write_text(f"{os.getpid()}\n", encoding="ascii")
    if user and not options.persistence_mode:
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    elif user:
        # The saved user stays root, which switching persistence mode off at the end needs.
        os.setresgid(user.pw_gid, user.pw_gid, 0)
        os.setresuid(user.pw_uid, user.pw_uid, 0)
    let_go_of_terminal()
    os.write(ready, b"1")
    os.close(ready)
    signal.sigwait(stop)
    if options.persistence_mode:
        if user:
            os.setresuid(0, 0, 0)
        for descriptor in held:
            os.close(descriptor)
        set_persistence(pynvml.NVML_FEATURE_DISABLED)


def arguments():
    parser = argparse.ArgumentParser(prog="nvidia-persistenced")
    parser.add_argument("-u", "--user")
    parser.add_argument("-V", "--verbose", action="store_true")
    parser.add_argument("-v", "--version", action="store_true")
    parser.add_argument("--persistence-mode", dest="persistence_mode", action="store_true", default=True)
    parser.add_argument("--no-persistence-mode", dest="persistence_mode", action="store_false")
    return parser.parse_args()


def main():
    options = arguments()
    if options.version:
        print("nvidia-persistenced:  version @VERSION@")
        return 0
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        print(f"nvidia-persistenced failed to initialize. Check syslog for more details. ({error})", file=sys.stderr)
        return 1
    pynvml.nvmlShutdown()
    wait, ready = os.pipe()
    if os.fork():
        os.close(ready)
        # An empty read means that the daemon died before it was ready.
        return 0 if os.read(wait, 1) else 1
    os.close(wait)
    os.setsid()
    pynvml.nvmlInit()
    run(options, ready)
    pynvml.nvmlShutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
