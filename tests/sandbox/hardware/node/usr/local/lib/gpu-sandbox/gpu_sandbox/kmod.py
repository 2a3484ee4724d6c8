# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""modprobe, rmmod, lsmod and modinfo for the nvidia modules; everything else goes to the real kmod."""

from __future__ import annotations

import os
import sys

from . import modules

KMOD = "/usr/bin/kmod"
PROC_MODULES = "/proc/modules"  # not every kernel has loadable modules


def main(tool: str, *rest: str) -> int:
    names = [_module_name(argument) for argument in rest if not argument.startswith("-") and "=" not in argument]
    flags = {flag for flag in rest if flag.startswith("-")}
    if tool == "lsmod":
        return lsmod()
    if not any(name.startswith("nvidia") for name in names):
        os.execv(KMOD, [tool, *rest])
    names = [name for name in names if name.startswith("nvidia")]
    try:
        if tool == "rmmod":
            return rmmod(names)
        return modinfo(names, _field(rest)) if tool == "modinfo" else modprobe(names, flags)
    except modules.ModuleError as error:
        if not flags & {"-q", "--quiet"}:
            print(f"{tool}: {error}", file=sys.stderr)
    except PermissionError:
        print(f"{tool}: ERROR: could not change '{names[0]}': Operation not permitted", file=sys.stderr)
    return 1


def _module_name(argument: str) -> str:
    """A module may be given by its file."""
    return os.path.basename(argument).partition(".ko")[0].replace("-", "_")


def _field(rest: tuple[str, ...]) -> str:
    """The argument of modinfo -F."""
    for index, argument in enumerate(rest):
        if argument in ("-F", "--field") and index + 1 < len(rest):
            return rest[index + 1]
        if argument.startswith("--field="):
            return argument.partition("=")[2]
    return ""


def modprobe(names: list[str], flags: set[str]) -> int:
    if flags & {"-r", "--remove"}:
        for name in names:
            _remove_with_needed(name)
        return 0
    for name in names if flags & {"-a", "--all"} else names[:1]:
        if flags & {"-b", "--use-blacklist"} and modules.blacklisted(name):
            continue
        if flags & {"-n", "--dry-run", "--show", "-D", "--show-depends"}:
            if name not in modules.NEEDS or modules.installed(name) is None:
                raise modules.NotFound(name)
            continue
        modules.load(name)
    return 0


def _remove_with_needed(name: str) -> None:
    """modprobe -r does not mind what is not loaded, and takes along what nobody needs any more."""
    if name not in modules.read():
        return
    try:
        modules.remove(name)
    except modules.ModuleError:
        raise modules.ModuleError(f"FATAL: Module {name} is in use.") from None
    for needed in modules.NEEDS[name]:
        try:
            _remove_with_needed(needed)
        except modules.ModuleError:
            return


def rmmod(names: list[str]) -> int:
    for name in names:
        modules.remove(name)
    return 0


def lsmod() -> int:
    print(f"{'Module':<24}{'Size':>8}  Used by")
    for name in modules.read():
        users = modules.users(name)
        print(f"{name:<24}{16384:>8}  {len(users)} {','.join(users)}".rstrip())
    if os.path.exists(PROC_MODULES):
        with open(PROC_MODULES, encoding="ascii") as stream:
            for line in stream:
                name, size, count, others = line.split()[:4]
                print(f"{name:<24}{size:>8}  {count} {others.strip('-').rstrip(',')}".rstrip())
    return 0


def modinfo(names: list[str], field: str) -> int:
    for name in names:
        found = modules.installed(name)
        if found is None:
            print(f"modinfo: ERROR: Module {name} not found.", file=sys.stderr)
            return 1
        fields = {
            "filename": found["filename"],
            "version": found["version"],
            "license": "Dual MIT/GPL" if found["flavour"] == "open" else "NVIDIA",
            "depends": ",".join(needed.replace("_", "-") for needed in modules.NEEDS.get(name, [])),
            "name": name,
            "vermagic": f"{os.uname().release} SMP mod_unload modversions",
        }
        if field:
            print(fields.get(field, ""))
            continue
        for key, value in fields.items():
            print(f"{key + ':':<16}{value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
