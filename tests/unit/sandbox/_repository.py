"""Makes the repository builder importable and gives the tests a view of package relations."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "sandbox" / "repository"))

from repository_builder.declarations import Declarations, Package, fill, load  # noqa: E402

TABLE = load(ROOT / "data" / "packages.yml")
SYSTEMS = list(TABLE["systems"])
SOURCES = ["ubuntu", "nvidia"]
FLAVOURS = ["open", "proprietary"]
DRIVERS = [(branch, version) for branch, entry in TABLE["drivers"].items() for version in entry["versions"]]


@cache
def declarations(system: str) -> Declarations:
    return Declarations(system)


@cache
def all_packages(system: str) -> list[Package]:
    return declarations(system).packages()


def suite_packages(system: str, suite: str) -> list[Package]:
    groups = declarations(system).suite_groups(suite)
    return [package for package in all_packages(system) if package.group in groups]


def relation(package: Package, name: str) -> list[str]:
    """The names in one relation field, alternatives and versions dropped."""
    text = package.control.get(name, "")
    return [re.split(r"[ (|]", item.strip(), maxsplit=1)[0] for item in text.split(",") if item.strip()]


def provided(package: Package) -> set[str]:
    return {package.name, *relation(package, "Provides")}


def names(items: Iterable[str], branch: str, version: str) -> set[str]:
    return {fill(item, {"branch": branch, "version": version}) for item in items}


def world(system: str, source: str, branch: str) -> dict:
    return TABLE["systems"][system][source]["branches"][branch]


def expected_version(system: str, source: str, branch: str, version: str, name: str) -> str:
    entry = TABLE["systems"][system][source]
    own = {
        fill(key, {"branch": branch, "version": version}): value
        for key, value in entry["branches"][branch].get("package_versions", {}).items()
    }
    return fill(own.get(name, entry["package_version"]), {"branch": branch, "version": version})


def driver_packages(system: str, source: str, branch: str, version: str) -> dict[str, Package]:
    """The packages of one driver version in one world, by name."""
    return {
        package.name: package
        for package in suite_packages(system, source)
        if package.values.get("version") == version and package.values.get("branch") == branch
    }


def reachable(packages: dict[str, Package], start: Iterable[str], prefer: set[str]) -> set[str]:
    """Everything that installing `start` brings in, as far as `packages` offers it; among alternatives one of `prefer` wins."""
    found: set[str] = set()
    queue = list(start)
    while queue:
        name = queue.pop()
        if name in found or name not in packages:
            continue
        found.add(name)
        for item in packages[name].control.get("Depends", "").split(","):
            options = [re.split(r"[ (]", option.strip(), maxsplit=1)[0] for option in item.split("|") if option.strip()]
            chosen = next((option for option in options if option in prefer), options[0] if options else "")
            queue += [candidate.name for candidate in packages.values() if chosen in provided(candidate)]
    return found
