"""Reads the declarations and expands them into concrete packages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent.parent
TABLE = HERE.parents[2] / "data" / "packages.yml"
RELATIONS = ("depends", "recommends", "provides", "conflicts", "replaces")
MAINTAINER = "heterogpu sandbox <sandbox@heterogpu.invalid>"

Values = dict[str, str]


class DeclarationError(Exception):
    """A declaration that cannot be expanded."""


@dataclass(frozen=True)
class Package:
    """One version of one package, with every placeholder filled in."""

    group: str
    name: str
    version: str
    architecture: str
    control: dict[str, str]
    components: tuple[dict[str, Any], ...] = ()
    values: Values = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        # The epoch has no place in a file name; a tilde or plus has.
        return f"{self.name}_{self.version.split(':', 1)[-1]}_{self.architecture}.deb"


def load(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8") as stream:
        return yaml.safe_load(stream)


def fill(text: str, values: Values) -> str:
    """Replace {placeholders}; {closure:NAME} is looked up after the name itself was filled in."""
    for key, value in values.items():
        text = text.replace("{" + key + "}", value)
    left = re.search(r"\{[a-z_]+(:[^}]*)?\}", text)
    if left:
        raise DeclarationError(f"The placeholder {left.group(0)} in '{text}' has no value; use one of {', '.join(sorted(values))}.")
    return text


def _fill_everywhere(value: Any, values: Values) -> Any:
    if isinstance(value, str):
        return fill(value, values)
    if isinstance(value, list):
        return [_fill_everywhere(item, values) for item in value]
    if isinstance(value, dict):
        return {key: _fill_everywhere(item, values) for key, item in value.items()}
    return value


def family(system: str) -> str:
    return system.split("-", 1)[0]


class Declarations:
    """All package declarations, for one supported system."""

    def __init__(self, system: str, extra_drivers: tuple[str, ...] = ()) -> None:
        self.table = load(TABLE)
        if system not in self.table["systems"]:
            raise DeclarationError(f"The system '{system}' is not in {TABLE}; use one of {', '.join(self.table['systems'])}.")
        self.system = system
        self.components = load(HERE / "packages" / "components.yml")["components"]
        self.suites = load(HERE / "packages" / "suites.yml")["suites"]
        self.drivers = self._drivers(extra_drivers)

    def _drivers(self, extra: tuple[str, ...]) -> dict[str, list[str]]:
        drivers = {branch: list(entry["versions"]) for branch, entry in self.table["drivers"].items()}
        for version in extra:
            drivers.setdefault(version.split(".", 1)[0], []).append(version)
        return drivers

    def driver_versions(self) -> list[str]:
        return [version for versions in self.drivers.values() for version in versions]

    def suite_groups(self, suite: str) -> list[str]:
        groups = self.suites[suite]["groups"]
        return groups[family(self.system)] if isinstance(groups, dict) else groups

    def packages(self) -> list[Package]:
        found: dict[tuple[str, str, str], Package] = {}
        for path in sorted((HERE / "packages").glob("*.yml")):
            declaration = load(path)
            if "packages" not in declaration:
                continue
            for values in self._each(declaration):
                for entry in declaration["packages"]:
                    if values.get("branch") in entry.get("branches", [values.get("branch")]):
                        package = self._package(declaration, entry, values)
                        found[package.group, package.name, package.version] = package
        return list(found.values())

    def _each(self, declaration: dict[str, Any]) -> Iterator[Values]:
        each = declaration["each"]
        if each == "once":
            yield {}
        elif each == "driver":
            scheme = self._version_scheme(declaration["versions"])
            for branch, versions in self.drivers.items():
                for version in versions:
                    yield {"branch": branch, "version": version, "self": fill(scheme, {"version": version})}
        elif each == "cuda":
            yield from self._toolkits()
        elif each == "nccl":
            for entry in self.table["nccl"]["versions"].values():
                yield _nccl_values(entry["version"])
        elif each == "container_toolkit":
            yield {"version": self.table["container_toolkit"]["version"]}
        else:
            raise DeclarationError(
                f"The value '{each}' of 'each' in group {declaration['group']} is not once, driver, cuda, nccl or container_toolkit."
            )

    def _version_scheme(self, versions: dict[str, str]) -> str:
        system = self.system
        if family(system) != versions.get("family", family(system)):
            system = versions["otherwise"]
        return self.table["systems"][system][versions["source"]]["package_version"]

    def _toolkits(self) -> Iterator[Values]:
        for cuda, entry in self.table["cuda"]["toolkits"].items():
            dash = cuda.replace(".", "-")
            major, minor = cuda.split(".")
            closure = entry["closure"]
            values = {
                "cuda": cuda,
                "dash": dash,
                "release": entry["release"],
                "toolkit_version": entry["version"],
                "config_version": closure[f"cuda-toolkit-{dash}-config-common"],
                "compat_version": entry["compat_version"],
                "minimum_driver": entry["minimum_driver"],
                "cudart_version": _upstream(closure[f"cuda-cudart-{dash}"]),
                "nvcc_version": _upstream(closure[f"cuda-nvcc-{dash}"]),
                "cudart_number": str(int(major) * 1000 + int(minor) * 10),
                "priority": f"{major}{minor}",
            }
            values.update({f"closure:{name}": version for name, version in closure.items()})
            yield values

    def _package(self, declaration: dict[str, Any], entry: dict[str, Any], values: Values) -> Package:
        name = fill(entry["name"], values)
        scheme = entry.get("version") or values.get("self") or values.get(f"closure:{name}")
        if scheme is None:
            raise DeclarationError(
                f"The package {name} of group {declaration['group']} has no version; give it one or list it in the closure in {TABLE}."
            )
        version = fill(scheme, values)
        values = {**values, "package": name, "debian_version": version, "upstream": _upstream(version)}
        architecture = entry.get("architecture", "amd64")
        control = {
            "Package": name,
            "Version": version,
            "Architecture": architecture,
            "Maintainer": MAINTAINER,
            "Section": entry.get("section", "misc"),
            "Priority": "optional",
        }
        source = entry.get("source", declaration.get("source_package"))
        if source:
            control["Source"] = fill(source, values)
        for relation in RELATIONS:
            items = [*entry.get(relation, []), *entry.get(f"branch_{relation}", {}).get(values.get("branch", ""), [])]
            if items:
                control[relation.capitalize()] = ", ".join(fill(item, values) for item in items)
        control["Description"] = fill(entry["summary"], values) + "\n Stand-in for the sandbox, with the relations of the real package."
        components = tuple(_fill_everywhere(self.components[key], values) for key in entry.get("components", []))
        return Package(declaration["group"], name, version, architecture, control, components, values)


def _upstream(version: str) -> str:
    return version.rsplit("-", 1)[0]


def _nccl_values(version: str) -> Values:
    major, minor, patch = _upstream(version).split(".")
    return {
        "version": version,
        "nccl_major": major,
        "nccl_minor": minor,
        "nccl_patch": patch,
        "nccl_code": str(int(major) * 10000 + int(minor) * 100 + int(patch)),
    }
