"""Writes one .deb: control file, payload and maintainer scripts."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .declarations import HERE, DeclarationError, Package

FILES = HERE / "files"
SCRIPT_NAMES = ("preinst", "postinst", "prerm", "postrm")


def render(text: str, values: dict[str, str], where: str) -> str:
    """Fill the @PLACEHOLDERS@ of a file template."""
    for key, value in values.items():
        if not key.startswith("closure:"):
            text = text.replace(f"@{key.upper()}@", value)
    left = re.search(r"@[A-Z][A-Z_]*@", text)
    if left:
        raise DeclarationError(f"The placeholder {left.group(0)} in {where} has no value.")
    return text


def _component_values(package: Package, component: dict[str, Any]) -> dict[str, str]:
    own = {key: value for key, value in component.items() if isinstance(value, str)}
    return {**package.values, **own}


def payload(package: Package, build: Path) -> Iterator[tuple[str, str, Path | str]]:
    """Every regular file as (destination, mode, source path or text)."""
    for component in package.components:
        values = _component_values(package, component)
        for entry in component.get("files", []):
            mode = entry.get("mode", "0644")
            if "built" in entry:
                yield entry["to"], mode, build / entry["built"]
            else:
                template = FILES / entry["template"]
                local = {**values, **{key: value for key, value in entry.items() if isinstance(value, str)}}
                yield entry["to"], mode, render(template.read_text(encoding="utf-8"), local, str(template))
        for tree in component.get("trees", []):
            root = build / tree["built"]
            for path in sorted(root.rglob("*")):
                if path.is_file():
                    yield f"{tree['to'].rstrip('/')}/{path.relative_to(root)}", f"{path.stat().st_mode & 0o7777:04o}", path


def scripts(package: Package) -> dict[str, str]:
    """The maintainer scripts, put together from the components' fragments."""
    found: dict[str, str] = {}
    for name in SCRIPT_NAMES:
        parts = []
        for component in package.components:
            values = _component_values(package, component)
            for fragment in component.get("scripts", []):
                path = FILES / "scripts" / f"{fragment}.{name}"
                if path.exists():
                    parts.append(render(path.read_text(encoding="utf-8"), values, str(path)))
        if parts:
            found[name] = "#!/bin/sh\nset -e\n" + "".join(parts)
    return found


def _collected(package: Package, key: str) -> list[str]:
    return [item for component in package.components for item in component.get(key, [])]


def _links(package: Package) -> list[dict[str, str]]:
    return [item for component in package.components for item in component.get("links", [])]


def fingerprint(package: Package, build: Path) -> str:
    """Changes whenever the package's content would."""
    digest = hashlib.sha256()
    digest.update(
        json.dumps([package.control, scripts(package), _links(package), _collected(package, "triggers")], sort_keys=True).encode()
    )
    for destination, mode, source in payload(package, build):
        content = source.read_bytes() if isinstance(source, Path) else source.encode()
        digest.update(f"{destination}\0{mode}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def write(package: Package, build: Path, target: Path) -> None:
    """Build the package and put it at target in one step."""
    with tempfile.TemporaryDirectory(prefix="sandbox-deb-") as folder:
        root = Path(folder) / "root"
        _lay_payload(package, build, root)
        _lay_control(package, root / "DEBIAN")
        result = Path(folder) / "package.deb"
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z6", "--build", str(root), str(result)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.partial")
        shutil.copyfile(result, partial)
        partial.replace(target)


def _lay_payload(package: Package, build: Path, root: Path) -> None:
    root.mkdir()
    root.chmod(0o755)
    for destination, mode, source in payload(package, build):
        path = root / destination.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(source, Path):
            shutil.copyfile(source, path)
        else:
            path.write_text(source, encoding="utf-8")
        path.chmod(int(mode, 8))
    for link in _links(package):
        path = root / link["to"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(link["target"])
    document = root / "usr/share/doc" / package.name / "README.sandbox"
    document.parent.mkdir(parents=True)
    document.write_text(f"{package.name} {package.version}: stand-in for the sandbox.\n", encoding="utf-8")


def _lay_control(package: Package, folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o755)
    control = "".join(f"{key}: {value}\n" for key, value in package.control.items())
    (folder / "control").write_text(control, encoding="utf-8")
    for name, text in scripts(package).items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    for name in ("conffiles", "triggers"):
        lines = _collected(package, name)
        if lines:
            (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
