"""Command line: build the pool and publish it, or only publish it with other versions left out."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from . import pool, publish
from .declarations import DeclarationError, Declarations


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="repository_builder", description=__doc__)
    parser.add_argument("action", choices=["build", "publish", "driver-versions"])
    parser.add_argument("--out", type=Path, help="folder that is served to the nodes")
    parser.add_argument("--system", default="debian-12", help="key of `systems` in data/packages.yml")
    parser.add_argument("--extra-driver", action="append", default=[], help="one more driver version to build, such as 580.178.04")
    parser.add_argument("--without", action="append", default=[], metavar="[NAME=]VERSION", help="pattern of package versions to leave out")
    return parser.parse_args()


def main() -> int:
    arguments = _arguments()
    try:
        declarations = Declarations(arguments.system, tuple(arguments.extra_driver))
        if arguments.action == "driver-versions":
            print(" ".join(declarations.driver_versions()))
            return 0
        out = arguments.out.resolve()
        out.mkdir(parents=True, exist_ok=True)
        if arguments.action == "build":
            built, kept = pool.update(declarations, out.with_name(f"{out.name}.work"), out)
            print(f"Packages: {built} built, {kept} unchanged.")
        shown = publish.publish(declarations, out, tuple(arguments.without))
    except DeclarationError as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        detail = (error.stderr or b"").decode() if isinstance(error.stderr, bytes) else (error.stderr or "")
        print(
            f"The command '{' '.join(map(str, error.cmd))}' failed with exit status {error.returncode}: {detail.strip()}", file=sys.stderr
        )
        return 1
    print("Published: " + ", ".join(f"{suite} {count}" for suite, count in shown.items()) + ".")
    return 0


if __name__ == "__main__":
    sys.exit(main())
