# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of gpu_settings: carries pynvml to the node."""

from __future__ import annotations

from ansible_collections.heterogpu.inference.plugins.plugin_utils._nvml_carrier import NvmlAction


class ActionModule(NvmlAction):
    pass
