# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kinds of device can host which service, and why not the others. PRIVATE: internal to the collection, may change at any time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ._catalog import Catalog, GpuModel, MigProfile, Rule, version
from ._entities import Node, Service, Settings
from ._fit import Fit, fit

# The variable behind each fact of a node that a rule may limit.
NODE_VARIABLE_OF = {
    "driver_branch": "gpu_driver_branch",
    "driver_flavour": "gpu_driver_flavour",
    "cuda_version": "cuda_version",
    "triton_image": "triton_image_tag",
}
POWERS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Option:
    """A kind of device on one GPU model that can host a service."""

    model: GpuModel
    profile: MigProfile | None  # an instance
    gpus: int  # whole GPUs
    share: int  # a part of one GPU
    fit: Fit
    preference: tuple[Any, ...]

    @property
    def kind(self) -> str:
        return "mig" if self.profile else "share" if self.share else "gpus"

    @property
    def memory_mib(self) -> int:
        if self.profile:
            return self.profile.memory_mib
        return self.model.usable_memory_mib * self.gpus if self.gpus else self.model.usable_memory_mib // self.share

    def text(self) -> str:
        return device_text(self.model, self.profile, self.gpus, self.share)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a kind of device cannot host a service: a code and figures for programs, a sentence and a way out for people."""

    code: str
    sentence: str
    remedy: str
    data: tuple[tuple[str, Any], ...] = ()
    weight: int = 0  # of several obstacles, the one a person should read first has the lowest


@dataclass(slots=True)
class Candidates:
    """All options of one service, by node; nodes of the same make share one list."""

    options: dict[str, tuple[Option, ...]] = field(default_factory=dict)
    obstacles: list[Obstacle] = field(default_factory=list)

    def any(self) -> bool:
        return any(self.options.values())


def versions_of(node: Node) -> tuple[Any, ...]:
    """What decides, beside its GPUs, what a node can host."""
    return (node.driver_branch, node.driver_flavour, node.cuda_version, node.triton_image)


def device_text(model: GpuModel, profile: MigProfile | None, gpus: int, share: int) -> str:
    if profile:
        return f"{profile.name} on {model.key}"
    if share:
        return f"1/{share} of {article(model)} {model.key}"
    return f"{gpus} x {model.key}"


def article(model: GpuModel) -> str:
    """The article of a model's name: an A100, an H100, a V100."""
    return "an" if model.key[:1].upper() in "AHLR" else "a"


def node_problems(node: Node, catalog: Catalog, settings: Settings) -> list[tuple[Rule, str]]:
    """Return the rules that a node breaks by itself, whatever is to run there, each with the value that breaks it."""
    facts = _node_facts(node, catalog, settings)
    capabilities = {gpu.model.compute_capability for gpu in node.gpus}
    return [
        (rule, f"{NODE_VARIABLE_OF[rule.fact]} is {facts[rule.fact]}")
        for rule in catalog.rules
        if rule.subject == "node" and any(rule.broken(capability, facts) for capability in capabilities)
    ]


