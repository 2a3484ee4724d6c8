#!/usr/bin/env python3
"""Fails unless a recap written by the callback sandbox_recap shows hosts, and no change or failure on any of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def complaints(recap: dict[str, dict[str, object]]) -> list[str]:
    """One sentence for each host on which something happened."""
    found = []
    for host, counts in recap.items():
        if counts["failures"] or counts["unreachable"]:
            found.append(f"{host} failed or was unreachable in the second run.")
        if counts["changed"]:
            found.append(f"{host} was changed by the second run: {counts['changed_tasks']}.")
    return found if recap else ["The second run touched no host at all."]


def main() -> int:
    recap = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    found = complaints(recap)
    for sentence in found:
        print(sentence, file=sys.stderr)
    for host, counts in recap.items():
        print(f"{host:<12} ok={counts['ok']} changed={counts['changed']} failed={counts['failures']}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
