from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from onlooker import Demonstrations
from onlooker.baselines import MaximumMarginIRL
from onlooker.baselines.base import discounted_visits, starts_by_length
from onlooker.baselines.maximum_margin import _hull_weights, _visits
from onlooker.dynamics import TabularDynamics
from onlooker.planning import state_visitation
from onlooker.planning.transitions import as_transitions
from onlooker.worlds import GridWorld

ignore_short_fits = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
WORLD = GridWorld.with_reward(4, size=6, n_actions=4, sigma=0.5, chance=0.1)
DEMOS = WORLD.rollout(300, 8, random_state=0)[0]


def corridor(n: int) -> TabularDynamics:
    """Action 0 goes right, action 1 left; the ends hold."""
    right, left = np.minimum(np.arange(n) + 1, n - 1), np.maximum(np.arange(n) - 1, 0)
    return TabularDynamics(np.stack([np.eye(n)[right], np.eye(n)[left]], axis=1))


@pytest.mark.parametrize("method", ["projection", "qp"])
@pytest.mark.parametrize("select", ["best", "mixture", "last"])
def test_an_expert_that_goes_right_is_followed(method, select):
    demos = [np.minimum(np.arange(start, start + 8), 5) for start in range(5)]
    model = MaximumMarginIRL(corridor(6), method=method, select=select).fit(demos)
    np.testing.assert_array_equal(model.predict(np.arange(5)), 0)
    assert model.convergence_.converged
    assert model.convergence_.residual < 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_hull_weights_solve_the_quadratic_programme(seed):
    rng = np.random.default_rng(seed)
    counts, expert = rng.normal(size=(6, 4)), 0.5 * rng.normal(size=4)
    weights = _hull_weights(expert, counts)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0).all()
    reference = minimize(
        lambda w: np.sum((w @ counts - expert) ** 2),
        np.full(6, 1 / 6),
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    found = np.sum((weights @ counts - expert) ** 2)
    assert found == pytest.approx(reference.fun, abs=1e-7)


def test_visits_are_cut_off_as_the_trajectories_are():
    T = as_transitions(WORLD.dynamics)
    demos = Demonstrations([[0, 1, 2], [5, 4], [7, 7, 7]])
    policy = WORLD.policy()
    starts = np.eye(36)
    want = np.mean(
        [
            state_visitation(T, policy, starts[s], 0.8, horizon=length)
            for s, length in ((0, 3), (5, 2), (7, 3))
        ],
        axis=0,
    )
    got = _visits(T, policy, starts_by_length(demos, 36), 0.8)
    np.testing.assert_allclose(got, want)
    assert got.sum() == pytest.approx(discounted_visits(demos, 36, 0.8).sum())


def test_seen_visits_are_discounted_from_each_start():
    demos = Demonstrations([[0, 1, 1], [2, 0]])
    np.testing.assert_allclose(discounted_visits(demos, 3, 0.5), [0.75, 0.375, 0.5])


@ignore_short_fits
def test_the_programme_comes_at_least_as_near_as_the_projection():
    margins = {
        method: [
            MaximumMarginIRL(WORLD.dynamics, method=method, max_iter=n).fit(DEMOS).convergence_
            for n in (2, 5, 10)
        ]
        for method in ("projection", "qp")
    }
    for projection, programme in zip(margins["projection"], margins["qp"], strict=True):
        assert programme.residual <= projection.residual + 1e-9
    for reports in margins.values():
        residuals = [report.residual for report in reports]
        assert residuals == sorted(residuals, reverse=True)


@ignore_short_fits
def test_the_mixture_is_nearer_than_its_best_member():
    model = MaximumMarginIRL(WORLD.dynamics).fit(DEMOS)
    assert model.mixture_.sum() == pytest.approx(1.0)
    T = as_transitions(WORLD.dynamics)
    starts = starts_by_length(DEMOS, 36)
    counts = np.array([_visits(T, policy, starts, 0.9) for policy in model.policies_])
    expert = discounted_visits(DEMOS, 36, 0.9)
    np.testing.assert_allclose(model.distances_, np.linalg.norm(counts - expert, axis=1))
    assert np.linalg.norm(model.mixture_ @ counts - expert) <= model.distances_.min() + 1e-9


@ignore_short_fits
def test_selection_picks_from_the_policies_found():
    fits = {
        select: MaximumMarginIRL(WORLD.dynamics, select=select).fit(DEMOS)
        for select in ("best", "last", "mixture")
    }
    best = fits["best"]
    np.testing.assert_array_equal(best.policy_, best.policies_[best.distances_.argmin()])
    np.testing.assert_array_equal(fits["last"].policy_, best.policies_[-1])
    np.testing.assert_allclose(fits["mixture"].policy_.sum(axis=1), 1.0)
    assert np.mean((fits["mixture"].policy_ > 0) & (fits["mixture"].policy_ < 1)) > 0


@ignore_short_fits
def test_a_constant_feature_changes_nothing():
    features = np.column_stack([np.eye(36), np.ones(36)])
    plain = MaximumMarginIRL(WORLD.dynamics).fit(DEMOS)
    more = MaximumMarginIRL(WORLD.dynamics, features).fit(DEMOS)
    np.testing.assert_array_equal(more.policy_, plain.policy_)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="method must be one of 'projection', 'qp'"):
        MaximumMarginIRL(WORLD.dynamics, method="lp").fit(DEMOS)
    with pytest.raises(ValueError, match="select must be one of"):
        MaximumMarginIRL(WORLD.dynamics, select="first").fit(DEMOS)
    with pytest.raises(ValueError, match="random policy already matches"):
        MaximumMarginIRL(WORLD.dynamics, tolerance=100.0).fit(DEMOS)
