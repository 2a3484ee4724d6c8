# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A language model small enough for a CPU: bag-of-tokens hidden state, tied output weights, greedy decoding."""

from __future__ import annotations

import os

import numpy as np
import triton_python_backend_utils as pb_utils

VOCABULARY = 256
WIDTH = 32
GENERATED = 4


class TritonPythonModel:
    def initialize(self, args: dict) -> None:
        rows = np.arange(VOCABULARY)[:, None]
        columns = np.arange(WIDTH)[None, :]
        self.weights = ((rows * 31 + columns * 17 + rows * columns) % 97 - 48) / 48.0
        # The answer says which device the process was given, so that a caller can prove the isolation.
        self.device = np.array([os.environ.get("NVIDIA_VISIBLE_DEVICES", "")], dtype=np.object_)

    def execute(self, requests: list) -> list:
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        tokens = pb_utils.get_input_tensor_by_name(request, "tokens").as_numpy().reshape(-1)
        if tokens.size == 0 or tokens.min() < 0 or tokens.max() >= VOCABULARY:
            error = pb_utils.TritonError(f"tokens must be 1 or more integers from 0 to {VOCABULARY - 1}")
            return pb_utils.InferenceResponse(error=error)
        context = list(tokens)
        scores = []
        for _step in range(GENERATED):
            hidden = self.weights[context].mean(axis=0)
            logits = self.weights @ hidden
            # A bag of tokens would repeat its favourite for ever.
            logits[context] = -np.inf
            best = int(np.argmax(logits))
            context.append(best)
            scores.append(logits[best])
        return pb_utils.InferenceResponse(
            output_tensors=[
                pb_utils.Tensor("next_tokens", np.array(context[-GENERATED:], dtype=np.int64)),
                pb_utils.Tensor("scores", np.array(scores, dtype=np.float64)),
                pb_utils.Tensor("device", self.device),
            ]
        )
