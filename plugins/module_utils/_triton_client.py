# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""A small client of Triton's HTTP service: readiness, one request, comparison."""

from __future__ import annotations

import http.client
import json
import math
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

_REQUEST_TIMEOUT_S = 10
_POLL_INTERVAL_S = 0.5
# Proxies of the environment are for the outside world, never for servers of this node.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Request:
    name: str
    url: str
    model: str
    inputs: list[dict[str, Any]]
    expected: dict[str, list[Any]]
    tolerance: float

    @property
    def model_url(self) -> str:
        return f"{self.url.rstrip('/')}/v2/models/{self.model}"


@dataclass
class Answer:
    name: str
    ready: bool = False
    outputs: dict[str, list[Any]] = field(default_factory=dict)
    problem: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def check(requests: Sequence[Request], timeout_s: float) -> list[Answer]:
    answers = [Answer(request.name) for request in requests]
    _await_ready(requests, answers, time.monotonic() + timeout_s)
    for request, answer in zip(requests, answers):
        if not answer.ready:
            answer.problem = (
                f"Model {request.model} of replica {request.name} was not ready at {request.url} within {timeout_s:g} seconds "
                f"({answer.problem}); read the server's log with journalctl -u triton@{request.name}."
            )
        elif request.inputs:
            _ask(request, answer)
    return answers


def _await_ready(requests: Sequence[Request], answers: Sequence[Answer], deadline: float) -> None:
    waiting = list(zip(requests, answers))
    while waiting:
        for request, answer in waiting:
            answer.ready, answer.problem = _is_ready(request)
        waiting = [(request, answer) for request, answer in waiting if not answer.ready]
        if not waiting or time.monotonic() >= deadline:
            return
        time.sleep(_POLL_INTERVAL_S)


def _is_ready(request: Request) -> tuple[bool, str | None]:
    """The server's own ready URL stays 200 when its model is gone, so the model's is asked."""
    try:
        with _OPENER.open(f"{request.model_url}/ready", timeout=_REQUEST_TIMEOUT_S):
            return True, None
    except urllib.error.HTTPError as error:
        return False, f"HTTP status {error.code}"
    except (OSError, http.client.HTTPException) as error:
        return False, str(getattr(error, "reason", error))


def _ask(request: Request, answer: Answer) -> None:
    body = json.dumps({"inputs": request.inputs}).encode()
    call = urllib.request.Request(f"{request.model_url}/infer", data=body, headers={"Content-Type": "application/json"})
    try:
        with _OPENER.open(call, timeout=_REQUEST_TIMEOUT_S) as response:
            document = json.load(response)
    except urllib.error.HTTPError as error:
        answer.problem = f"Replica {request.name} refused a request to {request.model}: {error.read(500).decode(errors='replace')}."
        return
    except (OSError, http.client.HTTPException, ValueError) as error:
        answer.problem = f"Replica {request.name} did not answer a request to {request.model} at {request.url}: {error}."
        return
    answer.outputs = {output["name"]: output["data"] for output in document["outputs"]}
    answer.problem = _difference(request, answer.outputs)


def _difference(request: Request, outputs: dict[str, list[Any]]) -> str | None:
    for name, expected in request.expected.items():
        got = outputs.get(name)
        if got is None or len(got) != len(expected) or not all(_equal(a, b, request.tolerance) for a, b in zip(got, expected)):
            return (
                f"Replica {request.name} answered {name} = {got} where {expected} is right; "
                f"its model {request.model} or its device is not the declared one."
            )
    return None


def _equal(got: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(got, (int, float)) and isinstance(expected, (int, float)):
        return math.isclose(got, expected, rel_tol=tolerance, abs_tol=tolerance)
    return bool(got == expected)
