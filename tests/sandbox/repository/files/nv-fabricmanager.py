#!/usr/bin/python3
"""Fabric Manager of the sandbox: while it runs, NVLinks of NVSwitch nodes are up. Refuses as the real one does."""

import argparse
import json
import os
import pathlib
import signal
import sys

VERSION = "@VERSION@"
LOADED = pathlib.Path("/sys/module/nvidia/version")
PCI_DEVICES = pathlib.Path("/sys/bus/pci/devices")
RUN = pathlib.Path("/run/nvidia-fabricmanager")
STATE = pathlib.Path("/run/gpu-sandbox/fabricmanager.json")
NVSWITCH_CLASS = "0x0680"
NVIDIA = "0x10de"
QUERY_FAILED = "request to query NVSwitch device information from NVSwitch driver failed with error:"


def read(path):
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def has_nvswitch():
    return any(
        read(device / "vendor") == NVIDIA and read(device / "class").startswith(NVSWITCH_CLASS)
        for device in (PCI_DEVICES.iterdir() if PCI_DEVICES.is_dir() else ())
    )


def reason_not_to_run():
    loaded = read(LOADED)
    if not loaded:
        return QUERY_FAILED + "the NVIDIA driver is not loaded"
    if loaded != VERSION:
        return (
            f"fabric manager NVIDIA GPU driver interface version {VERSION} don't match with driver version {loaded}. "
            "Please update with matching NVIDIA driver package."
        )
    if not has_nvswitch():
        return QUERY_FAILED + "WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"
    return None


def let_go_of_terminal():
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def run(ready):
    RUN.mkdir(exist_ok=True)
    STATE.parent.mkdir(exist_ok=True)
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    (RUN / "nv-fabricmanager.pid").write_text(f"{os.getpid()}\n", encoding="ascii")
    partial = STATE.with_suffix(".new")
    partial.write_text(json.dumps({"pid": os.getpid(), "version": VERSION}), encoding="ascii")
    partial.replace(STATE)
    let_go_of_terminal()
    os.write(ready, b"1")
    os.close(ready)
    signal.sigwait(stop)
    STATE.unlink(missing_ok=True)
    (RUN / "nv-fabricmanager.pid").unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(prog="nv-fabricmanager")
    parser.add_argument("-c", "--config", default="/usr/share/nvidia/nvswitch/fabricmanager.cfg")
    parser.add_argument("-v", "--version", action="store_true")
    options = parser.parse_args()
    if options.version:
        print(f"Fabric Manager version is : {VERSION}")
        return 0
    if not os.path.exists(options.config):
        print(f"failed to open the configuration file {options.config}", file=sys.stderr)
        return 1
    reason = reason_not_to_run()
    if reason:
        print(reason, file=sys.stderr)
        return 1
    wait, ready = os.pipe()
    if os.fork():
        os.close(ready)
        # An empty read means that the daemon died before it was ready.
        return 0 if os.read(wait, 1) else 1
    os.close(wait)
    os.setsid()
    run(ready)
    return 0


if __name__ == "__main__":
    sys.exit(main())
