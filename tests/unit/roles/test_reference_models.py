# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The models that Triton serves and the answers that the controller computes agree, and answers are what they claim to be."""

from __future__ import annotations

import importlib.util
import math
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils._reference_models import exchange

np = pytest.importorskip("numpy")
MODELS = Path(__file__).resolve().parents[3] / "roles" / "triton" / "files" / "models"
NAMES = sorted(path.name for path in MODELS.iterdir())
TYPES = {"INT64": "int64", "FP64": "float64"}


class Tensor:
    def __init__(self, name: str, values: Any) -> None:
        self.name, self.values = name, values

    def as_numpy(self) -> Any:
        return self.values


class Response:
    def __init__(self, output_tensors: list[Tensor] | None = None, error: str | None = None) -> None:
        self.outputs = {tensor.name: tensor.values.reshape(-1).tolist() for tensor in output_tensors or []}
        self.error = error


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> None:
    utilities = types.ModuleType("triton_python_backend_utils")
    utilities.Tensor = Tensor  # type: ignore[attr-defined]
    utilities.InferenceResponse = Response  # type: ignore[attr-defined]
    utilities.TritonError = str  # type: ignore[attr-defined]
    utilities.get_input_tensor_by_name = lambda request, name: request[name]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", utilities)
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "MIG-x")


def serve(name: str, inputs: list[dict[str, Any]]) -> Response:
    spec = importlib.util.spec_from_file_location(f"model_{name}", MODELS / name / "1" / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.TritonPythonModel()
    model.initialize({})
    request = {
        tensor["name"]: Tensor(tensor["name"], np.array(tensor["data"], dtype=TYPES[tensor["datatype"]]).reshape(tensor["shape"]))
        for tensor in inputs
    }
    [response] = model.execute([request])
    return response


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("backend")
def test_model_and_reference_agree(name: str) -> None:
    asked = exchange(name)
    response = serve(name, asked["inputs"])
    assert response.error is None
    assert response.outputs.pop("device") == ["MIG-x"]
    assert response.outputs == {output: pytest.approx(values) for output, values in asked["expected"].items()}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "matrix_statistics"])
@pytest.mark.usefixtures("backend")
def test_token_out_of_range_is_refused(name: str) -> None:
    inputs = [{**tensor, "data": [256, *tensor["data"][1:]]} for tensor in exchange(name)["inputs"]]
    assert "integers from 0 to 255" in str(serve(name, inputs).error)


@pytest.mark.parametrize("name", NAMES)
def test_every_declared_output_is_compared(name: str) -> None:
    text = (MODELS / name / "config.pbtxt").read_text(encoding="utf-8")
    declared = text.partition("output [")[2].split('name: "')[1:]
    assert {entry.partition('"')[0] for entry in declared} == {*exchange(name)["expected"], "device"}
    assert f'name: "{name}"' in text


def test_no_model_turns_on_the_queue_policies_that_stall_single_instances() -> None:
    texts = [path.read_text(encoding="utf-8") for path in MODELS.glob("*/config.pbtxt")]
    assert texts
    assert not any(option in text for text in texts for option in ("priority_levels", "queue_policy"))


def test_answers_are_what_they_claim_to_be() -> None:
    assert math.hypot(*exchange("text_embedder")["expected"]["embedding"]) == pytest.approx(1.0)
    ranked = exchange("pair_ranker")["expected"]
    assert ranked["scores"][ranked["order"][0]] == pytest.approx(1.0)
    assert ranked["scores"][ranked["order"][-1]] == 0
    tokens = exchange("token_scorer")["expected"]["next_tokens"]
    assert len(set(tokens)) == len(tokens) == 4


def test_unknown_model_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'nothing'; known are matrix_statistics"):
        exchange("nothing")
