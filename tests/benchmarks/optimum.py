# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the planner with an exact solver on seeded clusters of up to 16 nodes.

    python3 tests/benchmarks/optimum.py [--instances 20] [--seed 1]

Of every instance it is computed how many replicas can be placed, class by class, first on an empty cluster, then with a
plan in force and room only where replicas move: there the moves are compared too. The solver sees devices only, so the
instances ask for no CPUs and no host memory.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.heterogpu.inference.plugins.plugin_utils import _catalog, _document, _inventory, _mig_layouts, _planner, _sticky
from ortools.sat.python import cp_model

CATALOG = _catalog.load(Path(_catalog.__file__).parents[2] / "data")
CLASSES = ("interactive", "batch", "auxiliary")
NUMA = [{"id": 0, "cpus": "0-63", "memory_mib": 600000}, {"id": 1, "cpus": "64-127", "memory_mib": 600000}]
MODELS = {
    "tiny": {"parameters": 5e8, "layers": 24, "attention_heads": 16, "hidden_size": 1024, "dtype": "float16", "encoder": True},
}
DEVICES: tuple[dict[str, Any], ...] = (
    {"mig": "1g.10gb"},
    {"mig": "2g.20gb"},
    {"mig": "3g.40gb"},
    {"mig": ["4g.40gb", "3g.40gb"]},
    {"mig": "7g.80gb"},
    {"gpus": 1},
    {"gpus": 2},
    {"gpus": 4},
    {"share": 2},
    {"share": 4},
)
Hosts = dict[str, dict[str, Any]]
WHOLE = 720720


