# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu-sandbox: what a test does to the hardware of its node."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from . import health, holders, modules, swap

MUTATIONS = "/var/lib/gpu-sandbox/mutations.jsonl"


class WrongUse(Exception):
    """A request that cannot be followed, in one sentence."""


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpu-sandbox", description="What a test does to the simulated hardware of this node.")
    commands = parser.add_subparsers(dest="command", required=True)

    one = commands.add_parser("health", help="health faults: set GPU KEY=VALUE ..., clear [GPU], show").add_subparsers(
        dest="action", required=True
    )
    put = one.add_parser("set")
    put.add_argument("gpu")
    put.add_argument("faults", nargs="+", metavar="KEY=VALUE")
    one.add_parser("clear").add_argument("gpu", nargs="?")
    one.add_parser("show")

    one = commands.add_parser("holders", help="processes that keep a GPU busy; add prints the process id").add_subparsers(
        dest="action", required=True
    )
    put = one.add_parser("add")
    put.add_argument("gpu")
    put.add_argument("--device-file", action="store_true", help="only hold the device file open, which NVML does not list")
    put.add_argument("--gpu-instance", type=int)
    put.add_argument("--compute-instance", type=int)
    put.add_argument("--memory-mib", type=int, default=512)
    put.add_argument("--pid", type=int, help="name this process instead of starting one")
    one.add_parser("clear")
    one.add_parser("show")

    for name, text in (
        ("faults", "failing NVML calls: set JSON, clear"),
        ("latency", "time that each NVML call takes: set MICROSECONDS, clear"),
    ):
        one = commands.add_parser(name, help=text).add_subparsers(dest="action", required=True)
        one.add_parser("set").add_argument("value")
        one.add_parser("clear")

    commands.add_parser("mutations", help="the log of NVML calls that changed something").add_argument("--clear", action="store_true")

    one = commands.add_parser("slot", help="another GPU in a slot, or none, from the next start of the node on").add_subparsers(
        dest="action", required=True
    )
    for name in ("replace", "remove"):
        one.add_parser(name).add_argument("gpu")
    one.add_parser("restore")
    return parser


def chosen(name: str) -> dict[str, Any]:
    """A GPU by index or PCI address."""
    gpus = modules.hardware()["gpus"]
    for index, gpu in enumerate(gpus):
        if name in (str(index), gpu["pci_address"]):
            return gpu
    raise WrongUse(f"This node has no GPU {name}; its GPUs are {', '.join(gpu['pci_address'] for gpu in gpus)}.")


def run_health(options: argparse.Namespace) -> None:
    faults = health.read()
    if options.action == "set":
        address = chosen(options.gpu)["pci_address"]
        faults[address] = {**faults.get(address, {}), **health.parse(options.faults)}
        health.write(faults)
    elif options.action == "clear":
        if options.gpu is None:
            faults = {}
        else:
            faults.pop(chosen(options.gpu)["pci_address"], None)
        health.write(faults)
    else:
        print(json.dumps(faults, indent=2, sort_keys=True))


def run_holders(options: argparse.Namespace) -> None:
    if options.action == "add":
        gpu = chosen(options.gpu)
        if options.device_file:
            print(holders.add_device_file(gpu))
        else:
            print(holders.add_listed(gpu, options.pid, options.memory_mib, options.gpu_instance, options.compute_instance))
    elif options.action == "clear":
        holders.clear()
    else:
        print(json.dumps(holders.read(), indent=2, sort_keys=True))


def run_faults(options: argparse.Namespace) -> None:
    """Counting starts anew with each list."""
    for name in ("faults.json", "fault-counters.json"):
        _forget(f"{modules.RUN}/{name}")
    if options.action == "set":
        try:
            faults = json.loads(options.value)
        except json.JSONDecodeError as error:
            raise WrongUse(
                f'The list of faults is no JSON ({error}); write [{{"call": "nvmlDeviceCreateGpuInstance*", "error": "UNKNOWN"}}].'
            ) from None
        if not isinstance(faults, list) or not all(isinstance(fault, dict) and fault.get("call") for fault in faults):
            raise WrongUse(
                'Faults are a list of objects with the name of a call each; write [{"call": "nvmlInit_v2", "error": "UNKNOWN"}].'
            )
        _write(f"{modules.RUN}/faults.json", faults)


def run_latency(options: argparse.Namespace) -> None:
    _forget(f"{modules.RUN}/latency.json")
    if options.action == "set":
        if not options.value.isdigit():
            raise WrongUse(f"{options.value!r} is no time; write the microseconds that each call takes, such as 2000.")
        _write(f"{modules.RUN}/latency.json", {"microseconds": int(options.value)})


def run_mutations(options: argparse.Namespace) -> None:
    if options.clear:
        _forget(MUTATIONS)
    elif os.path.exists(MUTATIONS):
        with open(MUTATIONS, encoding="utf-8") as stream:
            sys.stdout.write(stream.read())


def run_slot(options: argparse.Namespace) -> None:
    if options.action == "restore":
        swap.restore()
        return
    change = swap.replace if options.action == "replace" else swap.remove
    swap.keep(change(modules.hardware(), chosen(options.gpu)["pci_address"]))


def _write(path: str, document: Any) -> None:
    with open(f"{path}.new", "w", encoding="utf-8") as stream:
        json.dump(document, stream)
    os.replace(f"{path}.new", path)


def _forget(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


RUN = {
    "health": run_health,
    "holders": run_holders,
    "faults": run_faults,
    "latency": run_latency,
    "mutations": run_mutations,
    "slot": run_slot,
}


def main(words: list[str]) -> int:
    options = arguments().parse_args(words)
    try:
        RUN[options.command](options)
    except (WrongUse, health.WrongFault) as error:
        print(f"gpu-sandbox: {error}", file=sys.stderr)
        return 2
    except FileNotFoundError as error:
        print(f"gpu-sandbox: {error.filename} does not exist; this works only in a node of the sandbox.", file=sys.stderr)
        return 2
    except PermissionError as error:
        print(f"gpu-sandbox: {error.filename} may not be written; use sudo.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