class Finder:
    """Finds the options of services; what it learns about one node counts for all of the same make."""

    def __init__(self, catalog: Catalog, settings: Settings):
        self._catalog = catalog
        self._settings = settings
        self._make: dict[str, tuple[Any, ...]] = {}

    def find(self, service: Service, nodes: Iterable[Node]) -> Candidates:
        """Return the options of a service on every node that its pool and pinning admit."""
        found = Candidates()
        known: dict[tuple[Any, ...], tuple[tuple[Option, ...], list[Obstacle]]] = {}
        admitted = [node for node in nodes if service.admits(node)]
        for node in admitted:
            make = self._make_of(node)
            if make not in known:
                known[make] = self._on(service, node)
                found.obstacles.extend(obstacle for obstacle in known[make][1] if obstacle not in found.obstacles)
            found.options[node.name] = known[make][0]
        if not admitted:
            where = f"nodes {', '.join(service.nodes)}" if service.nodes else f"pool {', '.join(service.pools) or 'gpu_nodes'}"
            found.obstacles.append(
                Obstacle(
                    "no_node",
                    f"No active node for containers is in {where}.",
                    "Change pool or nodes of the service, or add a node.",
                )
            )
        elif not found.any() and not found.obstacles:
            found.obstacles.append(
                Obstacle(
                    "no_gpu",
                    "Every GPU of the nodes that it may run on is in gpu_excluded.",
                    "Take a GPU off gpu_excluded, or change pool or nodes of the service.",
                )
            )
        found.obstacles.sort(key=lambda obstacle: (obstacle.weight, obstacle.code, obstacle.sentence))
        return found

    def smallest(self, service: Service, nodes: Iterable[Node]) -> Option | None:
        """Return the smallest device of these nodes that would host the service, whatever it asked for."""
        largest: dict[str, tuple[GpuModel, int]] = {}
        for node in nodes:
            for model in {gpu.model.key: gpu.model for gpu in node.gpus if not gpu.excluded}.values():
                known = largest.get(model.key, (model, 0))[1]
                largest[model.key] = (model, max(known, _largest_set(node, model, service.allow_pcie)))
        options = [option for model, size in largest.values() for option in self._every(service, model, size) if option.fit.fits]
        return min(options, key=lambda option: (option.memory_mib, option.gpus, option.model.key, option.text()), default=None)

    # --- one service on one make of node ---------------------------------------------------------

    def _make_of(self, node: Node) -> tuple[Any, ...]:
        make = self._make.get(node.name)
        if make is None:
            gpus = tuple((gpu.model.key, gpu.nvlink_set) for gpu in node.gpus if not gpu.excluded)
            make = self._make[node.name] = (gpus, *versions_of(node))
        return make

    def _on(self, service: Service, node: Node) -> tuple[tuple[Option, ...], list[Obstacle]]:
        options: list[Option] = []
        obstacles: list[Obstacle] = []
        models: dict[str, GpuModel] = {gpu.model.key: gpu.model for gpu in node.gpus if not gpu.excluded}
        for _key, model in sorted(models.items()):
            broken = self._broken(service, node, model)
            if broken:
                obstacles += broken
                continue
            largest = _largest_set(node, model, service.allow_pcie)
            wanted, reasons = self._wanted(service, model, largest)
            obstacles += reasons
            for option in wanted:
                if option.fit.fits:
                    options.append(option)
                else:
                    obstacles.append(self._too_small(service, option))
        return tuple(sorted(options, key=lambda option: (option.preference, option.text()))), obstacles

    def _broken(self, service: Service, node: Node, model: GpuModel) -> list[Obstacle]:
        facts = _node_facts(node, self._catalog, self._settings)
        facts.update(_service_facts(service, node, self._catalog))
        return [
            Obstacle(
                f"rule:{rule.id}",
                f"{rule.sentence}{_capability_text(rule, model)}",
                rule.remedy,
                (("gpu_model", model.key), ("rule", rule.id), ("source", rule.source)),
                # What the GPU can never do is said before what another version would do.
                weight=4 if rule.below or rule.at_least else 5,
            )
            for rule in self._catalog.rules
            if rule.subject == "service" and rule.broken(model.compute_capability, facts)
        ]

    def _wanted(self, service: Service, model: GpuModel, largest: int) -> tuple[list[Option], list[Obstacle]]:
        asked = service.device
        if asked.mig:
            return self._instances(service, model, asked.mig)
        if asked.share:
            return [self._option(service, model, None, 0, asked.share)], []
        if asked.gpus:
            obstacle = _split_obstacle(service, model, asked.gpus, largest)
            return ([], [obstacle]) if obstacle else ([self._option(service, model, None, asked.gpus, 0)], [])
        return self._smallest_first(service, model, largest), []

    def _instances(self, service: Service, model: GpuModel, names: tuple[str, ...]) -> tuple[list[Option], list[Obstacle]]:
        if service.tensor_parallel is not None and service.tensor_parallel > 1:
            return [], [
                Obstacle(
                    "tensor_parallel_over_mig",
                    f"Tensor parallelism over {service.tensor_parallel} GPUs needs whole GPUs with MIG off: "
                    "instances have no path to each other.",
                    "Set tensor_parallel: 1 or ask for whole GPUs.",
                    (("tensor_parallel", service.tensor_parallel), ("profiles", list(names))),
                    weight=0,
                )
            ]
        profiles = [profile for name in names if (profile := model.profile(name)) is not None]
        obstacles = []
        if not profiles:
            obstacles.append(
                Obstacle(
                    "no_such_profile",
                    f"{article(model).capitalize()} {model.key} has no MIG profile {' or '.join(names)}; "
                    f"it has {', '.join(profile.name for profile in model.mig_profiles)}.",
                    "Ask for one of these profiles.",
                    (("gpu_model", model.key), ("profiles", list(names))),
                    weight=3,
                )
            )
        return [self._option(service, model, profile, 0, 0) for profile in profiles], obstacles

    def _smallest_first(self, service: Service, model: GpuModel, largest: int) -> list[Option]:
        """Options of a service that leaves the device open; when nothing fits, the largest device is what to explain."""
        every = list(self._every(service, model, largest))
        instances = [option for option in every if option.profile and option.fit.fits]
        whole = [option for option in every if option.gpus and option.fit.fits][:1]
        return instances + whole or every[-1:]

    def _every(self, service: Service, model: GpuModel, largest: int) -> Iterator[Option]:
        if service.dtype == "bfloat16" and model.compute_capability < (8, 0):
            return
        for profile in model.mig_profiles:
            if "+" not in profile.name:
                yield self._option(service, model, profile, 0, 0)
        for count in POWERS:
            if count <= largest and service.model.attention_heads % count == 0:
                yield self._option(service, model, None, count, 0)

    def _option(self, service: Service, model: GpuModel, profile: MigProfile | None, gpus: int, share: int) -> Option:
        memory = profile.memory_mib if profile else model.usable_memory_mib
        result = fit(service, self._settings, memory, gpus or 1, share or 1)
        option = Option(model, profile, gpus, share, result, ())
        return Option(model, profile, gpus, share, result, _preference(service, option))

    def _too_small(self, service: Service, option: Option) -> Obstacle:
        got = option.fit
        each = f"each of {option.gpus} GPUs" if option.gpus > 1 else option.text()
        kept = "activations" if service.model.encoder else "KV cache"
        sentence = (
            f"{service.model.name} in {_precision(service)} needs {_gib(got.needed_mib)} on {each} "
            f"({_gib(got.weights_mib)} weights + {_gib(got.overhead_mib)} runtime + {_gib(got.working_mib)} {kept} for "
            f"{service.context_tokens} tokens x {service.concurrent_requests} requests), but "
            f"{option.text() if option.gpus > 1 else 'that'} has {_gib(got.available_mib)} usable"
            f"{' each' if option.gpus > 1 else ''}: {_gib(got.needed_mib - got.available_mib)} too much."
        )
        return Obstacle(
            "does_not_fit",
            sentence,
            "",
            (
                ("device", option.text()),
                ("needed_mib", got.needed_mib),
                ("available_mib", got.available_mib),
                ("weights_mib", got.weights_mib),
                ("working_mib", got.working_mib),
                ("tokens", got.tokens),
                ("needed_tokens", got.needed_tokens),
            ),
            weight=1,
        )


