# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a service fits a device. PRIVATE: internal to the collection, may change at any time.

For each GPU of a replica, in MiB:

    available = usable memory of the device x inference_usable_memory_fraction (/ n for a share of 1/n)
    weights   = parameters x bytes per parameter / tensor parallel size
    room      = available - weights - inference_runtime_overhead_mib
    tokens    = room / (bytes per token on each GPU)

A decoder keeps, for every token, keys and values of all layers: 2 x layers x KV heads x head dim x bytes, divided by
min(tensor parallel size, KV heads), since a KV head cannot be split. An encoder keeps no cache; while it works, a token
takes about 12 x hidden size x bytes (the widest layer: queries, keys, values, the feed-forward layer's 4 x hidden size,
and the residual stream around them).

A service fits when its tokens ≥ context tokens x concurrent requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from ._entities import Model, Service, Settings

MIB = 1024 * 1024
DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
# Four-bit formats keep scales and zero points beside the weights, and some layers unquantized.
QUANTIZED_BYTES = {"int8": 1.0, "awq": 0.55, "gptq": 0.55, "bitsandbytes": 0.55}
ENCODER_WIDTH = 12


@dataclass(frozen=True, slots=True)
class Fit:
    """The arithmetic for each GPU of a replica."""

    tensor_parallel: int
    weights_mib: int
    overhead_mib: int
    working_mib: int  # KV cache, or an encoder's activations
    needed_mib: int
    available_mib: int
    tokens: int
    needed_tokens: int

    @property
    def fits(self) -> bool:
        return self.tokens >= self.needed_tokens

    @property
    def headroom_mib(self) -> int:
        return self.available_mib - self.needed_mib

    @property
    def headroom_tokens(self) -> int:
        return self.tokens - self.needed_tokens


def weights_bytes(model: Model, dtype: str) -> float:
    return model.parameters * QUANTIZED_BYTES.get(model.quantization, DTYPE_BYTES[dtype])


def token_bytes(model: Model, dtype: str, tensor_parallel: int) -> float:
    """Bytes that one token takes on each GPU."""
    if model.encoder:
        return ENCODER_WIDTH * model.hidden_size * DTYPE_BYTES[dtype] / tensor_parallel
    return 2 * model.layers * model.kv_heads * model.head_dim * DTYPE_BYTES[dtype] / min(tensor_parallel, model.kv_heads)


def fit(service: Service, settings: Settings, memory_mib: int, tensor_parallel: int = 1, share: int = 1) -> Fit:
    """Compute the fit of a service on a device with so much usable memory (of each GPU)."""
    available = memory_mib * settings.usable_fraction / share
    weights = weights_bytes(service.model, service.dtype) / tensor_parallel / MIB
    per_token = token_bytes(service.model, service.dtype, tensor_parallel) / MIB
    room = available - weights - settings.overhead_mib
    tokens = max(0, floor(room / per_token))
    working = service.needed_tokens * per_token
    return Fit(
        tensor_parallel=tensor_parallel,
        weights_mib=ceil(weights),
        overhead_mib=settings.overhead_mib,
        working_mib=ceil(working),
        needed_mib=ceil(weights + settings.overhead_mib + working),
        available_mib=floor(available),
        tokens=tokens,
        needed_tokens=service.needed_tokens,
    )
