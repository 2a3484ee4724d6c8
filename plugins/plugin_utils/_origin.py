# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which file a variable was written. PRIVATE: internal to the collection, may change at any time.

ansible-core tags values with their origin, but offers no public way to read it. Without it, messages name the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

try:
    from ansible._internal._datatag._tags import Origin
except ImportError:  # pragma: no cover - a later ansible-core may move it
    Origin = None


def file_of(value: Any) -> str | None:
    """Return the file of a value, or of the first part of it that has one."""
    if Origin is None:
        return None
    tag = Origin.get_tag(value)
    if tag is not None and tag.path:
        return str(tag.path)
    parts = [part for pair in value.items() for part in pair] if isinstance(value, Mapping) else value if isinstance(value, list) else []
    return next((found for part in parts if (found := file_of(part))), None)


def relative(path: str) -> str:
    """The path as seen from where Ansible was started, when it lies below."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def plain(value: Any) -> Any:
    """Return the value without tags and lazy templates, for documents and comparisons."""
    if isinstance(value, Mapping):
        return {plain(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    for kind in (str, int, float):
        if isinstance(value, kind) and not isinstance(value, bool):
            return kind(value)
    return value
