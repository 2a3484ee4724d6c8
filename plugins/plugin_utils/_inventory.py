# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and check the inventory's variables. PRIVATE: internal to the collection, may change at any time.

Every problem of every variable is collected before anything is said, and each names the variable, the value, and the
host or file that holds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from . import _cpulist
from ._catalog import Catalog
from ._describe import Fault, Field, faults, number
from ._entities import Device, Gpu, Hca, Inventory, Model, Node, NumaNode, Service, Settings
from ._schema import BY_NAME, CLUSTER_VARIABLES, NODE_VARIABLES

# Tells in which file a variable of a host (None: of all hosts) was written; empty when that is not known.
Where = Callable[[str, "str | None"], str]

MAX_SHOWN = 50
DEFAULT_BRANCH = 580  # the last one that drives every GPU of the catalog


@dataclass(frozen=True, slots=True)
class Host:
    """A host as Ansible knows it."""

    name: str
    groups: tuple[str, ...]
    variables: Mapping[str, Any]


class InventoryError(Exception):
    """An inventory with problems; the message lists them all."""

    def __init__(self, problems: Iterable[str]):
        self.problems = sorted(set(problems))
        shown = self.problems[:MAX_SHOWN]
        more = len(self.problems) - len(shown)
        lines = [f"The inventory has {len(self.problems)} problem{'s' if len(self.problems) != 1 else ''}:"]
        lines += [f"- {problem}" for problem in shown]
        if more:
            lines.append(f"- and {more} more.")
        super().__init__("\n".join(lines))


def nowhere(_variable: str, _host: str | None) -> str:
    return ""


def load(hosts: Iterable[Host], cluster: Mapping[str, Any], catalog: Catalog, where: Where = nowhere) -> Inventory:
    """Turn variables into an Inventory, or raise InventoryError with every problem."""
    reader = _Reader(catalog, where)
    hosts = sorted(hosts, key=lambda host: host.name)
    groups = {group for host in hosts for group in host.groups}
    settings = reader.settings(cluster)
    models = reader.models(cluster)
    services = reader.services(cluster, models, groups, {host.name for host in hosts})
    nodes = [reader.node(host) for host in hosts]
    if not hosts:
        raise InventoryError(["The inventory has no node with GPUs; put at least one host into the group gpu_nodes."])
    if reader.problems:
        raise InventoryError(reader.merged())
    return Inventory(tuple(node for node in nodes if node), tuple(services), settings)


