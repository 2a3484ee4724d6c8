# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils._triton_client import Request, check


class Server(ThreadingHTTPServer):
    """Answers like Triton: a model that becomes ready after some polls."""

    polls_until_ready = 0
    outputs: list[dict[str, Any]] = [{"name": "scores", "data": [1.0, 2.0]}]
    status = 200


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.polls_until_ready -= 1
        self._send(200 if self.server.polls_until_ready < 0 else 400, b"")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._send(self.server.status, json.dumps({"outputs": self.server.outputs, "error": "bad tokens"}).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        return


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def request(server: Server, **changes: Any) -> Request:
    fields = {"name": "chat-0", "url": f"http://127.0.0.1:{server.server_port}", "model": "m", "inputs": [{"name": "x"}]}
    return Request(**{**fields, "expected": {"scores": [1.0, 2.0]}, "tolerance": 1e-9, **changes})


def test_right_answer_has_no_problem(server: Server) -> None:
    server.polls_until_ready = 1
    [answer] = check([request(server)], 30)
    assert (answer.ready, answer.problem, answer.outputs) == (True, None, {"scores": [1.0, 2.0]})


@pytest.mark.parametrize("values", [[1.0, 2.1], [1.0], ["1.0", "2.0"]])
def test_wrong_answer_is_shown_with_the_right_one(server: Server, values: list[Any]) -> None:
    server.outputs = [{"name": "scores", "data": values}]
    [answer] = check([request(server)], 30)
    assert answer.problem is not None
    assert f"scores = {values} where [1.0, 2.0] is right" in answer.problem


def test_missing_output_is_a_problem(server: Server) -> None:
    [answer] = check([request(server, expected={"device": ["MIG-x"]})], 30)
    assert answer.problem is not None
    assert "device = None where ['MIG-x'] is right" in answer.problem


def test_refusal_carries_the_reason_of_the_server(server: Server) -> None:
    server.status = 400
    [answer] = check([request(server)], 30)
    assert answer.problem is not None
    assert "bad tokens" in answer.problem


def test_model_that_is_never_ready_is_reported_and_not_asked(server: Server) -> None:
    server.polls_until_ready = 1_000_000
    [answer] = check([request(server)], 0)
    assert not answer.ready
    assert answer.problem is not None
    assert "was not ready" in answer.problem
    assert "HTTP status 400" in answer.problem
    assert "journalctl -u triton@chat-0" in answer.problem


def test_readiness_alone_asks_nothing(server: Server) -> None:
    server.status = 500
    [answer] = check([request(server, inputs=[])], 30)
    assert (answer.ready, answer.outputs, answer.problem) == (True, {}, None)
