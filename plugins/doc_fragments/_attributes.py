# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes of the modules, said once. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations


class ModuleDocFragment:
    # What each attribute means; every module adds one of the fragments below.
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the node.
  diff_mode:
    description: Returns details of what has changed, or in check mode of what would change, in diff mode.
  idempotent:
    description: When run twice with the same arguments, the second run changes nothing.
"""

    CHANGING = r"""
options: {}
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
"""

    INFO = r"""
options: {}
attributes:
  check_mode:
    support: full
    details: Changes nothing in any mode.
  diff_mode:
    support: N/A
    details: Changes nothing in any mode.
  idempotent:
    support: full
"""
