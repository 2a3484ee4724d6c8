# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cosine of token histograms between a query and each passage, and the passages' order by it."""

from __future__ import annotations

import os

import numpy as np
import triton_python_backend_utils as pb_utils

VOCABULARY = 256


class TritonPythonModel:
    def initialize(self, args: dict) -> None:
        # The answer says which device the process was given, so that a caller can prove the isolation.
        self.device = np.array([os.environ.get("NVIDIA_VISIBLE_DEVICES", "")], dtype=np.object_)

    def execute(self, requests: list) -> list:
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        query = pb_utils.get_input_tensor_by_name(request, "query").as_numpy().reshape(-1)
        passages = pb_utils.get_input_tensor_by_name(request, "passages").as_numpy()
        for name, tokens in (("query", query), ("passages", passages)):
            if tokens.size == 0 or tokens.min() < 0 or tokens.max() >= VOCABULARY:
                error = pb_utils.TritonError(f"{name} must hold 1 or more integers from 0 to {VOCABULARY - 1}")
                return pb_utils.InferenceResponse(error=error)
        wanted = self._histogram(query)
        scores = np.array([self._histogram(passage) @ wanted for passage in passages])
        return pb_utils.InferenceResponse(
            output_tensors=[
                pb_utils.Tensor("scores", scores),
                pb_utils.Tensor("order", np.argsort(-scores, kind="stable").astype(np.int64)),
                pb_utils.Tensor("device", self.device),
            ]
        )

    @staticmethod
    def _histogram(tokens):
        counts = np.bincount(tokens, minlength=VOCABULARY).astype(np.float64)
        return counts / np.linalg.norm(counts)
