# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_errors
short_description: Says all errors of preflight in one text
version_added: 0.1.0
author:
  - heterogpu contributors (@heterogpu)
description:
  - Joins the errors among the findings; what several nodes have in common is said once. Without errors the text is empty.
options:
  _input:
    description: Findings from P(heterogpu.inference.preflight_findings#filter) of any number of nodes.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Stop
  ansible.builtin.assert:
    that: findings | heterogpu.inference.preflight_errors == ''
    fail_msg: "{{ findings | heterogpu.inference.preflight_errors }}"
"""

RETURN = r"""
_value:
  description: The text.
  type: str
"""

from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils._preflight import errors_text


def preflight_errors(findings: list[dict[str, str]]) -> str:
    return errors_text(findings)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"preflight_errors": preflight_errors}
