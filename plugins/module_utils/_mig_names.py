# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spelling of declared profiles. PRIVATE: internal to the collection, may change at any time.

3c.3g.40gb is 3g.40gb: the compute instance fills its GPU instance. +me is a profile of its own. A count of zero is nothing.
"""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Wanted

_SPELLING = re.compile(
    r"^(?:MIG )?(?:(?P<c>\d+)c\.)?(?P<name>(?P<g>\d+)g\.\d+gb(?P<attributes>(?:[+-][a-z][a-z.]*)*))(?:@(?P<start>\d+))?$"
)


def parse(text: Any, where: str) -> Wanted:
    match = _SPELLING.match(text.strip().lower().replace("mig ", "MIG ")) if isinstance(text, str) else None
    if not match:
        raise InvalidInput(
            f"{where}: {text!r} is not a MIG profile; write a name such as 3g.40gb, 1g.10gb+me or, with its start slice, 3g.40gb@4."
        )
    if match["c"] and match["c"] != match["g"]:
        raise InvalidInput(
            f"{where}: {text} asks for a compute instance that is smaller than its GPU instance, which Kubernetes and Triton do not use; "
            f"write {match['name']}."
        )
    return Wanted(match["name"], None if match["start"] is None else int(match["start"]))


def parse_all(profiles: Any, where: str) -> list[Wanted]:
    """A list of names or a map from name to count."""
    if isinstance(profiles, dict):
        wanted: list[Wanted] = []
        for text, count in profiles.items():
            one = parse(text, where)
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise InvalidInput(f"{where}: the count of {text} is {count!r}; write a whole number from 0.")
            if one.start is not None and count > 1:
                raise InvalidInput(f"{where}: {text} has a start slice and can exist once, not {count} times; correct the count.")
            wanted += [one] * count
        return wanted
    if isinstance(profiles, list):
        return [parse(text, where) for text in profiles]
    raise InvalidInput(f"{where}: profiles is {profiles!r}; write a list of profile names or a map from name to count.")
