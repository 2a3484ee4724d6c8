# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventories with one fault end in a message that names variable and file; those that are still valid are planned."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import checker
import generated
import inventory_folders
import jsonschema
import mutants
import planning
import pytest
import yaml
from ansible_collections.heterogpu.inference.plugins.plugin_utils import _inventory, _planner, _reference

HONGKONG = planning.ROOT / "inventories" / "hongkong"
SAMPLE = 700
# Every key that the reference inventory leaves at its default, so that each is mutated too.
OPTIONAL: dict[str, dict[str, Any]] = {
    "group_vars/a100.yml": {
        "gpu_excluded": [7],
        "node_state": "active",
        "node_workload": "containers",
        "cuda_version": "12.6",
        "triton_image_tag": "25.08",
        "gpu_driver_branch": 580,
        "gpu_driver_version": "580.95.05",
        "gpu_driver_source": "ubuntu",
        "gpu_driver_repository": {"name": "mirror", "uris": ["http://mirror/apt"], "suites": "jammy", "key": "/k.gpg"},
        "gpu_settings": [{"gpus": [0, "0000:0f:00.0"], "persistence": True, "power_limit_w": 350, "graphics_clocks_mhz": [210, 1410]}],
        "gpu_client_services": ["nvidia-persistenced"],
        "cuda_toolkit_versions": ["12.6"],
        "nccl_version": "2.18",
        "container_toolkit_version": "1.20.2-1",
        "numa_threads_per_core": 2,
        "numa_reserved_cpus": "0-1,128-129,64-65,192-193",
        "numa_reserved_memory_mib": 16384,
        "numa_hugepages_mib": 8192,
    },
    "group_vars/v100.yml": {"numa_reserved_cpus": 4, "gpu_excluded": ["0000:b2:00.0"], "numa_hugepages_mib": 0, "node_state": "active"},
    "group_vars/all/planning.yml": {
        "inference_usable_memory_fraction": 0.9,
        "inference_runtime_overhead_mib": 1536,
        "inference_port_base": 20000,
        "triton_allow_unverified_image": False,
        "plan_max_moves": 0,
        "plan_allow_partial": False,
        "plan_allow_disruption": False,
    },
}
SERVICE = {
    "dtype": "float16",
    "engine": "vllm",
    "engine_version": "0.8.0",
    "engine_environment": "own",
    "nodes": ["a100-1"],
    "anti_affinity": "none",
    "apart_from": ["rerank"],
    "tensor_parallel": 1,
    "allow_pcie_tensor_parallel": False,
    "hugepages_mib": 0,
    "min_available": 1,
    "pool": ["a100", "v100"],
}
TABLES = {model: checker.gpu_table(model, planning.ROOT / "data") for model in (generated.A100, generated.V100)}


def documents() -> dict[str, dict[str, Any]]:
    found = {
        str(path.relative_to(HONGKONG)): yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in sorted(HONGKONG.rglob("group_vars/**/*.yml"))
    }
    for file, extra in OPTIONAL.items():
        found[file] = found.get(file, {}) | extra
    services = found["group_vars/all/services.yml"]["inference_services"]
    for service in services[1:3]:
        service.update(SERVICE | {"nodes": ["a100-1", "a100-2"], "tensor_parallel": service["device"].get("gpus", 1)})
    return found


def every() -> list[tuple[str, mutants.Path, str, dict[str, Any]]]:
    return [(file, path, kind, changed) for file, document in documents().items() for path, kind, changed in mutants.mutants(document)]


class Loader:
    """Loads the reference inventory with one file replaced."""

    def __init__(self) -> None:
        self.source = inventory_folders.read(HONGKONG)
        self.documents = documents()

    def variables(
        self, file: str, changed: dict[str, Any]
    ) -> tuple[dict[str, dict[str, Any]], dict[str, Any], dict[str, tuple[str, ...]], Any]:
        contents = self.documents | {file: changed}
        files: dict[tuple[str, str | None], str] = {}
        cluster: dict[str, Any] = {}
        hosts: dict[str, dict[str, Any]] = {}
        for name, document in contents.items():
            if name.startswith("group_vars/all/"):
                cluster |= document
                files |= {(variable, None): name for variable in document}
        groups = {host: found for host, found in self.source.groups.items() if "gpu_nodes" in found}
        for host, found in groups.items():
            hosts[host] = dict(cluster)
            for group in found:
                name = f"group_vars/{group}.yml"
                hosts[host] |= contents.get(name, {})
                files |= {(variable, host): name for variable in contents.get(name, {})}
        return hosts, cluster, groups, lambda variable, host: files.get((variable, host)) or files.get((variable, None)) or ""


def check(loader: Loader, file: str, path: mutants.Path, kind: str, changed: dict[str, Any]) -> bool:
    """Return whether the mutant was refused."""
    hosts, cluster, groups, where = loader.variables(file, changed)
    label = f"{file} {'.'.join(map(str, path))} {kind}"
    try:
        found = _inventory.load(
            [_inventory.Host(name, groups[name], variables) for name, variables in hosts.items()], cluster, planning.catalog(), where
        )
    except _inventory.InventoryError as error:
        text = str(error)
        gone = path[0] not in changed
        assert str(path[0]) in text, f"{label}: no variable in {text}"
        assert gone or file in text, f"{label}: no file in {text}"
        return True
    plan = _planner.make_plan(found, planning.catalog())
    if path[0] not in ("inference_models", "inference_services", "gpu_devices", "numa_nodes"):
        return False
    assert (
        plan.document["summary"]["replicas_placed"] + sum(r.get("missing", 0) for r in plan.document["refusals"])
        == plan.document["summary"]["replicas_wanted"]
    ), label
    return False


def test_there_are_enough_mutants() -> None:
    assert len(every()) >= 10_000


def test_a_sample_of_the_mutants() -> None:
    loader = Loader()
    refused = [check(loader, *mutant) for mutant in random.Random(20261201).sample(every(), SAMPLE)]
    # Both kinds have to be there, or the test proves nothing.
    assert 0.5 < sum(refused) / SAMPLE < 0.95


@pytest.mark.slow
def test_all_mutants() -> None:
    loader = Loader()
    for mutant in every():
        check(loader, *mutant)


def test_what_the_json_schema_refuses_is_refused() -> None:
    """The schema is for editors; it must not be stricter than the check itself."""
    loader = Loader()
    validator = jsonschema.Draft202012Validator(_reference.json_schema())
    for file, path, kind, changed in random.Random(7).sample(every(), 250):
        hosts, cluster, groups, where = loader.variables(file, changed)
        strict = not all(validator.is_valid(variables) for variables in hosts.values())
        if strict:
            with pytest.raises(_inventory.InventoryError):
                _inventory.load(
                    [_inventory.Host(name, groups[name], own) for name, own in hosts.items()], cluster, planning.catalog(), where
                )
                raise AssertionError(f"{file} {path} {kind}")


def test_the_files_are_those_of_the_reference_inventory() -> None:
    assert all((HONGKONG / Path(file)).is_file() or file == "group_vars/all/planning.yml" for file in documents())
