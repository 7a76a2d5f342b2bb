"""The kernels of the consensus: against their twins, and what the search relies on."""

from __future__ import annotations

import naive_consensus as naive
import numpy as np
import pytest
from drawn_partitions import (
    DISTANCE,
    EXPECTED,
    LOSSES,
    Ints,
    draw_sets,
    noisy_draws,
    restaurant_draws,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from onlooker import consensus as module
from onlooker.consensus import canonical, co_clustering, consensus, kernels
from onlooker.consensus.draws import Unique, check_draws, count_pairs, terms
from onlooker.consensus.search import make_evidence


@given(draw_sets, st.floats(0.1, 1.9), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_losses_equal_their_twins(draws: Ints, a: float, random: object) -> None:
    labels = np.array([random.randrange(4) for _ in range(draws.shape[1])])  # type: ignore[attr-defined]
    for loss in LOSSES:
        expected = naive.expected_loss(loss, labels.tolist(), draws.tolist(), a)
        assert EXPECTED[loss](labels, draws, a=a) == pytest.approx(expected, abs=1e-11)
        distance = naive.DISTANCES[loss](labels.tolist(), draws[0].tolist())
        assert DISTANCE[loss](labels, draws[0]) == pytest.approx(distance, abs=1e-11)


@given(draw_sets)
@settings(max_examples=60, deadline=None)
def test_co_clustering_canonical_and_membership_equal_their_twins(draws: Ints) -> None:
    np.testing.assert_array_equal(co_clustering(draws), naive.co_clustering(draws.tolist()))
    np.testing.assert_array_equal(
        canonical(draws), [naive.canonical(row) for row in draws.tolist()]
    )
    found = consensus(draws, restarts=4, random_state=0)
    expected = naive.membership(found.labels.tolist(), draws.tolist())
    np.testing.assert_allclose(found.membership, expected, atol=1e-12)


def test_co_clustering_is_right_across_blocks_and_beyond_256_clusters() -> None:
    draws = np.random.default_rng(0).integers(0, 280, (9, 300))
    draws[0] = np.arange(300)
    expected = (draws[:, :, None] == draws[:, None, :]).mean(axis=0)
    np.testing.assert_allclose(co_clustering(draws), expected, atol=1e-15)
    single = co_clustering(draws, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-6)


def prepared(
    draws: Ints, loss: str, a: float, paired: bool
) -> tuple[kernels.Evidence, kernels.Rules]:
    rows = check_draws(draws)
    unique, n = Unique(rows), draws.shape[1]
    f = terms(loss, n)  # type: ignore[arg-type]
    rules = kernels.Rules(np.append(np.diff(f), 0.0) - f[1] + f[0], 2.0 - a, n, 1e-12)
    pairs = count_pairs(rows) if paired else None
    return make_evidence(loss, pairs, unique), rules  # type: ignore[arg-type]


@pytest.mark.parametrize(("loss", "paired"), [("vi", False), ("binder", False), ("binder", True)])
@pytest.mark.parametrize("width", [8, 16, 40])
def test_the_cost_of_a_move_is_the_difference_of_expected_losses(
    loss: str, paired: bool, width: int
) -> None:
    """Width 8 keeps the larger clusters in tables and the smaller in slots, 40 all in slots."""
    rng = np.random.default_rng(width)
    draws = restaurant_draws(7, 14, 1.5, 3)
    draws[5] = draws[2]  # a draw that counts twice
    labels = rng.integers(0, 5, 14)
    evidence, rules = prepared(draws, loss, 0.7, paired)
    state = kernels.build(labels.copy(), width, evidence, rules)
    cost = np.empty(width)
    for i in range(14):
        kernels.costs(i, state, evidence, rules, cost)
        expected = naive.placement_costs(loss, i, labels.tolist(), draws.tolist(), width, 0.7)
        np.testing.assert_allclose(cost, expected, atol=1e-11)


def slot_lists(state: kernels.State) -> list[set[tuple[int, int]]]:
    """The slots of each (node, draw) as a set: their order is of no consequence."""
    out = []
    for r in state.rows.ravel():
        found, at = set(), -1 - int(r)
        while r < 0 and state.slots[at, 1] > 0:
            found.add((int(state.slots[at, 0]), int(state.slots[at, 1])))
            at += 1
        out.append(found)
    return out


@pytest.mark.parametrize("width", [8, 64])
def test_many_moves_leave_the_tables_that_a_fresh_build_gives(width: int) -> None:
    rng = np.random.default_rng(5)
    draws = restaurant_draws(9, 30, 2.0, 4)
    evidence, rules = prepared(draws, "vi", 1.0, False)
    labels = rng.integers(0, 6, 30)
    state = kernels.build(labels.copy(), width, evidence, rules)
    for _ in range(500):
        i, k = rng.integers(30), rng.integers(6)
        kernels.shift(i, state.labels[i], -1, state, evidence, rules)
        kernels.shift(i, k, 1, state, evidence, rules)
    fresh = kernels.build(state.labels.copy(), width, evidence, rules)
    np.testing.assert_array_equal(state.sizes, fresh.sizes)
    np.testing.assert_array_equal(state.counts, fresh.counts)
    np.testing.assert_array_equal(state.gain, fresh.gain)
    assert slot_lists(state) == slot_lists(fresh)
    assert (state.rows >= 0).any() == (width == 8)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_change_in_loss_that_a_visit_reports_is_the_true_one(loss: str) -> None:
    """From 3 clusters to many: the tables must grow on the way."""
    draws = restaurant_draws(11, 60, 25.0, 6)
    evidence, rules = prepared(draws, loss, 0.4, False)
    labels = np.arange(60) % 3
    state = kernels.build(labels.copy(), 8, evidence, rules)
    state, moves, change = kernels.visit(np.arange(60), state, evidence, rules)
    expected = EXPECTED[loss]
    after = expected(state.labels, draws, a=0.4)
    assert moves > 0
    assert state.sizes.size > 8
    assert change == pytest.approx(after - expected(labels, draws, a=0.4), abs=1e-10)


@pytest.mark.parametrize(("loss", "paired"), [("vi", True), ("vi", False), ("binder", True)])
def test_no_node_that_is_passed_over_wanted_to_move(loss: str, paired: bool) -> None:
    passed = 0
    for seed in range(20):
        _, draws = noisy_draws(15, 80, 6, 0.05 + 0.02 * seed, seed)
        evidence, rules = prepared(draws, loss, 1.0, paired)
        rng = np.random.default_rng(seed)
        state = kernels.build(draws[0].copy(), 8, evidence, rules)
        moves = 1
        while moves > 0:
            state, moves, _ = kernels.visit(rng.permutation(80), state, evidence, rules)
            cost = np.empty(state.sizes.size)
            for i in np.flatnonzero(state.slack > state.drift[0]):
                kernels.costs(i, state, evidence, rules, cost)
                assert kernels.choose(i, state, rules, cost) == state.labels[i]
                passed += moves > 0
    assert passed > 0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_dissolved_cluster_is_restored_unless_the_loss_falls(loss: str) -> None:
    outcomes = set()
    for seed in range(30):
        draws = restaurant_draws(6, 12, 1.0, 300 + seed)
        evidence, rules = prepared(draws, loss, 1.0, False)
        labels = np.random.default_rng(seed).integers(0, 3, 12)
        if seed % 2:  # nothing to gain here
            labels = consensus(draws, loss, random_state=seed).labels
        state = kernels.build(labels.copy(), 16, evidence, rules)
        rng = np.random.default_rng(seed)
        state, better = kernels.dissolve(labels[0], state, evidence, rules, rng)
        before, after = EXPECTED[loss](np.array([labels, state.labels]), draws)
        assert (after < before - 1e-12) == better
        if not better:
            np.testing.assert_array_equal(state.labels, labels)
        fresh = kernels.build(state.labels.copy(), state.sizes.size, evidence, rules)
        np.testing.assert_array_equal(state.gain, fresh.gain)
        assert slot_lists(state) == slot_lists(fresh)
        outcomes.add(bool(better))
    assert outcomes == {True, False}


def test_binder_by_pairs_and_by_draws_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    _, draws = noisy_draws(40, 60, 5, 0.2, 1)
    by_pairs = consensus(draws, "binder", random_state=1)
    monkeypatch.setattr(module, "_MOST_PAIRED", 0)
    by_draws = consensus(draws, "binder", random_state=1)
    np.testing.assert_array_equal(by_pairs.labels, by_draws.labels)
