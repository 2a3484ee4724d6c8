# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan is as good as an exact solver's, on instances that simpler searches fail on. tests/benchmarks/optimum.py has many more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("ortools")
sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
import optimum

SECONDS = 60  # of the solver; it needs one


@pytest.mark.parametrize("seed", [8, 14, 28, 29, 31, 224, 246])
def test_as_many_replicas_and_as_few_moves_as_possible(seed: int) -> None:
    good, said = optimum.compare(seed, SECONDS)
    assert good, said
    assert "did not finish" not in said


@pytest.mark.slow
@pytest.mark.parametrize("seed", [16, 17, 19, 20, 23, 40, 41, 52, 102, 103, 204, 210, 217, 221])
def test_as_many_replicas_and_as_few_moves_as_possible_on_larger_clusters(seed: int) -> None:
    good, said = optimum.compare(seed, SECONDS)
    assert good, said
