# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from system_sandbox import NODES, Node
from throwaway_node import ROOT
from throwaway_node import Node as ThrowawayNode


@pytest.fixture(scope="session")
def nodes() -> dict[str, Node]:
    return {name: Node(name, address) for name, address in NODES.items()}


@pytest.fixture
def faults(nodes: dict[str, Node]) -> Iterator[Any]:
    """Writes a node's fault file, and takes it away again."""
    written: list[Node] = []

    def write(node: Node, entries: list[dict[str, Any]]) -> None:
        written.append(node)
        node.run("cat > /run/gpu-sandbox/faults.json", stdin=json.dumps(entries))

    yield write
    for node in written:
        node.run("rm -f /run/gpu-sandbox/faults.json")


@pytest.fixture(name="image", scope="session")
def fixture_image() -> str:
    done = subprocess.run([str(ROOT / "tests/sandbox/image/build")], check=True, capture_output=True, text=True)
    return done.stdout.split()[-1]


@pytest.fixture(name="node")
def fixture_node(image: str) -> Iterator[ThrowawayNode]:
    node = ThrowawayNode(image)
    yield node
    node.remove()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The site comes first: it begins with virgin nodes, and the others need what it leaves."""
    items.sort(key=lambda item: item.path.name != "test_site.py")
