"""Intervals of the policy in worlds drawn from each prior, by distance to the data."""

import numpy as np
import pytest
from policy_coverage import (
    AT_NODES,
    BINS,
    LEVEL,
    PRIORS,
    REGIONS,
    covered,
    draw_world,
    fit,
    gather,
    join,
    look,
)


@pytest.mark.slow
def test_intervals_cover_near_and_far():
    found = gather(range(24), transductive=True)
    for k in range(AT_NODES, len(BINS) - 1):
        here = found.bin == k
        assert 0.87 <= found.all[here].mean() <= 0.95
        assert 0.82 <= found.top[here].mean() <= 0.97
    assert found.width[found.bin == 4].mean() > found.width[found.bin == 0].mean()
    unseen = found.bin != AT_NODES
    assert found.score[unseen].mean() > found.transductive[unseen].mean() - 0.02


def covers(found):
    """Whether shares are near the level; bounds are what 999 of 1,000 sets of 12 worlds obey."""
    for k in range(AT_NODES, len(BINS) - 1):
        here = found.bin == k
        assert found.all[here].mean() > 0.71
        assert found.top[here].mean() > 0.5
    assert 0.77 < found.all[found.bin != AT_NODES].mean() < 0.98


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "collapsed"),
    [
        ("static", True),
        ("uniform", False),
        ("mixing", True),
        ("mixing, weights drawn", False),
        ("crp", True),
    ],
)
def test_intervals_of_priors_that_ignore_location_cover(name, collapsed):
    covers(gather(range(16), prior=PRIORS[name], draws=200, collapsed=collapsed))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "collapsed"), [("potts", False), ("ddcrp", True)])
def test_the_default_of_spatial_priors_covers_and_predicts_better_than_the_others(name, collapsed):
    """Why `map` and `local`, which neglect a part of the conditional, are not the default."""
    prior, strategies = PRIORS[name], ("average", "local", "map")
    parts = {strategy: [] for strategy in (None, *strategies)}
    for seed in range(16):
        world = draw_world(seed, prior)
        posterior = fit(world.nodes, world, prior, 200, seed, collapsed)
        for strategy, found in parts.items():
            found.append(look(world, posterior, seed, extrapolate=strategy))
    found = {strategy: join(some) for strategy, some in parts.items()}
    covers(found[None])
    unseen, far = found[None].bin != AT_NODES, found[None].bin >= 2
    average, local, likeliest = (found[strategy] for strategy in strategies)
    np.testing.assert_array_equal(found[None].score, average.score)
    assert average.all[far].mean() > local.all[far].mean() + 0.05
    assert average.all[far].mean() > likeliest.all[far].mean() + 0.1
    assert average.score[unseen].mean() > local.score[unseen].mean() + 0.03
    assert local.score[unseen].mean() > likeliest.score[unseen].mean()


def test_intervals_cover_in_a_few_worlds():
    found = gather(range(30, 33), draws=150)
    assert found.all.mean() > 0.85
    assert found.top.mean() > 0.8


def test_quantiles_of_mixed_policies_would_not():
    """What this rule replaced: the spread of conditional means, draw by draw."""
    inside = []
    for seed in range(30, 33):
        world = draw_world(seed)
        posterior = fit(world.nodes, world, REGIONS, 150, seed)
        every = np.arange(posterior.n_chains * posterior.n_draws)
        mixed = np.array(list(posterior.predictor.each(world.unseen, every)))
        low, high = np.quantile(mixed, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        truth = world.policy[len(world.nodes) :]
        inside.append((low <= truth) & (truth <= high))
    assert np.mean(inside) < 0.75


def test_covered_is_about_nodes_and_unseen_states():
    found = covered(30, draws=20)
    world = draw_world(30)
    assert len(found.bin) == len(world.nodes) + len(world.unseen)
    assert set(found.bin) <= set(range(AT_NODES, len(BINS) - 1))
