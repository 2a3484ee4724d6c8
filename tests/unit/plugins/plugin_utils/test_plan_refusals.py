# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What cannot be done is said in one sentence with the figures and a way out."""

from __future__ import annotations

from typing import Any

import planning
import pytest
from small import cluster, service


def refusals(*services: dict[str, Any], node: dict[str, Any] | None = None, **keys: Any) -> dict[str, str]:
    hosts, groups = cluster(*services, **keys)
    if node:
        hosts["v100-1"] = hosts["v100-1"] | node
    return {refusal["code"]: refusal["sentence"] for refusal in planning.plan(hosts, groups).document["refusals"]}


def test_70b_in_fp16_on_a_40_gb_instance() -> None:
    got = refusals(service("big", model="seventy", dtype="float16", device={"mig": "3g.40gb"}))
    assert got == {
        "does_not_fit": "big: seventy in FP16 needs 143.0 GiB on 3g.40gb on A100-SXM4-80GB (131.5 GiB weights + 1.5 GiB runtime + "
        "10.0 GiB KV cache for 4096 tokens x 8 requests), but that has 35.3 GiB usable: 107.7 GiB too much. "
        "The smallest device here that would do is 4 x A100-SXM4-80GB: device: {gpus: 4}."
    }


def test_mig_on_v100() -> None:
    got = refusals(service("chat", device={"mig": "3g.40gb"}, pool="v100"))
    assert got["rule:mig"].startswith(
        "chat: MIG needs compute capability 8.0 or later. A V100-PCIE-32GB has 7.0. Ask for device: {gpus: 1}"
    )


def test_bf16_on_v100() -> None:
    got = refusals(service("chat", dtype="bfloat16", pool="v100"))
    assert got == {
        "rule:bfloat16": "chat: BF16 needs compute capability 8.0 or later. A V100-PCIE-32GB has 7.0. "
        "Set dtype: float16 for the service, or run it on A100 nodes."
    }


def test_tensor_parallelism_over_mig() -> None:
    got = refusals(service("big", model="seventy", device={"mig": "4g.40gb"}, tensor_parallel=2))
    assert got["tensor_parallel_over_mig"] == (
        "big: Tensor parallelism over 2 GPUs needs whole GPUs with MIG off: instances have no path to each other. "
        "Set tensor_parallel: 1 or ask for whole GPUs. The smallest device here that would do is 4 x A100-SXM4-80GB: device: {gpus: 4}."
    )


def test_two_services_want_the_last_gpu() -> None:
    got = refusals(service("a", device={"gpus": 1}, pool="a100"), service("b", device={"gpus": 1}, pool="a100"), a100=1)
    assert got == {
        "no_device_left": "b: No place for 1 of 1 replicas: each needs 1 x A100-SXM4-80GB, and none is left (1 x A100-SXM4-80GB: 1 by a). "
        "Add 1 more A100-SXM4-80GB, or leave the service out."
    }


def test_the_higher_class_gets_the_last_gpu() -> None:
    lower = service("a", device={"gpus": 1}, pool="a100") | {"class": "auxiliary"}
    assert "a: " in refusals(lower, service("b", device={"gpus": 1}, pool="a100"), a100=1)["no_device_left"]


def test_concurrency_that_would_fit_is_named() -> None:
    got = refusals(service("bulk", model="seventy", device={"gpus": 4}, context_tokens=8192, concurrent_requests=64))
    assert "With concurrent_requests: 59 it would fit." in got["does_not_fit"]
    assert not refusals(service("bulk", model="seventy", device={"gpus": 4}, context_tokens=8192, concurrent_requests=59))


@pytest.mark.parametrize(
    ("keys", "code", "words"),
    [
        ({"device": {"gpus": 4}, "pool": "v100"}, "set_too_small", "in one NVLink set, but the largest such set has 1"),
        ({"device": {"gpus": 3}}, "tensor_parallel_heads", "32 attention heads, which 3 GPUs do not divide"),
        ({"device": {"mig": "5g.50gb"}}, "no_such_profile", "has no MIG profile 5g.50gb; it has 1g.10gb"),
        ({"cpus": 64, "device": {"gpus": 1}}, "no_cpus", "each needs 64 CPUs on the NUMA node of its GPU"),
        ({"memory_mib": 600000, "device": {"gpus": 1}}, "no_memory", "each needs 600000 MiB of host memory"),
        ({"hugepages_mib": 1024}, "no_hugepages", "each needs 1024 MiB of huge pages"),
        ({"replicas": 3, "anti_affinity": "node"}, "anti_affinity", "No place for 1 of 3 replicas"),
        ({"engine_version": "0.10.2", "pool": "v100"}, "rule:vllm-volta", "vLLM 0.9.2 is the last release known to serve on a V100"),
        ({"engine_version": "0.9.2", "pool": "v100"}, "rule:vllm-own-environment", "Set engine_environment: own"),
    ],
)
def test_other_refusals_of_a_service(keys: dict[str, Any], code: str, words: str) -> None:
    assert words in refusals(service("a", **keys))[code]


def test_a_service_kept_apart_from_another() -> None:
    got = refusals(service("a", apart_from=["b"], pool="a100"), service("b", pool="a100"))
    assert "it must not share a node with a" in got["apart_from"]


@pytest.mark.parametrize(
    ("node", "code", "words"),
    [
        (
            {"gpu_driver_flavour": "open"},
            "rule:kernel-module-flavour",
            "v100-1: gpu_driver_flavour is open. The open kernel module does not drive a V100",
        ),
        ({"gpu_driver_branch": 595}, "rule:driver-branch-volta", "v100-1: gpu_driver_branch is 595. Driver branch 580 is the last"),
        ({"cuda_version": "13.0"}, "rule:cuda-volta", "v100-1: cuda_version is 13.0. CUDA 13 has no code for a V100"),
        ({"triton_image_tag": "25.03"}, "rule:triton-image-volta", "v100-1: triton_image_tag is 25.03."),
        ({"triton_image_tag": "24.11"}, "rule:triton-image-volta-unverified", "triton_allow_unverified_image: true"),
    ],
)
def test_a_v100_node_that_cannot_work(node: dict[str, Any], code: str, words: str) -> None:
    assert words in refusals(service("a"), node=node)[code]


def test_an_unverified_image_can_be_accepted() -> None:
    assert not refusals(service("a"), node={"triton_image_tag": "24.11"}, triton_allow_unverified_image=True)


def test_a_v100_makes_its_whole_node_follow_its_rules() -> None:
    hosts, groups = cluster(service("a"))
    mixed = hosts["a100-1"] | {"gpu_devices": hosts["a100-1"]["gpu_devices"] + hosts["v100-1"]["gpu_devices"], "gpu_driver_flavour": "open"}
    plan = planning.plan({"a100-1": mixed}, {"a100-1": groups["a100-1"]}).document
    assert {refusal["code"] for refusal in plan["refusals"]} == {"rule:kernel-module-flavour", "no_active_node"}
    mixed.pop("gpu_driver_flavour")
    plan = planning.plan({"a100-1": mixed}, {"a100-1": groups["a100-1"]}).document
    assert plan["complete"]
    assert plan["nodes"]["a100-1"]["driver"]["flavour"] == "proprietary"


def test_all_problems_are_said_in_one_run() -> None:
    got = refusals(service("a", dtype="bfloat16", pool="v100"), service("b", device={"mig": "5g.50gb"}), service("c", device={"gpus": 3}))
    assert set(got) == {"rule:bfloat16", "no_such_profile", "tensor_parallel_heads"}
