# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every variable of the inventory, described once.

The check of an inventory, its JSON Schema, docs/inventory.md and the template inventory all come from here.
PRIVATE: internal to the collection, may change at any time.
"""

from __future__ import annotations

from ._describe import Field
from ._schema_base import BASE_VARIABLES

NAME = r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?"
MODEL = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?"
PCI = r"([0-9a-fA-F]{4}|[0-9a-fA-F]{8}):[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
CPU_LIST = r"\d+(-\d+)?(,\d+(-\d+)?)*"

DTYPES = ("float32", "float16", "bfloat16")
QUANTIZATIONS = ("none", "int8", "awq", "gptq", "bitsandbytes")
CLASSES = ("interactive", "batch", "auxiliary")
STATES = ("active", "maintenance", "absent")
WORKLOADS = ("containers", "vm", "vgpu")

_GPU_DEVICES = Field(
    "gpu_devices",
    "list",
    "The GPUs of the node in the order of their PCI addresses, a line for each run of equal GPUs. "
    "It lets the plan be made with no node reachable, and is compared with the hardware when the node is.",
    required=True,
    scope="node",
    items=Field(
        "gpu_devices",
        "dict",
        "A run of equal GPUs.",
        keys=(
            Field("model", "string", "The GPU model, as in `data/gpu-profiles`.", required=True, example="A100-SXM4-80GB"),
            Field("count", "integer", "How many there are.", required=True, minimum=1, maximum=16),
            Field(
                "numa_nodes",
                "list",
                "The NUMA node of each GPU.",
                default_text="every GPU on NUMA node 0",
                items=Field("numa_nodes", "integer", "A NUMA node.", minimum=0, maximum=255),
            ),
            Field(
                "nvlink_set",
                "either",
                "Which GPUs reach each other over NVLink: `all`, `none`, or the name of the set of each GPU.",
                default="none",
                either=(
                    Field("nvlink_set", "string", "One word for all.", choices=("all", "none")),
                    Field(
                        "nvlink_set",
                        "list",
                        "A set for each GPU.",
                        items=Field(
                            "nvlink_set",
                            "either",
                            "A set.",
                            either=(
                                Field("nvlink_set", "integer", "A number.", minimum=0),
                                Field("nvlink_set", "string", "A name.", pattern=NAME, example="left"),
                            ),
                        ),
                    ),
                ),
            ),
            Field(
                "pci_addresses",
                "list",
                "The PCI address of each GPU. Devices are then named by slot in the plan, as they are once the node has been read.",
                default_text="GPUs are named by their index until the node has been read",
                items=Field("pci_addresses", "string", "A PCI address.", pattern=PCI, example="0000:07:00.0"),
            ),
        ),
    ),
    not_empty=True,
    example=[{"model": "A100-SXM4-80GB", "count": 8, "numa_nodes": [0, 0, 0, 0, 1, 1, 1, 1], "nvlink_set": "all"}],
)

_NUMA_NODES = Field(
    "numa_nodes",
    "list",
    "The NUMA nodes of the node with their CPUs and memory, as `numactl --hardware` shows them.",
    required=True,
    scope="node",
    not_empty=True,
    items=Field(
        "numa_nodes",
        "dict",
        "A NUMA node.",
        keys=(
            Field("id", "integer", "Its number.", required=True, minimum=0, maximum=255),
            Field("cpus", "string", "Its CPUs.", required=True, pattern=CPU_LIST, example="0-63,128-191"),
            Field("memory_mib", "integer", "Its memory.", required=True, unit="MiB", minimum=1),
        ),
    ),
    unique_by="id",
    example=[{"id": 0, "cpus": "0-63,128-191", "memory_mib": 515072}, {"id": 1, "cpus": "64-127,192-255", "memory_mib": 516096}],
)

NODE_VARIABLES: tuple[Field, ...] = (
    _GPU_DEVICES,
    Field(
        "gpu_excluded",
        "list",
        "GPUs that the plan leaves alone, by index or PCI address: broken ones, or ones used by something else.",
        default=[],
        scope="node",
        items=Field(
            "gpu_excluded",
            "either",
            "A GPU.",
            either=(
                Field("gpu_excluded", "integer", "An index.", minimum=0, maximum=63),
                Field("gpu_excluded", "string", "A PCI address.", pattern=PCI, example="0000:07:00.0"),
            ),
        ),
        example=["0000:07:00.0"],
    ),
    Field(
        "gpu_driver_branch",
        "integer",
        "The driver branch. 580 is the last one that drives a V100.",
        default_text="that of `gpu_driver_version`, else 580",
        scope="node",
        minimum=450,
        maximum=999,
    ),
    Field(
        "gpu_driver_flavour",
        "string",
        "The kernel module of the driver. A node that holds a V100 needs the proprietary one for all its GPUs.",
        default_text="`proprietary` on a node that holds a V100, else `open`",
        scope="node",
        choices=("open", "proprietary"),
    ),
    Field(
        "cuda_version",
        "string",
        "The default CUDA toolkit of the node.",
        default="12.2",
        scope="node",
        pattern=r"\d+\.\d+",
        example="12.2",
    ),
    Field(
        "triton_image_tag",
        "string",
        "The release of Triton that serves on the node.",
        default_text="`24.10` on a node that holds a V100, else `25.08`",
        scope="node",
        pattern=r"\d\d\.\d\d",
        example="25.08",
    ),
    Field(
        "node_state",
        "string",
        "`maintenance` keeps what runs on the node and places nothing new there; `absent` places everything elsewhere.",
        default="active",
        scope="node",
        choices=STATES,
    ),
    Field(
        "node_workload",
        "string",
        "What the GPUs of the node are used by. Only nodes for containers take part in the plan.",
        default="containers",
        scope="node",
        choices=WORKLOADS,
    ),
    _NUMA_NODES,
    Field(
        "numa_threads_per_core",
        "integer",
        "Hardware threads of a CPU core. CPUs are given out in whole cores.",
        default=2,
        scope="node",
        minimum=1,
        maximum=8,
    ),
    Field(
        "numa_reserved_cpus",
        "either",
        "CPUs kept for the system: a number for each NUMA node (its first cores), or a CPU list.",
        default=4,
        scope="node",
        either=(
            Field("numa_reserved_cpus", "integer", "CPUs of each NUMA node.", minimum=0, maximum=1024),
            Field("numa_reserved_cpus", "string", "A CPU list.", pattern=CPU_LIST, example="0-3,64-67"),
        ),
    ),
    Field(
        "numa_reserved_memory_mib",
        "integer",
        "Memory of each NUMA node kept for the system and the page cache.",
        default=16384,
        scope="node",
        unit="MiB",
        minimum=0,
    ),
    Field(
        "numa_hugepages_mib",
        "integer",
        "Memory of each NUMA node set aside as huge pages.",
        default=0,
        scope="node",
        unit="MiB",
        minimum=0,
    ),
    Field(
        "infiniband_hcas",
        "list",
        "The InfiniBand adapters of the node.",
        default=[],
        scope="node",
        unique_by="device",
        items=Field(
            "infiniband_hcas",
            "dict",
            "An adapter.",
            keys=(
                Field("device", "string", "Its name.", required=True, pattern=r"[a-z0-9_]+", example="mlx5_0"),
                Field("numa_node", "integer", "Its NUMA node.", required=True, minimum=0, maximum=255),
                Field("rate_gbps", "integer", "Its rate.", required=True, unit="Gbit/s", minimum=1),
            ),
        ),
        example=[{"device": "mlx5_0", "numa_node": 0, "rate_gbps": 200}],
    ),
    Field(
        "network_interfaces",
        "list",
        "The Ethernet interfaces of the node.",
        default=[],
        scope="node",
        unique_by="name",
        items=Field(
            "network_interfaces",
            "dict",
            "An interface.",
            keys=(
                Field("name", "string", "Its name.", required=True, pattern=r"[A-Za-z0-9_.-]{1,15}", example="ens25f0"),
                Field("rate_gbps", "integer", "Its rate.", required=True, unit="Gbit/s", minimum=1),
                Field("numa_node", "integer", "Its NUMA node.", default=0, minimum=0, maximum=255),
            ),
        ),
        example=[{"name": "ens25f0", "rate_gbps": 25, "numa_node": 0}],
    ),
    Field(
        "nvme_devices",
        "list",
        "The NVMe devices of the node.",
        default=[],
        scope="node",
        unique_by="name",
        items=Field(
            "nvme_devices",
            "dict",
            "A device.",
            keys=(
                Field("name", "string", "Its name.", required=True, pattern=r"nvme\d+n\d+", example="nvme0n1"),
                Field("size_gib", "integer", "Its size.", required=True, unit="GiB", minimum=1),
                Field("numa_node", "integer", "Its NUMA node.", default=0, minimum=0, maximum=255),
            ),
        ),
        example=[{"name": "nvme0n1", "size_gib": 3576, "numa_node": 0}],
    ),
)

_MODELS = Field(
    "inference_models",
    "map",
    "The models, by name.",
    required=True,
    not_empty=True,
    pattern=MODEL,
    example={
        "llama-3-8b-instruct": {
            "parameters": 8030000000,
            "layers": 32,
            "attention_heads": 32,
            "kv_heads": 8,
            "head_dim": 128,
            "hidden_size": 4096,
            "dtype": "bfloat16",
        }
    },
    items=Field(
        "inference_models",
        "dict",
        "A model.",
        keys=(
            Field("parameters", "number", "How many parameters it has.", required=True, minimum=1e6, maximum=1e13),
            Field("layers", "integer", "Its layers.", required=True, minimum=1, maximum=1000),
            Field("attention_heads", "integer", "Attention heads of a layer.", required=True, minimum=1, maximum=1024),
            Field("kv_heads", "integer", "Key-value heads of a layer.", default_text="attention_heads", minimum=1, maximum=1024),
            Field("head_dim", "integer", "Size of a head.", default_text="hidden_size / attention_heads", minimum=1, maximum=4096),
            Field("hidden_size", "integer", "Size of the hidden state.", required=True, minimum=1, maximum=1048576),
            Field(
                "dtype", "string", "Type of its activations, and of its weights unless they are quantized.", required=True, choices=DTYPES
            ),
            Field("quantization", "string", "How its weights are quantized.", default="none", choices=QUANTIZATIONS),
            Field("encoder", "boolean", "Whether it is an encoder (embedding, reranking), which keeps no KV cache.", default=False),
        ),
    ),
)

_DEVICE = Field(
    "device",
    "dict",
    "What a replica runs on: `{mig: 3g.40gb}`, `{mig: [4g.40gb, 3g.40gb]}` (either), `{gpus: 4}` or `{share: 4}` (a quarter of a GPU).",
    default_text="the smallest device in which the service fits, by class",
    exactly_one_key=True,
    keys=(
        Field(
            "mig",
            "either",
            "A MIG profile, or several of which any will do.",
            either=(
                Field("mig", "string", "A profile.", pattern=r"\d+g\.\d+gb(\+me)?", example="3g.40gb"),
                Field(
                    "mig",
                    "list",
                    "Profiles.",
                    not_empty=True,
                    items=Field("mig", "string", "A profile.", pattern=r"\d+g\.\d+gb(\+me)?", example="3g.40gb"),
                ),
            ),
        ),
        Field("gpus", "integer", "Whole GPUs, used with tensor parallelism when there are several.", minimum=1, maximum=16),
        Field("share", "integer", "The part of a whole GPU: 4 is a quarter.", minimum=2, maximum=16),
    ),
)

_SERVICES = Field(
    "inference_services",
    "list",
    "The services.",
    required=True,
    not_empty=True,
    unique_by="name",
    example=[
        {
            "name": "chat",
            "model": "llama-3-8b-instruct",
            "class": "interactive",
            "replicas": 16,
            "device": {"mig": ["4g.40gb", "3g.40gb"]},
            "context_tokens": 8192,
            "concurrent_requests": 16,
        }
    ],
    items=Field(
        "inference_services",
        "dict",
        "A service.",
        keys=(
            Field("name", "string", "Its name.", required=True, pattern=NAME, example="chat"),
            Field(
                "model", "string", "Its model, a name in `inference_models`.", required=True, pattern=MODEL, example="llama-3-8b-instruct"
            ),
            Field("class", "string", "Its service class.", required=True, choices=CLASSES),
            Field("replicas", "integer", "How many replicas it has.", required=True, minimum=0, maximum=100000),
            Field(
                "context_tokens", "integer", "Tokens of a request, prompt and answer together.", required=True, minimum=1, maximum=100000000
            ),
            Field("concurrent_requests", "integer", "Requests that a replica works on at once.", required=True, minimum=1, maximum=100000),
            _DEVICE,
            Field(
                "tensor_parallel",
                "integer",
                "GPUs over which a replica is split.",
                default_text="device.gpus, else 1",
                minimum=1,
                maximum=16,
            ),
            Field(
                "allow_pcie_tensor_parallel",
                "boolean",
                "Whether a replica may be split over GPUs that have no NVLink between them.",
                default=False,
            ),
            Field(
                "dtype", "string", "Type of the activations, when other than the model's.", default_text="the model's dtype", choices=DTYPES
            ),
            Field(
                "engine",
                "string",
                "The engine.",
                default_text="`python` for encoders, else `vllm`",
                choices=("vllm", "python", "onnxruntime", "tensorrt"),
            ),
            Field(
                "engine_version",
                "string",
                "Its version.",
                default_text="the one in the image",
                pattern=r"\d+(\.\d+)*([a-z.]\w*)*",
                example="0.9.2",
            ),
            Field(
                "engine_environment",
                "string",
                "`own` when the engine comes in an environment of its own instead of the image.",
                default="image",
                choices=("image", "own"),
            ),
            Field(
                "pool",
                "either",
                "The group of nodes, or the groups, it may run in.",
                default_text="every node",
                either=(
                    Field("pool", "string", "A group.", pattern=r"[A-Za-z_]\w*", example="a100"),
                    Field(
                        "pool",
                        "list",
                        "Groups.",
                        not_empty=True,
                        items=Field("pool", "string", "A group.", pattern=r"[A-Za-z_]\w*", example="a100"),
                    ),
                ),
            ),
            Field(
                "nodes",
                "list",
                "The only nodes it may run on. Pinned services are placed before all others.",
                default=[],
                items=Field("nodes", "string", "A node.", example="a100-1"),
            ),
            Field(
                "anti_affinity",
                "string",
                "`node`: at most one replica on a node. `gpu`: at most one on a GPU.",
                default="none",
                choices=("none", "node", "gpu"),
            ),
            Field(
                "apart_from",
                "list",
                "Services that must not run on the same node.",
                default=[],
                items=Field("apart_from", "string", "A service.", pattern=NAME, example="chat"),
            ),
            Field("cpus", "integer", "CPUs of a replica, from the NUMA node of its GPU.", default=4, minimum=0, maximum=1024),
            Field("memory_mib", "integer", "Host memory of a replica.", default=16384, unit="MiB", minimum=0),
            Field("hugepages_mib", "integer", "Huge pages of a replica.", default=0, unit="MiB", minimum=0),
            Field(
                "min_available",
                "integer",
                "Replicas that must stay when a node is drained.",
                default_text="half of the replicas for interactive services, else 0",
                minimum=0,
                maximum=100000,
            ),
        ),
    ),
)

CLUSTER_VARIABLES: tuple[Field, ...] = (
    _MODELS,
    _SERVICES,
    Field(
        "inference_usable_memory_fraction",
        "number",
        "The part of a device's memory that an engine may use.",
        default=0.9,
        minimum=0.1,
        maximum=1,
    ),
    Field(
        "inference_runtime_overhead_mib",
        "integer",
        "Memory that every replica takes on each GPU beside weights and cache: CUDA context, activations, graphs.",
        default=1536,
        unit="MiB",
        minimum=0,
        maximum=1048576,
    ),
    Field(
        "inference_port_base",
        "integer",
        "The first port of the replicas on a node. A replica takes three: HTTP, gRPC and metrics.",
        default=20000,
        minimum=1024,
        maximum=65000,
    ),
    Field(
        "triton_allow_unverified_image",
        "boolean",
        "Whether a V100 may serve with Triton 24.11 to 25.02, of which it is not known that they still support it.",
        default=False,
    ),
    Field(
        "plan_max_moves",
        "integer",
        "How many running replicas a plan may move to make room for others.",
        default=0,
        minimum=0,
        maximum=100000,
    ),
    Field("plan_allow_partial", "boolean", "Whether a plan with refusals is put into force for what it could place.", default=False),
    Field(
        "plan_allow_disruption",
        "boolean",
        "Whether a node may be drained although a service then has fewer replicas than its min_available.",
        default=False,
    ),
)

NODE_VARIABLES += BASE_VARIABLES
VARIABLES = CLUSTER_VARIABLES + NODE_VARIABLES
BY_NAME = {field.name: field for field in VARIABLES}
