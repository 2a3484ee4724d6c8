# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of a node's base: driver, settings, CUDA, container toolkit. A part of _schema.

PRIVATE: internal to the collection, may change at any time.
"""

from __future__ import annotations

from ._describe import Field

DEBIAN_VERSION = r"[0-9][A-Za-z0-9.+~:-]*"
FILE_NAME = r"[A-Za-z0-9_.-]+"


def _words(name: str, text: str, example: str) -> Field:
    return Field(
        name,
        "either",
        text,
        required=True,
        either=(
            Field(name, "string", "One, or several with spaces between them.", example=example),
            Field(name, "list", "Several.", not_empty=True, items=Field(name, "string", "One.", example=example)),
        ),
    )


def _repository(name: str, of: str) -> Field:
    return Field(
        name,
        "dict",
        f"The package repository of {of}, which may be a mirror without access to other networks.",
        default_text="the sources that the node has",
        scope="node",
        keys=(
            Field("name", "string", "Name of its file in `sources.list.d`.", required=True, pattern=FILE_NAME, example="gpu-mirror"),
            _words("uris", "Its addresses.", "https://mirror.example.com/ubuntu"),
            _words("suites", "Its suites.", "jammy"),
            Field(
                "components",
                "either",
                "Its components; a flat repository has none.",
                either=(
                    Field("components", "string", "One, or several with spaces between them.", example="main"),
                    Field("components", "list", "Several.", items=Field("components", "string", "One.", example="main")),
                ),
            ),
            Field(
                "key",
                "string",
                "The armoured public key, or the absolute path of a keyring on the node. It is trusted for this repository only.",
                required=True,
                example="/usr/share/keyrings/gpu-mirror.gpg",
            ),
            Field("proxy", "string", "Proxy for this repository, or `DIRECT`.", default_text="the node's", example="http://proxy:3128"),
        ),
    )


def _clocks(name: str, text: str) -> Field:
    number = Field(name, "integer", "A clock.", unit="MHz", minimum=1, maximum=10000)
    return Field(
        name,
        "either",
        text,
        default_text="left as it is",
        either=(
            number,
            Field(name, "list", "Lowest and highest clock.", items=number),
            Field(name, "string", "No lock.", choices=("unlocked",)),
        ),
    )


_SELECTED = Field(
    "gpus",
    "either",
    "Which GPUs: `all`, an index, a UUID, a PCI address, or a list of these.",
    required=True,
    either=(
        Field("gpus", "integer", "An index.", minimum=0, maximum=63),
        Field("gpus", "string", "`all`, a UUID or a PCI address.", example="all"),
        Field(
            "gpus",
            "list",
            "Several.",
            not_empty=True,
            items=Field(
                "gpus",
                "either",
                "A GPU.",
                either=(
                    Field("gpus", "integer", "An index.", minimum=0, maximum=63),
                    Field("gpus", "string", "A UUID or a PCI address.", example="0000:07:00.0"),
                ),
            ),
        ),
    ),
)

_GPU_SETTINGS = Field(
    "gpu_settings",
    "list",
    "Settings of groups of GPUs, now and after every boot.",
    default=[],
    scope="node",
    items=Field(
        "gpu_settings",
        "dict",
        "A group of GPUs.",
        keys=(
            _SELECTED,
            Field("persistence", "boolean", "Persistence mode.", default_text="left as it is"),
            Field(
                "compute_mode",
                "string",
                "Who may use a GPU at the same time.",
                default_text="left as it is",
                choices=("default", "exclusive_process", "prohibited"),
            ),
            Field("ecc", "boolean", "Error correction; takes a reboot.", default_text="left as it is"),
            Field(
                "power_limit_w",
                "either",
                "The power limit, or `default`.",
                default_text="left as it is",
                either=(
                    Field("power_limit_w", "number", "A limit.", unit="W", minimum=1, maximum=10000),
                    Field("power_limit_w", "string", "The board's.", choices=("default",)),
                ),
            ),
            _clocks("graphics_clocks_mhz", "Locked graphics clocks."),
            _clocks("memory_clocks_mhz", "Locked memory clocks, which Volta does not have."),
        ),
    ),
    example=[{"gpus": "all", "persistence": True, "power_limit_w": 350}],
)

BASE_VARIABLES: tuple[Field, ...] = (
    Field(
        "gpu_driver_version",
        "string",
        "The exact version of the driver. It is installed, pinned and held, and nothing but this variable moves it.",
        default_text="none: a plan needs none, but the site does",
        scope="node",
        pattern=r"\d+(\.\d+){1,3}",
        example="580.95.05",
    ),
    Field(
        "gpu_driver_source",
        "string",
        "Whose package names are used: those of the distribution, or those of NVIDIA's repository. They are never mixed on a node.",
        default="ubuntu",
        scope="node",
        choices=("ubuntu", "nvidia"),
    ),
    _repository("gpu_driver_repository", "the driver"),
    Field(
        "gpu_driver_mirror",
        "string",
        "Address of a mirror that replaces the addresses of the driver's repository, as on a site without access to other networks.",
        default_text="none",
        scope="node",
        example="http://mirror.example.com/ubuntu",
    ),
    _GPU_SETTINGS,
    Field(
        "gpu_client_services",
        "list",
        "Services that keep GPUs open (monitoring, persistence). They are stopped while a GPU is reset or the driver changes, "
        "and always started again.",
        default=["nvidia-persistenced"],
        scope="node",
        items=Field("gpu_client_services", "string", "A unit.", pattern=r"[A-Za-z0-9@_.-]+", example="nvidia-dcgm"),
        example=["nvidia-persistenced", "nvidia-dcgm"],
    ),
    Field(
        "cuda_toolkit_versions",
        "list",
        "CUDA toolkits beside `cuda_version`, each in its own folder.",
        default=[],
        scope="node",
        items=Field("cuda_toolkit_versions", "string", "A toolkit.", pattern=r"\d+\.\d+", example="12.6"),
        example=["12.6"],
    ),
    Field(
        "nccl_version",
        "string",
        "The version of NCCL: two numbers, or a whole package version.",
        default_text="the one that was built for `cuda_version`",
        scope="node",
        pattern=DEBIAN_VERSION,
        example="2.18",
    ),
    _repository("cuda_repository", "CUDA and NCCL"),
    Field(
        "container_toolkit_version",
        "string",
        "The version of NVIDIA's container toolkit.",
        default_text="the one in data/packages.yml",
        scope="node",
        pattern=DEBIAN_VERSION,
        example="1.20.2-1",
    ),
    _repository("container_toolkit_repository", "the container toolkit"),
)
