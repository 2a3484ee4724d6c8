# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""Writes a repository as deb822 text, with its key inside: one file, nothing to fetch, nothing trusted for other repositories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_REQUIRED = ("name", "uris", "suites", "key")


class RepositoryError(ValueError):
    """A full sentence for the user."""


def deb822(repository: Mapping[str, Any], mirror: str = "") -> dict[str, str]:
    """`mirror` is an address that stands for all those of the repository, with the same suites and key."""
    missing = [field for field in _REQUIRED if not repository.get(field)]
    if missing:
        raise RepositoryError(
            f"The repository {dict(repository).get('name', '')!r} lacks {' and '.join(missing)}; complete it in the inventory."
        )
    lines = ["Types: deb", f"URIs: {mirror or _words(repository['uris'])}", f"Suites: {_words(repository['suites'])}"]
    if repository.get("components"):
        lines.append(f"Components: {_words(repository['components'])}")
    lines.append(f"Signed-By:{_key(repository['key'])}")
    proxy = {"proxy": repository["proxy"]} if repository.get("proxy") else {}
    return {"name": repository["name"], "content": "\n".join(lines) + "\n", **proxy}


def _words(value: Any) -> str:
    return value if isinstance(value, str) else " ".join(value)


def _key(key: str) -> str:
    """A path stays a path; armoured text becomes a deb822 continuation, in which an empty line is a dot."""
    if key.startswith("/"):
        return f" {key}"
    return "\n" + "\n".join(f" {line or '.'}" for line in key.strip().splitlines())