def _preference(service: Service, option: Option) -> tuple[Any, ...]:
    """Order the options of a service: lower is better."""
    capability = option.model.compute_capability
    newest = (-capability[0], -capability[1])
    slices = option.profile.slices if option.profile else 0
    if service.device.chosen:
        # What was asked for is one kind of device; only the GPU model is left open.
        age = capability if service.service_class == "auxiliary" else newest
        return (*age, option.model.usable_memory_mib)
    if service.service_class == "interactive":
        return (option.kind != "mig", option.memory_mib, slices, *newest)
    if service.service_class == "batch":
        return (option.kind == "mig", option.memory_mib, slices, *newest)
    return (*capability, option.memory_mib, slices)


def _largest_set(node: Node, model: GpuModel, allow_pcie: bool) -> int:
    """How many GPUs of a model on the node a replica may be split over."""
    sizes: dict[str | None, int] = {}
    for gpu in node.gpus:
        if gpu.model is model and not gpu.excluded:
            group = "" if allow_pcie else gpu.nvlink_set
            sizes[group] = sizes.get(group, 0) + 1
    linked = max((size for group, size in sizes.items() if group is not None), default=0)
    return max(linked, 1) if sizes else 0


def _split_obstacle(service: Service, model: GpuModel, gpus: int, largest: int) -> Obstacle | None:
    heads = service.model.attention_heads
    if heads % gpus:
        fitting = [count for count in POWERS if heads % count == 0]
        return Obstacle(
            "tensor_parallel_heads",
            f"{service.model.name} has {heads} attention heads, which {gpus} GPUs do not divide.",
            f"Ask for {' or '.join(str(count) for count in fitting)} GPUs.",
            (("attention_heads", heads), ("gpus", gpus)),
            weight=0,
        )
    if gpus > largest:
        how = "in one node" if service.allow_pcie else "in one NVLink set"
        return Obstacle(
            "set_too_small",
            f"A replica needs {gpus} x {model.key} {how}, but the largest such set has {largest}.",
            "" if service.allow_pcie else "allow_pcie_tensor_parallel: true would lift this where the node has enough GPUs.",
            (("gpu_model", model.key), ("gpus", gpus), ("largest_set", largest)),
            weight=2,
        )
    return None