def instance(choose: random.Random) -> tuple[Hosts, list[dict[str, Any]]]:
    """A cluster, and services that ask for about as much as it has."""
    hosts: Hosts = {}
    for index in range(choose.randint(2, 16)):
        count = choose.choice([2, 4, 8, 8])
        model = choose.choice(["A100-SXM4-80GB"] * 3 + ["V100-SXM2-32GB"])
        link = choose.choice(["all", "all", [position // 4 for position in range(count)]])
        hosts[f"n{index:02}"] = {
            "gpu_devices": [
                {"model": model, "count": count, "numa_nodes": [2 * position // count for position in range(count)], "nvlink_set": link}
            ],
            "numa_nodes": NUMA,
        }
    gpus = sum(run["count"] for host in hosts.values() for run in host["gpu_devices"])
    left = gpus * choose.uniform(0.8, 1.25)
    services: list[dict[str, Any]] = []
    while left > 0 and len(services) < 10:
        device = choose.choice(DEVICES)
        size = device.get("gpus") or (1 / device["share"] if "share" in device else 0.5)
        replicas = max(1, round(choose.uniform(0.1, 0.35) * gpus / size))
        services.append(service(f"s{len(services)}", choose.choice(CLASSES), replicas, device))
        left -= replicas * size
    return hosts, services


def service(name: str, rank: str, replicas: int, device: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "model": "tiny",
        "class": rank,
        "replicas": replicas,
        "device": dict(device),
        "context_tokens": 128,
        "concurrent_requests": 1,
        "cpus": 0,
        "memory_mib": 0,
    }


def plan(hosts: Hosts, services: list[dict[str, Any]], previous: Mapping[str, Any] | None = None, moves: int = 0) -> _planner.Plan:
    cluster = {"inference_models": MODELS, "inference_services": services, "plan_max_moves": moves}
    found = _inventory.load([_inventory.Host(name, ("gpu_nodes",), own) for name, own in hosts.items()], cluster, CATALOG)
    return _planner.make_plan(found, CATALOG, _sticky.read(previous, {}) if previous else None)


def placed(made: Mapping[str, Any]) -> tuple[int, ...]:
    services = made["services"].values()
    return tuple(sum(entry["placed"] for entry in services if entry["class"] == rank) for rank in CLASSES)


def lexicographic(model: Any, aims: list[Any], seconds: float) -> list[int] | None:
    """Maximise one aim after the other; None when the solver does not finish."""
    reached: list[int] = []
    for aim in aims:
        model.maximize(aim)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = 2
        if solver.solve(model) != cp_model.OPTIMAL:
            return None
        reached.append(round(solver.objective_value))
        model.add(aim >= reached[-1])
    return reached


class Exact:
    """The same decision as an integer program: which device kinds on which GPU, groups per NVLink set."""

    def __init__(self, hosts: Hosts, services: list[dict[str, Any]]):
        self.model = cp_model.CpModel()
        self.services = {entry["name"]: entry for entry in services}
        self.on: dict[tuple[Any, ...], Any] = {}  # (service, node, gpu, kind, ...) -> variable
        self.count: dict[str, list[Any]] = {name: [] for name in self.services}
        for node, host in hosts.items():
            self._node(node, host["gpu_devices"][0])
        for name, entry in self.services.items():
            self.model.add(sum(self.count[name]) <= entry["replicas"])

    def _node(self, node: str, run: Mapping[str, Any]) -> None:
        model = CATALOG.model(run["model"])
        assert model is not None
        groups: dict[Any, dict[str, list[Any]]] = {}
        for gpu in range(run["count"]):
            mig, shared = self.model.new_bool_var(""), self.model.new_bool_var("")
            whole: list[Any] = []
            slots: dict[int, list[Any]] = {}
            slices: list[Any] = []
            units: list[Any] = []
            by_profile: dict[str, list[Any]] = {}
            for name, entry in self.services.items():
                device = entry["device"]
                for profile_name in [device["mig"]] if isinstance(device.get("mig"), str) else device.get("mig", ()):
                    profile = model.profile(profile_name)
                    if profile is None:
                        continue
                    for start in profile.starts:
                        variable = self._variable(name, node, gpu, profile_name, start)
                        self.model.add_implication(variable, mig)
                        self.count[name].append(variable)
                        slices.append(variable * profile.slices)
                        by_profile.setdefault(profile_name, []).append(variable)
                        for slot in range(start, start + profile.size):
                            slots.setdefault(slot, []).append(variable)
                if "share" in device:
                    number = self.model.new_int_var(0, device["share"], "")
                    self.on[name, node, gpu, "share"] = number
                    self.count[name].append(number)
                    units.append(number * (WHOLE // device["share"]))
                if "gpus" in device:
                    variable = self._variable(name, node, gpu, "whole", 0)
                    whole.append(variable)
                    link = run["nvlink_set"] if isinstance(run["nvlink_set"], str) else run["nvlink_set"][gpu]
                    groups.setdefault(link if device["gpus"] > 1 else f"single {gpu}", {}).setdefault(name, []).append(variable)
            for together in slots.values():
                self.model.add_at_most_one(together)
            for profile_name, together in by_profile.items():
                profile = model.profile(profile_name)
                assert profile is not None
                self.model.add(sum(together) <= profile.max_instances)
            self.model.add(sum(slices) <= model.compute_slices)
            self.model.add(sum(units) <= WHOLE * shared)
            self.model.add(mig + shared + sum(whole) <= 1)
        for members in groups.values():
            for name, variables in members.items():
                size = self.services[name]["device"]["gpus"]
                number = self.model.new_int_var(0, len(variables) // size, "")
                self.model.add(sum(variables) == size * number)
                self.count[name].append(number)

    def _variable(self, *key: Any) -> Any:
        self.on[key] = self.model.new_bool_var("")
        return self.on[key]

    def keep(self, previous: Mapping[str, Any]) -> tuple[list[Any], dict[str, int]]:
        """A variable for every replica in force that is on when the replica stays; all of them remain placed."""
        kept: list[Any] = []
        shares: dict[tuple[Any, ...], int] = {}
        running: dict[str, int] = {}
        for node, part in previous["nodes"].items():
            for replica in part["replicas"]:
                name, device = replica["service"], replica["device"]
                if name not in self.services or int(replica["name"].rpartition("-")[2]) > self.services[name]["replicas"]:
                    continue
                running[name] = running.get(name, 0) + 1
                if "profile" in device:
                    kept.append(self.on[name, node, device["indexes"][0], device["profile"], device["start"]])
                elif "share" in device:
                    key = (name, node, device["indexes"][0], "share")
                    shares[key] = shares.get(key, 0) + 1
                else:
                    stays = self.model.new_bool_var("")
                    for index in device["indexes"]:
                        self.model.add_implication(stays, self.on[name, node, index, "whole", 0])
                    kept.append(stays)
        for key, number in shares.items():
            stays = self.model.new_int_var(0, number, "")
            self.model.add(stays <= self.on[key])
            kept.append(stays)
        for name, number in running.items():
            self.model.add(sum(self.count[name]) >= number)
        return kept, running

    def by_class(self) -> list[Any]:
        return by_class(self.count, self.services)


class Counts:
    """The same decision without names: how many GPUs of a set are cut, shared, or whole, and how often each layout occurs.

    GPUs with instances are interchangeable within a model, and shares of a half and a quarter always fill a GPU, so nothing
    is lost; without the symmetries of single GPUs the solver finishes.
    """

    def __init__(self, hosts: Hosts, services: list[dict[str, Any]], at_least: Mapping[str, int]):
        self.model = cp_model.CpModel()
        self.services = {entry["name"]: entry for entry in services}
        self.count: dict[str, list[Any]] = {name: [] for name in self.services}
        sets: dict[str, list[int]] = {}
        for host in hosts.values():
            run = host["gpu_devices"][0]
            link = run["nvlink_set"]
            members = [run["count"]] if isinstance(link, str) else [link.count(name) for name in sorted(set(link))]
            sets.setdefault(run["model"], []).extend(members)
        for name, sizes in sorted(sets.items()):
            self._gpus(name, sizes)
        for name, entry in self.services.items():
            self.model.add(sum(self.count[name]) <= entry["replicas"])
            self.model.add(sum(self.count[name]) >= at_least.get(name, 0))

    def _number(self, most: int) -> Any:
        return self.model.new_int_var(0, most, "")

    def _gpus(self, name: str, sizes: list[int]) -> None:
        gpu = CATALOG.model(name)
        assert gpu is not None
        total = sum(sizes)
        cut, shared = self._number(total), self._number(total)
        rest: list[Any] = []
        for size in sizes:
            whole: list[Any] = []
            for service_name, entry in self.services.items():
                if "gpus" in entry["device"]:
                    number = self._number(size // entry["device"]["gpus"])
                    whole.append(number * entry["device"]["gpus"])
                    self.count[service_name].append(number)
            self.model.add(sum(whole) <= size)
            rest.append(size - sum(whole))
        self.model.add(cut + shared <= sum(rest))
        layouts = sorted(_mig_layouts.Layouts(gpu).multisets()) if gpu.mig_capable else []
        often = [self._number(total) for _layout in layouts]
        self.model.add(sum(often) <= cut)
        taken: dict[str, list[Any]] = {}
        units: list[Any] = []
        for service_name, entry in self.services.items():
            device = entry["device"]
            for profile in [device["mig"]] if isinstance(device.get("mig"), str) else device.get("mig", ()):
                if gpu.profile(profile):
                    number = self._number(7 * total)
                    taken.setdefault(profile, []).append(number)
                    self.count[service_name].append(number)
            if "share" in device:
                number = self._number(device["share"] * total)
                units.append(number * (4 // device["share"]))
                self.count[service_name].append(number)
        for profile, numbers in taken.items():
            self.model.add(sum(numbers) <= sum(layout.count(profile) * number for layout, number in zip(layouts, often, strict=True)))
        self.model.add(sum(units) <= 4 * shared)

    def by_class(self) -> list[Any]:
        return by_class(self.count, self.services)


def by_class(count: Mapping[str, list[Any]], services: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    return [sum(sum(count[name]) for name, entry in services.items() if entry["class"] == rank) for rank in CLASSES]


def near(got: tuple[int, ...], best: list[int]) -> bool:
    """Whether every class is within 1 % of the optimum; those after the first that differs have another optimum."""
    differs = next((rank for rank, (reached, most) in enumerate(zip(got, best, strict=True)) if reached != most), None)
    return differs is None or got[differs] >= 0.99 * best[differs]


def compare(seed: int, seconds: float) -> tuple[bool, str]:
    choose = random.Random(seed)
    hosts, services = instance(choose)
    first = plan(hosts, services)
    counts = Counts(hosts, services, {})
    best = lexicographic(counts.model, counts.by_class(), seconds)
    got = placed(first.document)
    total = sum(entry["replicas"] for entry in services)
    said = f"seed {seed:4}: {len(hosts):2} nodes, {total:4} replicas, placed {got}"
    if best is None:
        return True, f"{said}, solver did not finish"
    good = near(got, best)
    said += f" of {tuple(best)}"
    # A part of the replicas goes, and what comes instead may need others to move.
    previous = json.loads(_document.render(first.document))
    fewer = [entry | {"replicas": round(entry["replicas"] * choose.uniform(0.4, 0.9))} for entry in services]
    choices: list[dict[str, Any]] = [{"gpus": 4}, {"gpus": 2}, {"mig": "7g.80gb"}, {"gpus": 1}, {"mig": "3g.40gb"}]
    device = choose.choice(choices)
    fewer.append(service("new", "interactive", choose.randint(1, 3), device))
    second = plan(hosts, fewer, previous, moves=1000)
    exact = Exact(hosts, fewer)
    kept, running = exact.keep(previous)
    counts = Counts(hosts, fewer, running)
    best = lexicographic(counts.model, counts.by_class(), seconds)
    if best is not None:
        for aim, reached in zip(exact.by_class(), best, strict=True):
            exact.model.add(aim == reached)
        most = lexicographic(exact.model, [sum(kept)], seconds)
        best = [*best, *most] if most else None
    if best is None:
        return good, f"{said}; moves: solver did not finish"
    moves, fewest = len(second.moves), sum(running.values()) - best[3]
    same = placed(second.document) == tuple(best[:3])
    good = good and near(placed(second.document), best[:3]) and (not same or moves == fewest)
    return good, f"{said}; then {placed(second.document)} of {tuple(best[:3])} with {moves} moves of {fewest}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20, help="limit of the solver for one aim")
    arguments = parser.parse_args()
    bad = 0
    for seed in range(arguments.seed, arguments.seed + arguments.instances):
        good, said = compare(seed, arguments.seconds)
        bad += not good
        print(("" if good else "WORSE ") + said, flush=True)
    print(f"{bad} of {arguments.instances} worse than the optimum allows")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
