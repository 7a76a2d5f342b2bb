"""The kernels of the consensus: against their twins, and what the search relies on."""

from __future__ import annotations

import naive_consensus as naive
import numpy as np
import pytest
from drawn_partitions import (
    LOSSES,
    Ints,
    distance,
    draw_sets,
    expected_loss,
    noisy_draws,
    restaurant_draws,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from onlooker.consensus import canonical, co_clustering, consensus, kernels
from onlooker.consensus import search as _search
from onlooker.consensus.draws import Unique, check_draws, count_pairs
from onlooker.consensus.losses import terms


@given(draw_sets, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_losses_equal_their_twins(draws: Ints, random: object) -> None:
    labels = np.array([random.randrange(4) for _ in range(draws.shape[1])])  # type: ignore[attr-defined]
    for loss in LOSSES:
        expected = naive.expected_loss(loss, labels.tolist(), draws.tolist())
        assert expected_loss(loss, labels, draws) == pytest.approx(expected, abs=1e-11)
        expected = naive.DISTANCES[loss](labels.tolist(), draws[0].tolist())
        assert distance(loss, labels, draws[0]) == pytest.approx(expected, abs=1e-11)


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
    draws: Ints, loss: str, paired: bool
) -> tuple[kernels.DrawSummary, kernels.SearchOptions]:
    rows = check_draws(draws)
    unique, n = Unique(rows), draws.shape[1]
    f = terms(loss, n)  # type: ignore[arg-type]
    options = kernels.SearchOptions(np.append(np.diff(f), 0.0) - f[1] + f[0], n, 1e-12)
    pairs = count_pairs(rows) if paired else None
    return _search.summarise(loss, pairs, unique), options  # type: ignore[arg-type]


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
    summary, options = prepared(draws, loss, paired)
    state = kernels.build(labels.copy(), width, summary, options)
    cost = np.empty(width)
    for i in range(14):
        kernels.costs(i, state, summary, options, cost)
        expected = naive.placement_costs(loss, i, labels.tolist(), draws.tolist(), width)
        np.testing.assert_allclose(cost, expected, atol=1e-11)


def slot_lists(state: kernels.SearchState) -> list[set[tuple[int, int]]]:
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
    summary, options = prepared(draws, "vi", False)
    labels = rng.integers(0, 6, 30)
    state = kernels.build(labels.copy(), width, summary, options)
    for _ in range(500):
        i, k = rng.integers(30), rng.integers(6)
        kernels.shift(i, state.labels[i], -1, state, summary, options)
        kernels.shift(i, k, 1, state, summary, options)
    fresh = kernels.build(state.labels.copy(), width, summary, options)
    np.testing.assert_array_equal(state.sizes, fresh.sizes)
    np.testing.assert_array_equal(state.counts, fresh.counts)
    np.testing.assert_array_equal(state.gain, fresh.gain)
    assert slot_lists(state) == slot_lists(fresh)
    assert (state.rows >= 0).any() == (width == 8)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_change_in_loss_that_a_visit_reports_is_the_true_one(loss: str) -> None:
    """From 3 clusters to many: the tables must grow on the way."""
    draws = restaurant_draws(11, 60, 25.0, 6)
    summary, options = prepared(draws, loss, False)
    labels = np.arange(60) % 3
    state = kernels.build(labels.copy(), 8, summary, options)
    state, moves, change = kernels.visit(np.arange(60), state, summary, options)
    before, after = (expected_loss(loss, x, draws) for x in (labels, state.labels))
    assert moves > 0
    assert state.sizes.size > 8
    assert change == pytest.approx(after - before, abs=1e-10)


@pytest.mark.parametrize(("loss", "paired"), [("vi", True), ("vi", False), ("binder", True)])
def test_no_node_that_is_passed_over_wanted_to_move(loss: str, paired: bool) -> None:
    passed = 0
    for seed in range(20):
        _, draws = noisy_draws(15, 80, 6, 0.05 + 0.02 * seed, seed)
        summary, options = prepared(draws, loss, paired)
        rng = np.random.default_rng(seed)
        state = kernels.build(draws[0].copy(), 8, summary, options)
        moves = 1
        while moves > 0:
            state, moves, _ = kernels.visit(rng.permutation(80), state, summary, options)
            cost = np.empty(state.sizes.size)
            for i in np.flatnonzero(state.slack > state.drift[0]):
                kernels.costs(i, state, summary, options, cost)
                assert kernels.choose(i, state, options, cost) == state.labels[i]
                passed += moves > 0
    assert passed > 0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_rebuilt_cluster_is_restored_unless_the_loss_falls(loss: str) -> None:
    outcomes = set()
    for seed in range(30):
        draws = restaurant_draws(6, 12, 1.0, 300 + seed)
        summary, options = prepared(draws, loss, False)
        labels = np.random.default_rng(seed).integers(0, 3, 12)
        if seed % 2:  # nothing to gain here
            labels = consensus(draws, loss, random_state=seed).labels
        state = kernels.build(labels.copy(), 16, summary, options)
        rng = np.random.default_rng(seed)
        state, better = kernels.rebuild_cluster(labels[0], state, summary, options, rng)
        before, after = (expected_loss(loss, x, draws) for x in (labels, state.labels))
        assert (after < before - 1e-12) == better
        if not better:
            np.testing.assert_array_equal(state.labels, labels)
        fresh = kernels.build(state.labels.copy(), state.sizes.size, summary, options)
        np.testing.assert_array_equal(state.gain, fresh.gain)
        assert slot_lists(state) == slot_lists(fresh)
        outcomes.add(bool(better))
    assert outcomes == {True, False}


def test_binder_by_pairs_and_by_draws_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    _, draws = noisy_draws(40, 60, 5, 0.2, 1)
    by_pairs = consensus(draws, "binder", random_state=1)
    monkeypatch.setattr(_search, "_MAX_PAIRED", 0)
    by_draws = consensus(draws, "binder", random_state=1)
    np.testing.assert_array_equal(by_pairs.labels, by_draws.labels)
