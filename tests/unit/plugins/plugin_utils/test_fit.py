# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory formula against a table worked out by hand: model, device, GPUs, tokens."""

from __future__ import annotations

import planning
import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _entities, _fit

SHAPES = {
    "Llama-3-8B": (8.03e9, 32, 32, 8, 128, 4096),
    "Llama-2-13B": (13.016e9, 40, 40, 40, 128, 5120),
    "Qwen2.5-32B": (32.76e9, 64, 40, 8, 128, 5120),
    "Llama-3.x-70B": (70.55e9, 80, 64, 8, 128, 8192),
}
ROWS = [
    ("A100-SXM4-80GB", "Llama-3-8B", 1, 449478),
    ("A100-SXM4-80GB", "Llama-3-8B", 2, 1021484),
    ("A100-SXM4-80GB", "Llama-3-8B", 4, 2165497),
    ("A100-SXM4-80GB", "Llama-3-8B", 8, 4453523),
    ("A100-SXM4-80GB", "Llama-2-13B", 1, 59743),
    ("A100-SXM4-80GB", "Qwen2.5-32B", 4, 894043),
    ("A100-SXM4-80GB", "Llama-3.x-70B", 1, 0),
    ("A100-SXM4-80GB", "Llama-3.x-70B", 2, 26977),
    ("A100-SXM4-80GB", "Llama-3.x-70B", 4, 484582),
    ("A100-SXM4-80GB", "Llama-3.x-70B", 8, 1399793),
    ("3g.40gb", "Llama-3-8B", 1, 154566),
    ("4g.40gb", "Llama-2-13B", 1, 12557),
    ("3g.40gb", "Llama-3.x-70B", 1, 0),
    ("V100-PCIE-32GB", "Llama-3-8B", 1, 99196),
    ("V100-PCIE-32GB", "Llama-2-13B", 1, 3698),
    ("V100-PCIE-32GB", "Llama-2-13B", 2, 39174),
    ("V100-PCIE-32GB", "Qwen2.5-32B", 4, 193479),
    ("V100-PCIE-32GB", "Llama-3.x-70B", 4, 0),
    ("V100-PCIE-32GB", "Llama-3.x-70B", 8, 278891),
]
SETTINGS = _entities.Settings(0.9, 1536, 20000, 0, False, False, False)


def service(model: _entities.Model, context: int = 4096, requests: int = 1) -> _entities.Service:
    return _entities.Service(
        name="x",
        model=model,
        service_class="batch",
        replicas=1,
        context_tokens=context,
        concurrent_requests=requests,
        device=_entities.Device(gpus=1),
        tensor_parallel=None,
        allow_pcie=False,
        dtype=model.dtype,
        engine="vllm",
        engine_version=None,
        engine_environment="image",
        pools=(),
        nodes=(),
        anti_affinity="none",
        apart_from=(),
        cpus=0,
        memory_mib=0,
        hugepages_mib=0,
        min_available=0,
    )


def model(name: str, quantization: str = "none", encoder: bool = False) -> _entities.Model:
    parameters, layers, heads, kv_heads, head_dim, hidden = SHAPES[name]
    return _entities.Model(name, parameters, layers, heads, kv_heads, head_dim, hidden, "float16", quantization, encoder)


@pytest.mark.parametrize(("device", "name", "gpus", "tokens"), ROWS)
def test_tokens_are_those_of_the_table(device: str, name: str, gpus: int, tokens: int) -> None:
    gpu = planning.catalog().model(device)
    a100 = planning.catalog().model("A100-SXM4-80GB")
    assert a100 is not None
    profile = a100.profile(device)
    memory = gpu.usable_memory_mib if gpu else profile.memory_mib if profile else 0
    got = _fit.fit(service(model(name)), SETTINGS, memory, gpus).tokens
    # The table was worked out from memory rounded to hundredths of a GiB, and parameters rounded to three digits.
    assert got == pytest.approx(tokens, rel=0.002, abs=700)


def test_the_arithmetic_adds_up() -> None:
    got = _fit.fit(service(model("Llama-3-8B"), 8192, 16), SETTINGS, 40192)
    assert (got.needed_tokens, got.available_mib, got.overhead_mib) == (131072, 36172, 1536)
    assert got.working_mib == 131072 * 128 // 1024
    assert got.needed_mib == 15317 + 1536 + 16384
    assert got.fits
    assert got.headroom_mib == got.available_mib - got.needed_mib


def test_kv_heads_are_not_split_further_than_there_are() -> None:
    eight = _fit.token_bytes(model("Llama-3-8B"), "float16", 8)
    assert _fit.token_bytes(model("Llama-3-8B"), "float16", 16) == eight
    assert _fit.token_bytes(model("Llama-3-8B"), "float16", 4) == 2 * eight


def test_four_bit_weights_and_encoders() -> None:
    assert _fit.weights_bytes(model("Llama-3.x-70B", "awq"), "float16") / 2**30 == pytest.approx(36.1, abs=0.1)
    assert _fit.token_bytes(model("Llama-3-8B", encoder=True), "float16", 1) == 12 * 4096 * 2


def test_a_share_has_its_part_of_the_memory() -> None:
    whole = _fit.fit(service(model("Llama-3-8B")), SETTINGS, 70000)
    quarter = _fit.fit(service(model("Llama-3-8B")), SETTINGS, 70000, share=4)
    assert quarter.available_mib == whole.available_mib // 4
    assert not quarter.fits
