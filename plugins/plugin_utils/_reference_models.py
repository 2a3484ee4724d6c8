# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: internal to the collection, may change at any time.
"""A request per reference model and its right answer, computed here in plain Python and so independently of Triton and numpy."""

from __future__ import annotations

import math
from typing import Any, Callable

_VOCABULARY = 256

Exchange = dict[str, Any]


def exchange(model: str) -> Exchange:
    """Return {inputs, expected} for a reference model."""
    try:
        make = _EXCHANGES[model]
    except KeyError:
        raise ValueError(f"There is no reference request for model {model!r}; known are {', '.join(sorted(_EXCHANGES))}.") from None
    return make()


def _tensor(name: str, datatype: str, shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


def _token_scorer() -> Exchange:
    width, generated = 32, 4
    weights = [[((row * 31 + column * 17 + row * column) % 97 - 48) / 48.0 for column in range(width)] for row in range(_VOCABULARY)]
    prompt = [72, 101, 108, 108, 111]
    context, scores = list(prompt), []
    for _step in range(generated):
        hidden = [math.fsum(weights[token][column] for token in context) / len(context) for column in range(width)]
        logits = {row: math.fsum(w * h for w, h in zip(weights[row], hidden)) for row in range(_VOCABULARY) if row not in context}
        best = max(logits, key=lambda row: (logits[row], -row))
        context.append(best)
        scores.append(logits[best])
    return {
        "inputs": [_tensor("tokens", "INT64", [len(prompt)], prompt)],
        "expected": {"next_tokens": context[-generated:], "scores": scores},
    }


def _matrix_statistics() -> Exchange:
    rows, columns = 6, 3
    matrix = [[(row * 7 + column * 5) % 11 - 4.5 for column in range(columns)] for row in range(rows)]
    by_column = [[row[column] for row in matrix] for column in range(columns)]
    means = [math.fsum(values) / rows for values in by_column]
    deviations = [math.sqrt(math.fsum((value - mean) ** 2 for value in values) / rows) for values, mean in zip(by_column, means)]
    gram = [math.fsum(a * b for a, b in zip(left, right)) for left in by_column for right in by_column]
    return {
        "inputs": [_tensor("matrix", "FP64", [rows, columns], [value for row in matrix for value in row])],
        "expected": {"gram": gram, "mean": means, "standard_deviation": deviations},
    }


def _text_embedder() -> Exchange:
    tokens = [71, 80, 85, 115]
    vector = [sum((token * 37 + column * 11 + token * column * 5) % 101 - 50 for token in tokens) for column in range(16)]
    length = math.sqrt(sum(value * value for value in vector))
    return {
        "inputs": [_tensor("tokens", "INT64", [len(tokens)], tokens)],
        "expected": {"embedding": [value / length for value in vector]},
    }


def _pair_ranker() -> Exchange:
    query = [1, 2, 3, 3]
    passages = [[4, 5, 6, 7], [3, 3, 2, 9], [1, 2, 3, 3]]
    scores = [_cosine(query, passage) for passage in passages]
    order = sorted(range(len(passages)), key=lambda index: -scores[index])
    return {
        "inputs": [
            _tensor("query", "INT64", [len(query)], query),
            _tensor("passages", "INT64", [len(passages), len(passages[0])], [token for passage in passages for token in passage]),
        ],
        "expected": {"scores": scores, "order": order},
    }


def _cosine(left: list[int], right: list[int]) -> float:
    counts = [(left.count(token), right.count(token)) for token in set(left) | set(right)]
    product = sum(a * b for a, b in counts)
    return product / math.sqrt(sum(pair[0] ** 2 for pair in counts) * sum(pair[1] ** 2 for pair in counts))


_EXCHANGES: dict[str, Callable[[], Exchange]] = {
    "token_scorer": _token_scorer,
    "matrix_statistics": _matrix_statistics,
    "text_embedder": _text_embedder,
    "pair_ranker": _pair_ranker,
}