def _node_facts(node: Node, catalog: Catalog, settings: Settings) -> dict[str, str]:
    image = node.triton_image
    return {
        "driver_branch": str(node.driver_branch),
        "driver_flavour": node.driver_flavour,
        "cuda_version": node.cuda_version,
        "cuda_major": node.cuda_version.partition(".")[0],
        "triton_image": image,
        # 25.08 is the first image that carries CUDA 13.
        "triton_image_cuda_major": "13" if version(image) >= (25, 8) else "12",
        "triton_image_verified_for_volta": "false" if (24, 10) < version(image) <= (25, 2) else "true",
        "allow_unverified_image": "true" if settings.allow_unverified_image else "false",
        "image_vllm": catalog.vllm_by_image.get(image, ""),
    }


def _service_facts(service: Service, node: Node, catalog: Catalog) -> dict[str, str]:
    facts = {
        "dtype": service.dtype,
        "quantization": service.model.quantization,
        "device": "mig" if service.device.mig else "share" if service.device.share else "gpus",
        "engine": service.engine,
        "engine_environment": service.engine_environment,
    }
    carried = _carried(node.triton_image, catalog)
    if service.engine_version is not None:
        facts["engine_version"] = service.engine_version
        newer = carried is not None and version(service.engine_version) > version(carried)
        facts["engine_newer_than_image"] = "true" if newer else "false"
    elif service.engine == "vllm" and carried is not None and service.engine_environment == "image":
        facts["engine_version"] = carried
    return facts


def _carried(image: str, catalog: Catalog) -> str | None:
    """The vLLM of an image; of an image that the table lacks, that of the next older one."""
    older = [tag for tag in catalog.vllm_by_image if version(tag) <= version(image)]
    return catalog.vllm_by_image[max(older, key=version)] if older else None


def _capability_text(rule: Rule, model: GpuModel) -> str:
    if not rule.below and not rule.at_least:
        return ""
    major, minor = model.compute_capability
    return f" {article(model).capitalize()} {model.key} has {major}.{minor}."


def _precision(service: Service) -> str:
    names = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16"}
    return names[service.dtype] if service.model.quantization == "none" else service.model.quantization.upper()


def _gib(mib: int) -> str:
    return f"{mib / 1024:.1f} GiB"
