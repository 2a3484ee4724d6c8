# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From every placed layout to every feasible geometry with the fewest calls, or refused."""

from __future__ import annotations

import random

import mig_model as model
import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _mig_layout, _mig_plan
from ansible_collections.heterogpu.inference.plugins.module_utils._errors import InvalidInput, Refused
from ansible_collections.heterogpu.inference.plugins.module_utils._mig_layout import Slot, Wanted

A100, A30 = "a100_80gb", "a30_24gb"
PAIRS = 4000


def reach(gpu_model: str, state: model.State, target: tuple[str, ...], busy: frozenset = frozenset()) -> None:
    """Plan, execute on a GPU that refuses, compare with the exhaustive search."""
    gpu = model.as_gpu(gpu_model, state, busy)
    wanted = [Wanted(name, None) for name in target]
    fewest = model.fewest_calls(gpu_model, state, target, busy)
    if fewest is None:
        with pytest.raises(Refused, match=r"process 4711 \(tritonserver\)"):
            _mig_plan.resolve(gpu, model.offer(gpu_model), wanted, "geometry[0]")
        return
    slots = _mig_plan.resolve(gpu, model.offer(gpu_model), wanted, "geometry[0]")
    steps = _mig_plan.instance_steps(gpu, slots)
    executing = model.ExecutingGpu(gpu_model, state, gpu, busy)
    for step in steps:
        executing.execute(step)
    assert model.multiset(executing.state) == target
    assert set(executing.state.values()) <= {(model.FULL,)}
    assert set(executing.state) == {tuple(slot) for slot in slots}
    assert len(steps) == fewest, (state, target, steps)


def some_busy(state: model.State, source: random.Random) -> frozenset:
    return frozenset(slot for slot, computes in state.items() if computes and source.random() < 0.3)


def test_the_numbers_of_layouts_are_those_counted_by_hand() -> None:
    """128 feasible multisets on an A100-80GB, the empty one included."""
    assert len(model.by_multiset(A100)) == 128
    assert set(model.by_multiset(A100)) == set(_mig_layout.feasible(model.offer(A100)))
    assert len(set(map(frozenset, model.offer(A100).layouts()))) == len(model.layouts(A100))


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_sample_of_all_pairs(busy: bool) -> None:
    source = random.Random(20260501)
    layouts, targets = model.layouts(A100), sorted(model.by_multiset(A100))
    for _number in range(PAIRS):
        state = model.some_state(A100, source.choice(layouts), source)
        reach(A100, state, source.choice(targets), some_busy(state, source) if busy else frozenset())


@pytest.mark.slow
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_all_pairs(busy: bool) -> None:
    """Every placed layout with complete instances and once more with some incomplete, to every geometry."""
    source = random.Random(20260502)
    for layout in model.layouts(A100):
        complete = dict.fromkeys(layout, (model.FULL,))
        for state in (complete, model.some_state(A100, layout, source)):
            for target in model.by_multiset(A100):
                reach(A100, state, target, some_busy(state, source) if busy else frozenset())


def test_the_count_of_calls_is_that_of_a_search_over_single_calls() -> None:
    """The exhaustive search above reasons per slot; on a small GPU every sequence of calls is tried."""
    source = random.Random(20260503)
    for layout in source.sample(model.layouts(A30), 24):
        state = model.some_state(A30, layout, source)
        for target, calls in model.shortest_paths(A30, state).items():
            assert calls == model.fewest_calls(A30, state, target)
            reach(A30, state, target)


def test_every_state_of_a_small_gpu() -> None:
    source = random.Random(20260504)
    states = [state for layout in model.layouts(A30) for state in model.states_of(A30, layout)]
    for state in source.sample(states, min(len(states), 1500)):
        reach(A30, state, source.choice(sorted(model.by_multiset(A30))))


