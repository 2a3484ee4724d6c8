# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of mig_geometry: carries pynvml and the profile tables of the known GPU models to the node."""

from __future__ import annotations

from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils._gpu_profiles import tables
from ansible_collections.heterogpu.inference.plugins.plugin_utils._nvml_carrier import NvmlAction


class ActionModule(NvmlAction):
    def extra_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        by_name, names = tables()
        return {"_profile_tables": by_name, "_model_names": names}
