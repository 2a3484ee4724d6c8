# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks a finished plan against the inventory's raw variables and the raw GPU tables.

It shares no code with the planner: a mistake there cannot hide here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}
QUANTIZED = {"int8": 1.0, "awq": 0.55, "gptq": 0.55, "bitsandbytes": 0.55}


def gpu_table(model: str, data: Path) -> dict[str, Any]:
    """The raw table of a model, with its usable memory as a plain figure."""
    for path in sorted((data / "gpu-profiles").glob("*.yaml")):
        table = yaml.safe_load(path.read_text(encoding="utf-8"))
        for name in table["nvml_names"]:
            if name.replace("NVIDIA ", "").replace("Tesla ", "").replace(" ", "-") == model:
                usable = table.get("usable_memory_mib")
                return table | {"usable": usable[name] if isinstance(usable, dict) else usable}
    raise AssertionError(f"no table for {model}")


def cpus_of(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        if part:
            low, _, high = part.partition("-")
            found |= set(range(int(low), int(high or low) + 1))
    return found


def violations(
    hosts: Mapping[str, Mapping[str, Any]], groups: Mapping[str, tuple[str, ...]], plan: Mapping[str, Any], tables: Mapping[str, Any]
) -> list[str]:
    """Return what is wrong with a plan; nothing when it is right."""
    return list(_Check(hosts, groups, plan, tables).all())


def declared_gpus(variables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry for each declared GPU."""
    found: list[dict[str, Any]] = []
    for run_number, run in enumerate(variables["gpu_devices"]):
        link = run.get("nvlink_set", "none")
        for position in range(run["count"]):
            one = link if isinstance(link, str) else link[position]
            found.append(
                {
                    "index": len(found),
                    "model": run["model"],
                    "numa": run.get("numa_nodes", [0] * run["count"])[position],
                    "set": None if one == "none" else (run_number, one),
                    "slot": run["pci_addresses"][position] if "pci_addresses" in run else None,
                    "excluded": len(found) in variables.get("gpu_excluded", []),
                }
            )
    return found


def needed_mib(model: Mapping[str, Any], service: Mapping[str, Any], split: int, variables: Mapping[str, Any]) -> float:
    """What a replica needs on each of its GPUs."""
    dtype = service.get("dtype", model["dtype"])
    weights = float(model["parameters"]) * QUANTIZED.get(model.get("quantization", "none"), BYTES[dtype]) / split
    tokens = service["context_tokens"] * service["concurrent_requests"]
    heads = model.get("kv_heads", model["attention_heads"])
    if model.get("encoder"):
        working = tokens * 12 * model["hidden_size"] * BYTES[dtype] / split
    else:
        size = model.get("head_dim", model["hidden_size"] // model["attention_heads"])
        working = tokens * 2 * model["layers"] * heads * size * BYTES[dtype] / min(split, heads)
    return (weights + working) / 2**20 + variables.get("inference_runtime_overhead_mib", 1536)


class _Check:
    def __init__(self, hosts: Mapping[str, Any], groups: Mapping[str, tuple[str, ...]], plan: Mapping[str, Any], tables: Mapping[str, Any]):
        self.hosts, self.groups, self.plan, self.tables = hosts, groups, plan, tables
        any_host = next(iter(hosts.values()))
        self.services = {service["name"]: service for service in any_host["inference_services"]}
        self.models = any_host["inference_models"]
        self.fraction = any_host.get("inference_usable_memory_fraction", 0.9)

    def all(self) -> Iterator[str]:
        counts: dict[str, int] = {}
        names: set[str] = set()
        for node, part in self.plan["nodes"].items():
            for replica in part["replicas"]:
                counts[replica["service"]] = counts.get(replica["service"], 0) + 1
                if replica["name"] in names:
                    yield f"{replica['name']} is there twice"
                names.add(replica["name"])
            yield from self.node(node, part)
        refused = {refusal["service"]: refusal["missing"] for refusal in self.plan["refusals"] if "service" in refusal}
        for name, service in self.services.items():
            if counts.get(name, 0) + refused.get(name, 0) != service["replicas"]:
                yield f"{name}: {counts.get(name, 0)} placed and {refused.get(name, 0)} refused of {service['replicas']}"

    def node(self, node: str, part: Mapping[str, Any]) -> Iterator[str]:
        variables = self.hosts[node]
        if variables.get("node_state", "active") == "absent" or variables.get("node_workload", "containers") != "containers":
            if part["replicas"]:
                yield f"{node} must not hold replicas"
            return
        gpus = declared_gpus(variables)
        by_reference = {gpu["slot"] if gpu["slot"] is not None else gpu["index"]: gpu for gpu in gpus}
        layouts: dict[int, list[tuple[str, int]]] = {}
        off: set[int] = set()
        for entry in part["geometry"]:
            gpu = by_reference[entry["gpus"]]
            if entry.get("mig") is False:
                off.add(gpu["index"])
            else:
                layouts[gpu["index"]] = [(text.split("@")[0], int(text.split("@")[1])) for text in entry["profiles"]]
        for index, layout in layouts.items():
            yield from self.layout(node, gpus[index], layout)
        yield from self.devices(node, part, gpus, layouts)
        yield from self.host(node, part, gpus, variables)
        yield from self.neighbours(node, part)

    def layout(self, node: str, gpu: Mapping[str, Any], layout: list[tuple[str, int]]) -> Iterator[str]:
        table = self.tables[gpu["model"]]
        profiles = {row["name"]: row for row in table.get("gpu_instance_profiles", [])}
        taken: set[int] = set()
        where = f"{node} GPU {gpu['index']}"
        for name, start in layout:
            row = profiles.get(name)
            if row is None or start not in row["placements"]["starts"]:
                yield f"{where}: {name} cannot begin at {start}"
                continue
            slots = set(range(start, start + row["placements"]["size"]))
            if slots & taken:
                yield f"{where}: instances overlap in {layout}"
            taken |= slots
            if sum(other == name for other, _start in layout) > row["max_instances"]:
                yield f"{where}: too many {name}"
        if sum(profiles[name]["slice_count"] for name, _start in layout if name in profiles) > table.get("compute_slices", 0):
            yield f"{where}: too many compute slices in {layout}"

    def devices(
        self, node: str, part: Mapping[str, Any], gpus: list[dict[str, Any]], layouts: Mapping[int, list[tuple[str, int]]]
    ) -> Iterator[str]:
        tenants: dict[int, list[tuple[str, Any]]] = {}
        for replica in part["replicas"]:
            service, device = self.services[replica["service"]], replica["device"]
            mine = [gpus[index] for index in device["indexes"]]
            label = f"{node} {replica['name']}"
            if any(gpu["excluded"] for gpu in mine) or len({gpu["model"] for gpu in mine}) != 1:
                yield f"{label} is on an excluded GPU, or mixes models"
            if "profile" in device:
                yield from self.instance(label, service, device, mine[0], layouts)
                use: tuple[str, Any] = ("mig", (device["profile"], device["start"]))
            elif "share" in device:
                use = ("share", Fraction(1, device["share"]))
            else:
                yield from self.group(label, service, mine)
                use = ("whole", None)
            for gpu in mine:
                tenants.setdefault(gpu["index"], []).append(use)
            yield from self.suits(label, service, device, mine, self.hosts[node])
        for index, on_gpu in tenants.items():
            yield from self.tenancy(f"{node} GPU {index}", on_gpu, index in layouts)

    def suits(
        self, label: str, service: Mapping[str, Any], device: Mapping[str, Any], mine: list[dict[str, Any]], variables: Mapping[str, Any]
    ) -> Iterator[str]:
        table, share = self.tables[mine[0]["model"]], device.get("share", 1)
        memory = table["usable"]
        if "profile" in device:
            memory = next(row["memory_mib"] for row in table["gpu_instance_profiles"] if row["name"] == device["profile"])
        asked = service.get("device")
        if asked is not None:
            kept = ("gpus" not in asked or asked["gpus"] == len(mine)) and ("share" not in asked or asked["share"] == share)
            if not kept or ("mig" in asked) != ("profile" in device):
                yield f"{label} is on {device}, but asked for {asked}"
        needed = needed_mib(self.models[service["model"]], service, len(mine), variables)
        if needed > memory * self.fraction / share + 1:
            yield f"{label} needs {needed:.0f} MiB of {memory * self.fraction / share:.0f}"
        dtype = service.get("dtype", self.models[service["model"]]["dtype"])
        if dtype == "bfloat16" and float(table["compute_capability"]) < 8:
            yield f"{label} has BF16 on {mine[0]['model']}"

    def tenancy(self, where: str, on_gpu: list[tuple[str, Any]], has_layout: bool) -> Iterator[str]:
        kinds = {kind for kind, _what in on_gpu}
        if len(kinds) != 1 or (kinds == {"whole"} and len(on_gpu) != 1):
            yield f"{where} is used twice: {on_gpu}"
        elif kinds == {"share"} and sum(what for _kind, what in on_gpu) > 1:
            yield f"{where} is shared by too many: {on_gpu}"
        elif kinds == {"mig"} and len({what for _kind, what in on_gpu}) != len(on_gpu):
            yield f"{where} has an instance with two replicas: {on_gpu}"
        if kinds != {"mig"} and has_layout:
            yield f"{where} has MIG on under a whole-GPU replica"

    def instance(
        self, label: str, service: Mapping[str, Any], device: Mapping[str, Any], gpu: Mapping[str, Any], layouts: Mapping[int, Any]
    ) -> Iterator[str]:
        if (device["profile"], device["start"]) not in layouts.get(gpu["index"], []):
            yield f"{label}: its instance is not in the geometry"
        asked = service.get("device", {}).get("mig")
        if asked is not None and device["profile"] not in ([asked] if isinstance(asked, str) else asked):
            yield f"{label}: {device['profile']} was not asked for"

    def group(self, label: str, service: Mapping[str, Any], gpus: list[dict[str, Any]]) -> Iterator[str]:
        linked = len({gpu["set"] for gpu in gpus}) == 1 and gpus[0]["set"] is not None
        if len(gpus) > 1 and not service.get("allow_pcie_tensor_parallel") and not linked:
            yield f"{label} leaves its NVLink set"
        if self.models[service["model"]]["attention_heads"] % len(gpus):
            yield f"{label}: {len(gpus)} GPUs do not divide the attention heads"

    def host(self, node: str, part: Mapping[str, Any], gpus: list[dict[str, Any]], variables: Mapping[str, Any]) -> Iterator[str]:
        numa = {entry["id"]: entry for entry in variables["numa_nodes"]}
        reserved: set[int] = set()
        for entry in part["numa_nodes"]:
            reserved |= cpus_of(entry["reserved_cpus"])
        want = variables.get("numa_reserved_cpus", 4)
        if isinstance(want, int) and any(
            len(cpus_of(entry["reserved_cpus"])) < min(want, len(cpus_of(numa[entry["id"]]["cpus"]))) for entry in part["numa_nodes"]
        ):
            yield f"{node}: fewer CPUs reserved than {want}"
        cpus: set[int] = set()
        ports: set[int] = set()
        memory: dict[int, Fraction] = {}
        pages: dict[int, Fraction] = {}
        for replica in part["replicas"]:
            service = self.services[replica["service"]]
            label = f"{node} {replica['name']}"
            own = cpus_of(replica["cpus"])
            on = [gpus[index]["numa"] for index in replica["device"]["indexes"]]
            if own & cpus or own & reserved or not own <= set().union(*(cpus_of(numa[identity]["cpus"]) for identity in on)):
                yield f"{label}: wrong CPUs {replica['cpus']}"
            if len(own) < service.get("cpus", 4):
                yield f"{label}: {len(own)} CPUs instead of {service.get('cpus', 4)}"
            cpus |= own
            for identity in on:
                memory[identity] = memory.get(identity, Fraction(0)) + Fraction(service.get("memory_mib", 16384), len(on))
                pages[identity] = pages.get(identity, Fraction(0)) + Fraction(service.get("hugepages_mib", 0), len(on))
            mine = {replica["http_port"], replica["grpc_port"], replica["metrics_port"]}
            if len(mine) != 3 or mine & ports or max(mine) > 65535:
                yield f"{label}: ports are not its own"
            ports |= mine
        huge = variables.get("numa_hugepages_mib", 0)
        for identity, used in memory.items():
            if used > numa[identity]["memory_mib"] - huge - variables.get("numa_reserved_memory_mib", 16384) + len(part["replicas"]):
                yield f"{node} NUMA node {identity}: {used} MiB of memory given out"
        for identity, used in pages.items():
            if used > huge + len(part["replicas"]):
                yield f"{node} NUMA node {identity}: {used} MiB of huge pages given out"

    def neighbours(self, node: str, part: Mapping[str, Any]) -> Iterator[str]:
        here: dict[str, list[Any]] = {}
        for replica in part["replicas"]:
            here.setdefault(replica["service"], []).append(replica["device"]["indexes"])
        for name, devices in here.items():
            service = self.services[name]
            pools = service.get("pool", [])
            pools = [pools] if isinstance(pools, str) else pools
            if pools and not set(pools) & set(self.groups[node]):
                yield f"{node} is not in the pool of {name}"
            if service.get("nodes") and node not in service["nodes"]:
                yield f"{name} is not pinned to {node}"
            if service.get("anti_affinity") == "node" and len(devices) > 1:
                yield f"{name} has two replicas on {node}"
            flat = [index for indexes in devices for index in indexes]
            if service.get("anti_affinity") == "gpu" and len(flat) != len(set(flat)):
                yield f"{name} has two replicas on a GPU of {node}"
            for other in service.get("apart_from", []):
                if other in here:
                    yield f"{name} and {other} are both on {node}"