class _Reader:
    def __init__(self, catalog: Catalog, where: Where):
        self.problems: list[tuple[str, str, str]] = []  # file, host, sentence
        self._catalog = catalog
        self._where = where
        self._checked: dict[tuple[str, str], tuple[Fault, ...]] = {}
        self._nodes: dict[str, Node] = {}

    # --- variables one by one -------------------------------------------------------------------

    def _value(self, field: Field, variables: Mapping[str, Any], host: str | None) -> tuple[bool, Any]:
        """Return whether the variable can be used, and its value or default."""
        name = field.name
        if name not in variables or (variables[name] is None and not field.required):
            if field.required:
                self._problem(name, host, f"{name} is not set: {field.help}")
                return False, None
            return True, field.default
        value = variables[name]
        # Hosts of a pool share their values: what was checked once is not checked a thousand times.
        text = json.dumps(value, sort_keys=True, default=repr)
        found = self._checked.get((name, text))
        if found is None:
            found = self._checked[name, text] = tuple(faults(field, value))
        for fault in found:
            self._problem(name, host, fault.sentence)
        return not found, value

    def _problem(self, variable: str, host: str | None, sentence: str) -> None:
        self.problems.append((self._where(variable, host), host or "", sentence))

    def merged(self) -> list[str]:
        """One line for each problem, however many hosts share the variable."""
        hosts: dict[tuple[str, str], list[str]] = {}
        for file, host, sentence in self.problems:
            named = hosts.setdefault((file, sentence), [])
            if host and host not in named:
                named.append(host)
        lines = []
        for (file, sentence), named in hosts.items():
            who = f"host{'s' if len(named) > 1 else ''} {_list(named)}" if named else ""
            place = f"{file} ({who})" if file and who else file or who or "inventory"
            lines.append(f"{place}: {sentence}")
        return lines

    # --- all hosts ------------------------------------------------------------------------------

    def settings(self, variables: Mapping[str, Any]) -> Settings:
        got: dict[str, Any] = {}
        for field in CLUSTER_VARIABLES:
            if field.name in {"inference_models", "inference_services"}:
                continue
            usable, value = self._value(field, variables, None)
            got[field.name] = value if usable else field.default
        return Settings(
            usable_fraction=float(_number(got["inference_usable_memory_fraction"])),
            overhead_mib=_integer(got["inference_runtime_overhead_mib"]),
            port_base=_integer(got["inference_port_base"]),
            max_moves=_integer(got["plan_max_moves"]),
            allow_partial=got["plan_allow_partial"],
            allow_disruption=got["plan_allow_disruption"],
            allow_unverified_image=got["triton_allow_unverified_image"],
        )

    def models(self, variables: Mapping[str, Any]) -> dict[str, Model | None] | None:
        """Return the models by name, None for one that is declared but wrong; None when there are none to speak of."""
        name = "inference_models"
        _usable, value = self._value(BY_NAME[name], variables, None)
        if not isinstance(value, Mapping):
            return None
        return {
            str(key): self._model(str(key), entry) if _sound(BY_NAME[name], entry) else None
            for key, entry in sorted(value.items(), key=str)
        }

    def _model(self, name: str, entry: Mapping[str, Any]) -> Model | None:
        heads = _integer(entry["attention_heads"])
        kv_heads = _integer(entry.get("kv_heads", heads))
        hidden = _integer(entry["hidden_size"])
        path = f"inference_models.{name}"
        before = len(self.problems)
        if kv_heads > heads or heads % kv_heads:
            self._problem(
                "inference_models",
                None,
                f"{path}.kv_heads is {kv_heads}, which does not divide attention_heads, {heads}; take both from the model's config.json.",
            )
        if "head_dim" not in entry and hidden % heads:
            self._problem(
                "inference_models",
                None,
                f"{path}.head_dim is not set and hidden_size, {hidden}, is not a multiple of attention_heads, {heads}; set head_dim.",
            )
        if len(self.problems) > before:
            return None
        return Model(
            name=name,
            parameters=float(_number(entry["parameters"])),
            layers=_integer(entry["layers"]),
            attention_heads=heads,
            kv_heads=kv_heads,
            head_dim=_integer(entry.get("head_dim", hidden // heads)),
            hidden_size=hidden,
            dtype=str(entry["dtype"]),
            quantization=str(entry.get("quantization", "none")),
            encoder=bool(entry.get("encoder", False)),
        )

    def services(
        self, variables: Mapping[str, Any], models: Mapping[str, Model | None] | None, groups: set[str], nodes: set[str]
    ) -> list[Service]:
        name = "inference_services"
        _usable, value = self._value(BY_NAME[name], variables, None)
        if not isinstance(value, list):
            return []
        # What is wrong with one service does not keep the others from being checked against the rest of the inventory.
        names = {str(entry["name"]) for entry in value if isinstance(entry, Mapping) and "name" in entry}
        found = [self._service(entry, models, groups, nodes, names) for entry in value if _sound(BY_NAME[name], entry)]
        return sorted((service for service in found if service), key=lambda service: service.name)

    def _service(
        self, entry: Mapping[str, Any], models: Mapping[str, Model | None] | None, groups: set[str], nodes: set[str], names: set[str]
    ) -> Service | None:
        name, path = str(entry["name"]), f"inference_services[{entry['name']}]"
        before = len(self.problems)

        def refuse(sentence: str) -> None:
            self._problem("inference_services", None, f"{path}.{sentence}")

        model_name = str(entry["model"])
        if models is not None and model_name not in models:
            file = self._where("inference_models", None)
            place = f" of {file}" if file else ""
            refuse(f"model is {model_name!r}, which is not in inference_models{place}; the models are {_list(models)}.")
        pools = entry.get("pool", ())
        pools = (str(pools),) if isinstance(pools, str) else tuple(sorted({str(pool) for pool in pools}))
        for pool in pools:
            if pool not in groups:
                refuse(f"pool is {pool!r}, which is not a group of GPU nodes; the groups are {_list(groups)}.")
        pinned = tuple(sorted({str(node) for node in entry.get("nodes", ())}))
        for node in pinned:
            if node not in nodes:
                refuse(f"nodes names {node!r}, which is not a GPU node; the nodes are {_list(nodes)}.")
        apart = tuple(sorted({str(other) for other in entry.get("apart_from", ())}))
        for other in apart:
            if other not in names or other == name:
                refuse(f"apart_from names {other!r}, which is not another service; the services are {_list(names - {name})}.")
        device, tensor_parallel = self._device(entry, refuse)
        replicas = _integer(entry["replicas"])
        default_available = replicas // 2 if entry["class"] == "interactive" else 0
        available = _integer(entry.get("min_available", default_available))
        if available > replicas:
            refuse(f"min_available is {available}, more than its {replicas} replicas; lower it or add replicas.")
        model = (models or {}).get(model_name)
        if len(self.problems) > before or model is None:
            return None
        engine = str(entry.get("engine", "python" if model.encoder else "vllm"))
        return Service(
            name=name,
            model=model,
            service_class=str(entry["class"]),
            replicas=replicas,
            context_tokens=_integer(entry["context_tokens"]),
            concurrent_requests=_integer(entry["concurrent_requests"]),
            device=device,
            tensor_parallel=tensor_parallel,
            allow_pcie=bool(entry.get("allow_pcie_tensor_parallel", False)),
            dtype=str(entry.get("dtype", model.dtype)),
            engine=engine,
            engine_version=str(entry["engine_version"]) if "engine_version" in entry else None,
            engine_environment=str(entry.get("engine_environment", "image")),
            pools=pools,
            nodes=pinned,
            anti_affinity=str(entry.get("anti_affinity", "none")),
            apart_from=apart,
            cpus=_integer(entry.get("cpus", 4)),
            memory_mib=_integer(entry.get("memory_mib", 16384)),
            hugepages_mib=_integer(entry.get("hugepages_mib", 0)),
            min_available=available,
        )

    def _device(self, entry: Mapping[str, Any], refuse: Callable[[str], None]) -> tuple[Device, int | None]:
        asked = entry.get("device", {})
        profiles = asked.get("mig", ())
        profiles = (str(profiles),) if isinstance(profiles, str) else tuple(dict.fromkeys(str(profile) for profile in profiles))
        device = Device(profiles, _integer(asked.get("gpus", 0)), _integer(asked.get("share", 0)))
        split = _integer(entry["tensor_parallel"]) if "tensor_parallel" in entry else None
        if device.gpus and split is not None and split != device.gpus:
            refuse(
                f"tensor_parallel is {split}, but device.gpus is {device.gpus}; a replica is split over all its GPUs, so make them equal."
            )
        if device.share and split is not None and split > 1:
            refuse(f"tensor_parallel is {split}, but device.share is {device.share}; a part of one GPU cannot be split over several.")
        if split is not None and split > 1 and not device.chosen:
            device = Device(gpus=split)
        return device, split

    # --- one host -------------------------------------------------------------------------------

    def node(self, host: Host) -> Node | None:
        """Return a node; hosts of a pool that share their variables are read once."""
        own = {field.name: host.variables[field.name] for field in NODE_VARIABLES if field.name in host.variables}
        text = json.dumps(own, sort_keys=True, default=repr)
        known = self._nodes.get(text)
        if known is None:
            known = self._node(host)
            if known is not None:
                self._nodes[text] = known
        if known is None:
            return None
        address = host.variables.get("ansible_host")
        return replace(known, name=host.name, groups=tuple(sorted(host.groups)), address=str(address) if isinstance(address, str) else None)

    def _node(self, host: Host) -> Node | None:
        before = len(self.problems)
        got: dict[str, Any] = {}
        for field in NODE_VARIABLES:
            got[field.name] = self._value(field, host.variables, host.name)[1]
        if len(self.problems) > before:
            return None
        numa_nodes = self._numa_nodes(host.name, got)
        gpus = self._gpus(host.name, got, {numa.id for numa in numa_nodes})
        if len(self.problems) > before:
            return None
        for variable, label in (("infiniband_hcas", "device"), ("network_interfaces", "name"), ("nvme_devices", "name")):
            for entry in got[variable]:
                if _integer(entry.get("numa_node", 0)) not in {numa.id for numa in numa_nodes}:
                    self._problem(
                        variable,
                        host.name,
                        f"{variable}[{entry[label]}].numa_node is {entry.get('numa_node', 0)}, which numa_nodes does not have.",
                    )
        version = got["gpu_driver_version"]
        branch = _integer(got["gpu_driver_branch"] or (version.partition(".")[0] if version else DEFAULT_BRANCH))
        if version and version.partition(".")[0] != str(branch):
            self._problem(
                "gpu_driver_version",
                host.name,
                f"gpu_driver_version is {version}, which is not of gpu_driver_branch {branch}; correct one of them.",
            )
        volta = any(gpu.model.compute_capability < (7, 5) for gpu in gpus)
        if len(self.problems) > before:
            return None
        return Node(
            name=host.name,
            groups=(),
            address=None,
            state=got["node_state"],
            workload=got["node_workload"],
            gpus=tuple(gpus),
            numa_nodes=tuple(numa_nodes),
            threads_per_core=_integer(got["numa_threads_per_core"]),
            hcas=tuple(
                sorted(
                    (Hca(str(hca["device"]), _integer(hca["numa_node"]), _integer(hca["rate_gbps"])) for hca in got["infiniband_hcas"]),
                    key=lambda hca: hca.device,
                )
            ),
            driver_branch=branch,
            driver_flavour=got["gpu_driver_flavour"] or ("proprietary" if volta else "open"),
            cuda_version=str(got["cuda_version"]),
            triton_image=str(got["triton_image_tag"] or ("24.10" if volta else "25.08")),
        )

    def _numa_nodes(self, host: str, got: Mapping[str, Any]) -> list[NumaNode]:
        reserved = got["numa_reserved_cpus"]
        listed = None
        if isinstance(reserved, str) and not reserved.isdigit():
            listed = self._cpus(host, "numa_reserved_cpus", "numa_reserved_cpus", reserved)
        threads = _integer(got["numa_threads_per_core"])
        hugepages = _integer(got["numa_hugepages_mib"])
        kept_memory = _integer(got["numa_reserved_memory_mib"])
        found: list[NumaNode] = []
        owner: dict[int, int] = {}
        for entry in sorted(got["numa_nodes"], key=lambda entry: _integer(entry["id"])):
            identity, memory = _integer(entry["id"]), _integer(entry["memory_mib"])
            path = f"numa_nodes[{identity}]"
            cpus = self._cpus(host, "numa_nodes", f"{path}.cpus", entry["cpus"])
            twice = [cpu for cpu in cpus if cpu in owner]
            if twice:
                self._problem(
                    "numa_nodes",
                    host,
                    f"{path}.cpus has CPU {twice[0]}, which NUMA node {owner[twice[0]]} has too; each CPU belongs to one.",
                )
            owner.update((cpu, identity) for cpu in cpus)
            all_cores = _cpulist.cores(cpus, threads)
            if listed is None:
                kept = frozenset(cpu for core in all_cores[: -(-_integer(reserved) // threads)] for cpu in core)
            else:
                kept = frozenset(listed)
            if hugepages + kept_memory > memory:
                self._problem(
                    "numa_nodes",
                    host,
                    f"{path}.memory_mib is {memory}, less than numa_hugepages_mib ({hugepages}) and "
                    f"numa_reserved_memory_mib ({kept_memory}) together; lower one of them.",
                )
            found.append(
                NumaNode(
                    id=identity,
                    cpus=cpus,
                    reserved=tuple(cpu for cpu in cpus if cpu in kept),
                    cores=tuple(core for core in all_cores if not kept.intersection(core)),
                    memory_mib=memory - hugepages - kept_memory,
                    hugepages_mib=hugepages,
                )
            )
        stray = sorted(set(listed or ()) - set(owner))
        if stray:
            self._problem("numa_reserved_cpus", host, f"numa_reserved_cpus has CPU {stray[0]}, which no entry of numa_nodes has.")
        return found

    def _cpus(self, host: str, variable: str, path: str, text: Any) -> tuple[int, ...]:
        try:
            return _cpulist.parse(str(text))
        except ValueError as error:
            self._problem(variable, host, f"{path} is {text!r}, which is not a CPU list: {error}.")
            return ()

    def _gpus(self, host: str, got: Mapping[str, Any], numa_ids: set[int]) -> list[Gpu]:
        found: list[Gpu] = []
        addresses: set[str] = set()
        excluded = {str(entry).lower() for entry in got["gpu_excluded"]}
        for position, run in enumerate(got["gpu_devices"]):
            found.extend(self._run(host, position, run, first=len(found), numa_ids=numa_ids, excluded=excluded))
        for gpu in found:
            if gpu.pci_address is None:
                continue
            if gpu.pci_address in addresses:
                self._problem("gpu_devices", host, f"gpu_devices has two GPUs at the PCI address {gpu.pci_address}; give each its own.")
            addresses.add(gpu.pci_address)
        if addresses and len(addresses) < len(found) and not any("two GPUs" in problem[2] for problem in self.problems):
            self._problem(
                "gpu_devices", host, "gpu_devices gives pci_addresses for some GPUs only; give them for all GPUs of the node or for none."
            )
        known = {str(gpu.index) for gpu in found} | addresses
        for entry in sorted(excluded):
            if _address(entry) not in known:
                self._problem(
                    "gpu_excluded",
                    host,
                    f"gpu_excluded names {entry!r}, but gpu_devices has no GPU with this index or PCI address; it has {_list(known)}.",
                )
        return found

    def _run(self, host: str, position: int, run: Mapping[str, Any], *, first: int, numa_ids: set[int], excluded: set[str]) -> list[Gpu]:
        path = f"gpu_devices[{position}]"
        model = self._catalog.model(str(run["model"]))
        count = _integer(run["count"])
        before = len(self.problems)
        if model is None:
            self._problem(
                "gpu_devices",
                host,
                f"{path}.model is {run['model']!r}, which the catalog does not have; it has {_list(self._catalog.keys())}.",
            )
        numa = [_integer(entry) for entry in run.get("numa_nodes", [0] * count)]
        sets = run.get("nvlink_set", "none")
        if isinstance(sets, str):
            # Two runs of different GPUs never share an NVLink set, so a set is named after its run.
            links: list[str | None] = [f"{position}" if sets == "all" else None] * count
        else:
            links = [None if str(entry) == "none" else f"{position}.{entry}" for entry in sets]
        slots: list[str | None] = [_address(str(entry)) for entry in run["pci_addresses"]] if "pci_addresses" in run else [None] * count
        for key, values in (("numa_nodes", numa), ("nvlink_set", links), ("pci_addresses", slots)):
            if len(values) != count:
                self._problem("gpu_devices", host, f"{path}.{key} has {len(values)} entries, but count is {count}; give one for each GPU.")
        for entry in sorted(set(numa) - numa_ids):
            self._problem(
                "gpu_devices",
                host,
                f"{path}.numa_nodes has {entry}, which numa_nodes does not have; it has {_list(str(i) for i in numa_ids)}.",
            )
        if len(self.problems) > before or model is None:
            return []
        return [
            Gpu(
                index=first + offset,
                pci_address=slots[offset],
                model=model,
                numa_node=numa[offset],
                nvlink_set=links[offset],
                excluded=_is_excluded(first + offset, slots[offset], excluded),
            )
            for offset in range(count)
        ]


def _is_excluded(index: int, slot: str | None, excluded: set[str]) -> bool:
    return str(index) in excluded or (slot is not None and any(_address(entry) == slot for entry in excluded))


def _sound(field: Field, entry: Any) -> bool:
    """Whether an entry of a list or map is as described."""
    return field.items is not None and not any(faults(field.items, entry))


def _address(text: str) -> str:
    """PCI addresses as the kernel writes them: lower case, domain of four digits."""
    text = text.lower()
    return text[4:] if len(text) == 16 and text.startswith("0000") else text


def _number(value: Any) -> float:
    parsed = number(value)
    if parsed is None:
        raise AssertionError("checked by the schema before")
    return parsed


def _integer(value: Any) -> int:
    return int(_number(value))


def _list(names: Iterable[str]) -> str:
    ordered = sorted(str(name) for name in names)
    shown = ", ".join(ordered[:12])
    return (f"{shown} and {len(ordered) - 12} more" if len(ordered) > 12 else shown) or "none"
