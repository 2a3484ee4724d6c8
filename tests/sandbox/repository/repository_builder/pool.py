"""Keeps the pool of built packages in step with the declarations, building only what changed."""

from __future__ import annotations

import json
from pathlib import Path

from . import deb
from .declarations import Declarations


def update(declarations: Declarations, build: Path, out: Path) -> tuple[int, int]:
    """Build what is new or changed, drop what is no longer declared; returns (built, kept)."""
    record_path = build / "pool.json"
    record: dict[str, str] = json.loads(record_path.read_text(encoding="utf-8")) if record_path.exists() else {}
    wanted: dict[str, str] = {}
    built = 0
    for package in declarations.packages():
        key = f"{package.group}/{package.file_name}"
        wanted[key] = deb.fingerprint(package, build)
        target = out / "pool" / key
        if record.get(key) != wanted[key] or not target.exists():
            deb.write(package, build, target)
            built += 1
    for path in (out / "pool").glob("*/*.deb"):
        if f"{path.parent.name}/{path.name}" not in wanted:
            path.unlink()
    record_path.write_text(json.dumps(wanted, indent=1, sort_keys=True), encoding="utf-8")
    return built, len(wanted) - built