def test_what_stands_as_declared_takes_no_call() -> None:
    for layout in model.layouts(A100):
        gpu = model.as_gpu(A100, dict.fromkeys(layout, (model.FULL,)))
        wanted = [Wanted(name, None) for name, _start in layout]
        assert _mig_plan.instance_steps(gpu, _mig_plan.resolve(gpu, model.offer(A100), wanted, "x")) == []


def test_a_geometry_is_accepted_exactly_if_it_is_feasible() -> None:
    source = random.Random(20260505)
    gpu, names = model.as_gpu(A100, {}), sorted(model.table(A100))
    for _number in range(3000):
        wanted = [source.choice(names) for _one in range(source.randint(1, 7))]
        feasible = tuple(sorted(wanted)) in model.by_multiset(A100)
        try:
            _mig_plan.check(gpu, model.offer(A100), [Wanted(name, None) for name in wanted], "geometry[0]")
        except InvalidInput as error:
            assert not feasible, str(error)
        else:
            assert feasible, wanted


def test_fixed_starts_are_kept_or_refused_exactly_as_possible() -> None:
    source = random.Random(20260506)
    gpu = model.as_gpu(A100, {})
    for _number in range(1500):
        layout = source.choice(model.layouts(A100))
        fixed = {slot for slot in layout if source.random() < 0.5}
        floating = model.multiset(layout - fixed)
        wanted = [Wanted(*slot) for slot in sorted(fixed)] + [Wanted(name, None) for name in floating]
        _mig_plan.check(gpu, model.offer(A100), wanted, "x")
        slots = _mig_plan.resolve(gpu, model.offer(A100), wanted, "x")
        assert {Slot(*slot) for slot in fixed} <= set(slots)
        assert model.multiset(slots) == model.multiset(layout)


def test_a_standing_instance_elsewhere_gives_way_to_a_fixed_start() -> None:
    gpu = model.as_gpu(A100, {("3g.40gb", 0): (model.FULL,)})
    slots = _mig_plan.resolve(gpu, model.offer(A100), [Wanted("3g.40gb", 4)], "x")
    assert [step["action"] for step in _mig_plan.instance_steps(gpu, slots)] == [
        "destroy_compute_instance", "destroy_gpu_instance", "create_gpu_instance", "create_compute_instance",
    ]  # fmt: skip


def test_an_infeasible_geometry_is_refused_with_its_arithmetic_and_the_nearest_ones() -> None:
    gpu = model.as_gpu(A100, {})
    with pytest.raises(InvalidInput) as caught:
        _mig_plan.check(gpu, model.offer(A100), [Wanted("4g.40gb", None)] * 2, "geometry[0]")
    text = str(caught.value)
    assert "0000:07:00.0" in text and "8 compute slices and the GPU has 7" in text and "4g.40gb+3g.40gb" in text


def test_an_unknown_profile_is_refused_with_those_that_exist() -> None:
    gpu = model.as_gpu(A100, {})
    with pytest.raises(InvalidInput, match=r"no MIG profile 2g\.10gb; it offers 7g\.80gb, 4g\.40gb"):
        _mig_plan.check(gpu, model.offer(A100), [Wanted("2g.10gb", None)], "geometry[0]")


def test_eight_gpus_are_planned_without_trying_everything_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is remembered by layout: eight equal GPUs ask the questions of one."""
    asked = 0
    original = _mig_layout.Offer.fits

    def counting(self: _mig_layout.Offer, slot: Slot, others: tuple[Slot, ...]) -> bool:
        nonlocal asked
        asked += 1
        return original(self, slot, others)

    monkeypatch.setattr(_mig_layout.Offer, "fits", counting)
    _mig_layout._place.cache_clear()
    counts = []
    for _gpu in range(8):
        asked = 0
        gpu = model.as_gpu(A100, {("1g.10gb", start): (model.FULL,) for start in range(7)})
        _mig_plan.resolve(gpu, model.offer(A100), [Wanted(name, None) for name in ("4g.40gb", "3g.40gb")], "x")
        counts.append(asked)
    assert counts[0] > 0
    assert counts[1:] == [0] * 7
