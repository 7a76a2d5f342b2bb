"""Intervals of the policy in worlds drawn from the prior of regions, by distance to the data."""

import numpy as np
import pytest
from policy_coverage import BINS, LEVEL, covered, draw_world, fit, gather

SEEDS = range(24)


@pytest.mark.slow
def test_intervals_cover_near_and_far():
    found = gather(SEEDS, transductive=True)
    for k in range(len(BINS) - 1):
        here = found.bin == k
        assert 0.87 <= found.all[here].mean() <= 0.95
        assert 0.82 <= found.top[here].mean() <= 0.97
    assert found.width[found.bin == 4].mean() > found.width[found.bin == 0].mean()
    assert found.score.mean() > found.transductive.mean() - 0.02


def test_intervals_cover_in_a_few_worlds():
    found = gather(range(30, 33), draws=150)
    assert found.all.mean() > 0.85
    assert found.top.mean() > 0.8


def test_quantiles_of_mixed_policies_would_not():
    """What this rule replaced: the spread of conditional means, draw by draw."""
    inside = []
    for seed in range(30, 33):
        world = draw_world(seed)
        posterior = fit(world.nodes, world, 150, seed)
        every = np.arange(posterior.n_chains * posterior.n_draws)
        mixed = np.array(list(posterior.predictor.each(world.unseen, every)))
        low, high = np.quantile(mixed, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        inside.append((low <= world.policy) & (world.policy <= high))
    assert np.mean(inside) < 0.75


def test_covered_is_about_unseen_states():
    found = covered(30, draws=20)
    assert len(found.bin) == len(draw_world(30).unseen)
    assert set(found.bin) <= set(range(len(BINS) - 1))
