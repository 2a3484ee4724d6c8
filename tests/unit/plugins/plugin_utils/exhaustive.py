# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tries every placement of a small cluster. It shares no code with the planner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import checker

RANK = {"interactive": 0, "batch": 1, "auxiliary": 2}
Device = tuple[str, tuple[int, ...], str, int, int]  # node, GPUs, profile, start, share
Placement = dict[str, list[Device]]


class Exhaustive:
    """The best that any planner could reach, under the first aims of the objective: replicas placed, class by class."""

    def __init__(self, hosts: Mapping[str, Any], groups: Mapping[str, tuple[str, ...]], tables: Mapping[str, Any]):
        self.hosts, self.groups, self.tables = hosts, groups, tables
        variables = next(iter(hosts.values()))
        self.services = {service["name"]: service for service in variables["inference_services"]}
        self.models = variables["inference_models"]
        self.gpus = {name: checker.declared_gpus(host) for name, host in hosts.items()}
        self.seen: set[Any] = set()
        self.best: tuple[int, ...] = ()
        self.choices: dict[str, list[Device]] = {name: list(self.devices(name)) for name in self.services}

    def run(self, fixed: Placement | None = None) -> tuple[int, ...]:
        """Return the best counts: pinned, interactive, batch, auxiliary. `fixed` replicas stay where they are."""
        start = {name: list((fixed or {}).get(name, [])) for name in self.services}
        self._visit(sorted(self.services), 0, start, 0)
        return self.best

    def _visit(self, names: list[str], position: int, placed: Placement, first: int) -> None:
        """Place replicas of one service after the other; those of a service in the order of its devices, since they are alike."""
        left = [self.services[name]["replicas"] - len(placed[name]) if name in names[position:] else 0 for name in names]
        most = self.score({name: placed[name] + [("", (), "", 0, 0)] * count for name, count in zip(names, left, strict=True)})
        if most <= self.best:
            return
        if position == len(names):
            self.best = most
            return
        name = names[position]
        key = (position, first, tuple((service, tuple(sorted(devices))) for service, devices in sorted(placed.items())))
        if key in self.seen:
            return
        self.seen.add(key)
        if left[position]:
            for index in range(first, len(self.choices[name])):
                device = self.choices[name][index]
                placed[name].append(device)
                if self.possible(placed):
                    self._visit(names, position, placed, index if device[4] else index + 1)
                placed[name].pop()
        self._visit(names, position + 1, placed, 0)

    def score(self, placed: Placement) -> tuple[int, ...]:
        counts = [0, 0, 0, 0]
        for name, devices in placed.items():
            service = self.services[name]
            counts[0] += len(devices) if service.get("nodes") else 0
            counts[1 + RANK[service["class"]]] += len(devices)
        return tuple(counts)

    def devices(self, name: str) -> Iterator[Device]:
        """Every device on which one replica alone could run."""
        service = self.services[name]
        asked = service.get("device")
        pools = service.get("pool", [])
        pools = [pools] if isinstance(pools, str) else pools
        for node, gpus in self.gpus.items():
            host = self.hosts[node]
            if host.get("node_state", "active") != "active" or (service.get("nodes") and node not in service["nodes"]):
                continue
            if pools and not set(pools) & set(self.groups[node]):
                continue
            usable = [gpu for gpu in gpus if not gpu["excluded"]]
            for size in [asked["gpus"]] if asked and "gpus" in asked else [] if asked else [1, 2, 4]:
                yield from self._groups(service, node, usable, size)
            for gpu in usable:
                table = self.tables[gpu["model"]]
                if asked and "share" in asked and self._fits(service, table, table["usable"] / asked["share"], 1):
                    yield node, (gpu["index"],), "", 0, asked["share"]
                names = (
                    [asked["mig"]] if asked and isinstance(asked.get("mig"), str) else asked["mig"] if asked and "mig" in asked else None
                )
                for row in table.get("gpu_instance_profiles", []) if names is not None or not asked else []:
                    wanted = row["name"] in names if names is not None else "+" not in row["name"]
                    if wanted and self._fits(service, table, row["memory_mib"], 1):
                        for start in row["placements"]["starts"]:
                            yield node, (gpu["index"],), row["name"], start, 0

    def _groups(self, service: Mapping[str, Any], node: str, usable: list[dict[str, Any]], size: int) -> Iterator[Device]:
        for chosen in combinations(usable, size):
            table = self.tables[chosen[0]["model"]]
            linked = (
                size == 1
                or service.get("allow_pcie_tensor_parallel")
                or (len({gpu["set"] for gpu in chosen}) == 1 and chosen[0]["set"] is not None)
            )
            same = len({gpu["model"] for gpu in chosen}) == 1
            heads = self.models[service["model"]]["attention_heads"]
            if same and linked and heads % size == 0 and self._fits(service, table, table["usable"], size):
                yield node, tuple(gpu["index"] for gpu in chosen), "", 0, 0

    def _fits(self, service: Mapping[str, Any], table: Mapping[str, Any], memory: float, split: int) -> bool:
        model = self.models[service["model"]]
        if model["dtype"] == "bfloat16" and float(table["compute_capability"]) < 8:
            return False
        return checker.needed_mib(model, service, split, next(iter(self.hosts.values()))) <= memory * 0.9

    def possible(self, placed: Placement) -> bool:
        """Whether these replicas can run together."""
        on_node: dict[str, list[tuple[str, Device]]] = {}
        for name, devices in placed.items():
            for device in devices:
                on_node.setdefault(device[0], []).append((name, device))
        return all(self._node(node, replicas) for node, replicas in on_node.items())

    def _node(self, node: str, replicas: list[tuple[str, Device]]) -> bool:
        uses: dict[int, list[Device]] = {}
        for _name, device in replicas:
            for index in device[1]:
                uses.setdefault(index, []).append(device)
        return (
            all(self._gpu(node, index, devices) for index, devices in uses.items())
            and self._neighbours(replicas)
            and self._host(node, replicas)
        )

    def _gpu(self, node: str, index: int, devices: list[Device]) -> bool:
        if len(devices) == 1:
            return True
        if any(not profile and not share for _node, _gpus, profile, _start, share in devices):
            return False
        if all(share for *_rest, share in devices):
            return sum(1 / share for *_rest, share in devices) <= 1 + 1e-9
        if any(share for *_rest, share in devices):
            return False
        rows = {row["name"]: row for row in self.tables[self.gpus[node][index]["model"]]["gpu_instance_profiles"]}
        taken: set[int] = set()
        for _node, _gpus, profile, start, _share in devices:
            slots = set(range(start, start + rows[profile]["placements"]["size"]))
            if slots & taken or sum(other[2] == profile for other in devices) > rows[profile]["max_instances"]:
                return False
            taken |= slots
        return sum(rows[device[2]]["slice_count"] for device in devices) <= 7

    def _neighbours(self, replicas: list[tuple[str, Device]]) -> bool:
        here: dict[str, list[Device]] = {}
        for name, device in replicas:
            here.setdefault(name, []).append(device)
        for name, devices in here.items():
            service = self.services[name]
            flat = [index for device in devices for index in device[1]]
            if service.get("anti_affinity") == "node" and len(devices) > 1:
                return False
            if service.get("anti_affinity") == "gpu" and len(set(flat)) != len(flat):
                return False
            if any(other in here for other in service.get("apart_from", [])):
                return False
        return True

    def _host(self, node: str, replicas: list[tuple[str, Device]]) -> bool:
        host = self.hosts[node]
        cores: dict[int, int] = {}
        memory: dict[int, int] = {}
        pages: dict[int, int] = {}
        for name, (_node, indexes, *_rest) in replicas:
            service = self.services[name]
            on = sorted(self.gpus[node][index]["numa"] for index in indexes)
            amounts = (
                (cores, -(-service.get("cpus", 4) // 2)),
                (memory, service.get("memory_mib", 16384)),
                (pages, service.get("hugepages_mib", 0)),
            )
            for table, amount in amounts:
                before = 0
                for identity in sorted(set(on)):
                    after = before + on.count(identity)
                    table[identity] = table.get(identity, 0) + amount * after // len(on) - amount * before // len(on)
                    before = after
        huge = host.get("numa_hugepages_mib", 0)
        for entry in host["numa_nodes"]:
            identity = entry["id"]
            free = len(checker.cpus_of(entry["cpus"])) // 2 - 2
            if (
                cores.get(identity, 0) > free
                or memory.get(identity, 0) > entry["memory_mib"] - huge - 16384
                or pages.get(identity, 0) > huge
            ):
                return False
        return True
