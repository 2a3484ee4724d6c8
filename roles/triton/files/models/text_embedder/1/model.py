# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random-projection embedding: token counts times a fixed integer matrix, scaled to length one."""

from __future__ import annotations

import os

import numpy as np
import triton_python_backend_utils as pb_utils

VOCABULARY = 256
WIDTH = 16


class TritonPythonModel:
    def initialize(self, args: dict) -> None:
        rows = np.arange(VOCABULARY)[:, None]
        columns = np.arange(WIDTH)[None, :]
        self.projection = ((rows * 37 + columns * 11 + rows * columns * 5) % 101 - 50).astype(np.float64)
        # The answer says which device the process was given, so that a caller can prove the isolation.
        self.device = np.array([os.environ.get("NVIDIA_VISIBLE_DEVICES", "")], dtype=np.object_)

    def execute(self, requests: list) -> list:
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        tokens = pb_utils.get_input_tensor_by_name(request, "tokens").as_numpy().reshape(-1)
        if tokens.size == 0 or tokens.min() < 0 or tokens.max() >= VOCABULARY:
            error = pb_utils.TritonError(f"tokens must be 1 or more integers from 0 to {VOCABULARY - 1}")
            return pb_utils.InferenceResponse(error=error)
        vector = self.projection[tokens].sum(axis=0)
        length = np.linalg.norm(vector)
        return pb_utils.InferenceResponse(
            output_tensors=[
                pb_utils.Tensor("embedding", vector / length if length else vector),
                pb_utils.Tensor("device", self.device),
            ]
        )
