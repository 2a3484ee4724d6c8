# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Usage: nvidia-smi [options], nvidia-smi mig [options], nvidia-smi topo -m"""

from __future__ import annotations

import argparse
import sys

from . import change, mig, show, topo
from .common import Exit, session


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="nvidia-smi", allow_abbrev=False)
    options.add_argument("-L", "--list-gpus", action="store_true", dest="list")
    options.add_argument("-q", "--query", action="store_true", dest="query")
    options.add_argument("-i", "--id", dest="id")
    options.add_argument("-mig", "--multi-instance-gpu", dest="mig")
    options.add_argument("-r", "--gpu-reset", action="store_true", dest="reset")
    options.add_argument("-pm", "--persistence-mode", dest="persistence")
    options.add_argument("-pl", "--power-limit", dest="power")
    options.add_argument("-lgc", "--lock-gpu-clocks", dest="lock")
    options.add_argument("-rgc", "--reset-gpu-clocks", action="store_true", dest="unlock")
    options.add_argument("-c", "--compute-mode", dest="compute_mode")
    options.add_argument("-e", "--ecc-config", dest="ecc")
    options.add_argument("--query-gpu", dest="query_gpu")
    options.add_argument("--query-compute-apps", dest="query_apps")
    options.add_argument("--format", dest="format", default="csv")
    return options


def run(arguments: list[str]) -> int:
    if arguments[:1] == ["mig"]:
        with session():
            return mig.main(arguments[1:])
    if arguments[:1] == ["topo"]:
        if arguments[1:] not in (["-m"], ["--matrix"]):
            raise Exit(2, "Invalid combination of input arguments; this tool knows topo -m.")
        with session():
            return topo.matrix()
    options = parser().parse_args(arguments)
    actions = [
        (options.list, show.listing),
        (options.mig is not None, lambda: change.set_mig(options.mig, options.id)),
        (options.reset, lambda: change.reset(options.id)),
        (options.persistence is not None, lambda: change.persistence(options.persistence, options.id)),
        (options.power is not None, lambda: change.power(options.power, options.id)),
        (options.lock is not None, lambda: change.lock_clocks(options.lock, options.id)),
        (options.unlock, lambda: change.unlock_clocks(options.id)),
        (options.compute_mode is not None, lambda: change.compute_mode(options.compute_mode, options.id)),
        (options.ecc is not None, lambda: change.ecc(options.ecc, options.id)),
        (options.query_gpu is not None, lambda: show.query_gpu(options.query_gpu, options.format, options.id)),
        (options.query_apps is not None, lambda: show.query_apps(options.query_apps, options.format, options.id)),
        (options.query, lambda: show.query(options.id)),
        (True, show.table),
    ]
    with session():
        return next(action for wanted, action in actions if wanted)()


def main() -> int:
    try:
        return run(sys.argv[1:])
    except Exit as end:
        # The real tool writes what is wrong to standard output.
        print(end)
        return end.code
    except ValueError as error:
        print(f"Invalid argument: {error}")
        return 2
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
