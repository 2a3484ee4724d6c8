# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gram matrix, column means and column standard deviations of the request's matrix."""

from __future__ import annotations

import os

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args: dict) -> None:
        # The answer says which device the process was given, so that a caller can prove the isolation.
        self.device = np.array([os.environ.get("NVIDIA_VISIBLE_DEVICES", "")], dtype=np.object_)

    def execute(self, requests: list) -> list:
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        matrix = pb_utils.get_input_tensor_by_name(request, "matrix").as_numpy()
        if matrix.size == 0:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("matrix must have at least one row and one column"))
        return pb_utils.InferenceResponse(
            output_tensors=[
                pb_utils.Tensor("gram", matrix.T @ matrix),
                pb_utils.Tensor("mean", matrix.mean(axis=0)),
                pb_utils.Tensor("standard_deviation", matrix.std(axis=0)),
                pb_utils.Tensor("device", self.device),
            ]
        )
