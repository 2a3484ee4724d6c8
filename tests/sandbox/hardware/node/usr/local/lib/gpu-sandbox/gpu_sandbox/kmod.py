# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""modprobe, rmmod, lsmod and modinfo for the nvidia modules. Usage: python3 -m gpu_sandbox.kmod TOOL [ARGUMENT...]"""

from __future__ import annotations

import os
import sys

from . import modules


def main(tool: str, arguments: list[str]) -> int:
    if tool == "lsmod":
        return lsmod()
    names = [argument.replace("-", "_") for argument in arguments if not argument.startswith("-")]
    flags = {flag for flag in arguments if flag.startswith("-")}
    try:
        return {"modprobe": modprobe, "rmmod": rmmod, "modinfo": modinfo}.get(tool, modprobe)([n for n in names if n.startswith("nvidia")], flags)
    except modules.ModuleError as error:
        if not flags & {"-q", "--quiet"}:
            print(f"{tool}: {error}", file=sys.stderr)
        return 1


def modprobe(names: list[str], flags: set[str]) -> int:
    if flags & {"-r", "--remove"}:
        for name in names:
            if name in modules.read():
                modules.remove(name)
                for needed in modules.NEEDS.get(name, []):
                    # modprobe -r takes along what nobody else needs, and does not mind when it stays.
                    try:
                        modules.remove(needed)
                    except modules.ModuleError:
                        pass
        return 0
    for name in names[:1]:
        if flags & {"-b", "--use-blacklist"} and modules.blacklisted(name):
            return 0
        if flags & {"-n", "--dry-run", "--show", "-D", "--show-depends"}:
            if modules.installed(name) is None:
                raise modules.ModuleError(f"FATAL: Module {name} not found in directory /lib/modules/{os.uname().release}")
            continue
        modules.load(name)
    return 0


def rmmod(names: list[str], flags: set[str]) -> int:
    for name in names:
        modules.remove(name)
    return 0


def lsmod() -> int:
    state = modules.read()
    print(f"{'Module':<24}{'Size':>8}  Used by")
    for name in state:
        users = sorted(other for other in state if name in modules.NEEDS.get(other, []))
        print(f"{name:<24}{16384:>8}  {len(users)} {','.join(users)}".rstrip())
    return 0


def modinfo(names: list[str], flags: set[str]) -> int:
    for name in names:
        found = modules.installed(name)
        if found is None:
            print(f"modinfo: ERROR: Module {name} not found.", file=sys.stderr)
            return 1
        fields = {"filename": found["filename"], "version": found["version"], "license": "Dual MIT/GPL" if found.get("flavour") == "open" else "NVIDIA"}
        for key, value in fields.items():
            print(f"{key + ':':<16}{value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
