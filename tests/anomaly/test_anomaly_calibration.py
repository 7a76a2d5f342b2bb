"""P-values mean what they say: nominal trajectories are flagged as often as was agreed."""

import dataclasses

import numpy as np
import pytest
from bare import bare_problem
from scipy.stats import kstest
from small_runs import quick

from onlooker import Demonstrations
from onlooker.anomaly import TrajectoryScores, score, score_policy
from onlooker.dynamics import DisplacementDynamics, TabularDynamics
from onlooker.partitions import Uniform
from onlooker.worlds import GridWorld

COMPASS = DisplacementDynamics.compass(8, sigma=0.2)
ACCEPTED = 1e-3  # a right implementation fails one such test in a thousand


def by_half(states):
    """Left of the origin nearly anything goes; right of it, east and what is beside it."""
    erratic = np.array([0.2, 0.16, 0.12, 0.1, 0.08, 0.1, 0.1, 0.14])
    sure = np.array([0.7, 0.12, 0.01, 0.01, 0.02, 0.01, 0.01, 0.12])
    return np.where(states[:, :1] < 0, erratic, sure)


def walks(n, seed, lengths=(4, 40), start=3.0):
    """Nominal tracks from either side, of any length."""
    rng = np.random.default_rng(seed)
    n_states = rng.integers(*lengths, size=n)
    tracks = np.empty((lengths[1], n, 2))
    tracks[0] = rng.uniform(-start, start, (n, 2))
    for t in range(1, len(tracks)):
        cumulative = np.cumsum(by_half(tracks[t - 1]), axis=1)
        actions = np.minimum((cumulative < rng.random((n, 1))).sum(axis=1), 7)
        tracks[t] = COMPASS.sample(tracks[t - 1], actions, rng)
    return Demonstrations([tracks[:length, i] for i, length in enumerate(n_states)])


def score_walks(demos, seed=0, n_replicates=100):
    return score_policy(
        by_half, COMPASS, demos,
        n_replicates=n_replicates, max_replicates=n_replicates, random_state=seed,
    )  # fmt: skip


@pytest.fixture(scope="module")
def nominal():
    demos = walks(400, seed=1)
    return demos, score_walks(demos)


def uniform(p_values):
    return kstest(p_values, "uniform").pvalue


def plane_case(seed):
    return score_walks(walks(400, seed), seed)


def grid_case(seed):
    world = GridWorld(9)
    demos, _ = world.rollout(300, 25, random_state=seed)
    return score_policy(
        world.policy, world.dynamics, demos,
        n_replicates=100, max_replicates=100, random_state=seed,
    )  # fmt: skip


TAILS = ["p_value", "p_too_exact", "p_too_noisy", "p_change", "p_combined"]


@pytest.mark.parametrize("tail", TAILS)
def test_p_values_of_nominal_tracks_in_the_plane_are_uniform(nominal, tail):
    assert uniform(getattr(nominal[1].trajectories, tail)) > ACCEPTED


@pytest.fixture(scope="module")
def on_the_grid():
    return grid_case(seed=2).trajectories


@pytest.mark.parametrize("tail", TAILS)
def test_p_values_of_nominal_walks_on_a_grid_are_uniform(on_the_grid, tail):
    assert uniform(getattr(on_the_grid, tail)) > ACCEPTED


def test_p_values_of_standstills_are_never_too_small(on_the_grid):
    # few values are possible, so these p-values come in lumps: valid, not uniform
    for level in (0.01, 0.05, 0.1, 0.25):
        assert np.mean(on_the_grid.p_stopped <= level) <= level + 3 * np.sqrt(level / 300)


def test_p_values_of_steps_are_uniform(nominal):
    assert uniform(nominal[1].steps.p_value[::7]) > ACCEPTED


def too_often(flagged, level=0.05):
    """Whether more were flagged than chance explains."""
    return flagged.sum() > level * len(flagged) + 3 * np.sqrt(level * len(flagged))


FORK = np.zeros((6, 2))
"""Of six states: from 0, rarely, to 1, whence to 3 or 4 about as often; else to 2, whence rarely
to 5. How odd the first step is decides how odd the second may be."""
FORK[0], FORK[1], FORK[2], FORK[3:] = [0.1, 0.9], [0.45, 0.55], [0.05, 0.95], 0.5


def test_p_values_hold_where_a_step_decides_what_the_next_ones_may_be():
    table = np.zeros((6, 2, 6))
    for state, ends in enumerate([(1, 2), (3, 4), (5, 4), (3, 4), (3, 4), (3, 4)]):
        table[state, [0, 1], ends] = 1.0
    dynamics, rng = TabularDynamics(table), np.random.default_rng(0)
    states = [np.zeros(3000, dtype=np.int64)]
    for _ in range(2):
        actions = (rng.random(3000) > FORK[states[-1], 0]).astype(np.int64)
        states.append(dynamics.sample(states[-1], actions, rng))
    walks = np.stack(states, axis=1)
    found = score_policy(FORK, dynamics, list(walks), n_replicates=99, random_state=1)
    assert not too_often(found.trajectories.p_value <= 0.05)
    # the same second step from the same state, as if the first had not led there
    again = dynamics.sample(walks[:, 1], (rng.random(3000) > FORK[walks[:, 1], 0]) * 1, rng)
    first = np.where(rng.random(3000) < 0.1, 1, 2)
    assert too_often(reused_p_values(found, walks, first, again) <= 0.05)


def reused_p_values(found, walks, first, again):
    """Ranks among replicates from the states of the track, drawn from those of the same path."""
    excess = found.steps.action_surprise.reshape(-1, 2)
    one = {int(s): excess[walks[:, 1] == s, 0][0] for s in (1, 2)}
    two = {(int(a), int(b)): excess[(walks[:, 1] == a) & (walks[:, 2] == b), 1][0]
           for a, b in np.unique(walks[:, 1:], axis=0)}  # fmt: skip
    p_values = np.empty(len(walks))
    for middle in (1, 2):
        mine = np.flatnonzero(walks[:, 1] == middle)
        pool = np.array([one[int(f)] + two[middle, int(a)]
                         for f, a in zip(first[mine], again[mine], strict=True)])  # fmt: skip
        p_values[mine] = [np.mean(pool >= value - 1e-9) for value in excess[mine].sum(axis=1)]
    return p_values


def test_neither_long_nor_erratic_nominal_tracks_are_flagged_more_often(nominal):
    demos, found = nominal
    erratic = np.array([np.mean(track[:, 0] < 0) > 0.5 for track in demos])
    long = found.trajectories.n_steps > np.median(found.trajectories.n_steps)
    for tail in TAILS:
        flagged = getattr(found.trajectories, tail) <= 0.05
        for group in (erratic, ~erratic, long, ~long):
            assert not too_often(flagged[group]), tail


def test_surprise_without_its_expectation_flags_erratic_nominal_tracks(nominal):
    demos, found = nominal
    erratic = np.array([np.mean(track[:, 0] < 0) > 0.5 for track in demos])
    sums = np.bincount(found.steps.trajectory, found.steps.surprise)
    raw = sums / found.trajectories.n_steps
    p_value = (1 + np.array([np.sum(raw >= one) for one in raw])) / (1 + len(raw))
    assert too_often(p_value[erratic] <= 0.05)
    assert uniform(p_value[erratic]) < 1e-6


@pytest.fixture(scope="module")
def misjudged(nominal):
    """Nominal tracks, expected to be as surprising as in the other half."""
    return score_policy(
        lambda states: by_half(-states), COMPASS, nominal[0],
        n_replicates=100, max_replicates=100, random_state=0,
    )  # fmt: skip


def test_a_wrong_expectation_fails_the_test_of_uniformity(misjudged):
    assert uniform(misjudged.trajectories.p_value) < 1e-6


@pytest.mark.parametrize("by", ["score", "combined", "p_change"])
def test_conformal_p_values_hold_even_where_the_model_is_wrong(misjudged, by):
    known, new = some_of(misjudged, 0), some_of(misjudged, 1)
    p_values = new.conformal_p_values(known, by)
    for level in (0.05, 0.1, 0.25, 0.5):
        assert not too_often(p_values <= level, level)
    assert uniform(p_values) > ACCEPTED


def some_of(scores, start):
    """Every other trajectory."""
    table = {
        field.name: getattr(scores.trajectories, field.name)[start::2]
        for field in dataclasses.fields(scores.trajectories)
    }
    return dataclasses.replace(
        scores, names=scores.names[start::2], trajectories=TrajectoryScores(**table)
    )


# -- what is not known of the policy ------------------------------------------------------------

N_ACTIONS = 5
JUMPS = TabularDynamics(np.tile(np.eye(N_ACTIONS), (N_ACTIONS, 1, 1)))
"""Action j leads to state j: a step shows its action, and the posterior is Dir(α + counts)."""


def jumps(theta, length, rng):
    return rng.choice(N_ACTIONS, size=length, p=theta)


def p_values_of_unseen_policies(seed, n_runs, **options):
    """Policies from the prior, seen for 15 steps, then judged over 80 more."""
    rng = np.random.default_rng(seed)
    p_values = []
    for _ in range(n_runs):
        theta = rng.dirichlet(np.ones(N_ACTIONS))
        seen, new = jumps(theta, 16, rng), jumps(theta, 81, rng)
        problem = bare_problem([seen], JUMPS, nodes="all")
        posterior = quick(problem, Uniform(1), draws=2, tune=0, chains=1)
        found = score(
            posterior, [new], n_replicates=60, max_replicates=60, random_state=rng, **options
        )
        p_values.append(found.trajectories.p_value[0])
    return np.array(p_values)


def test_p_values_allow_for_what_is_not_known_of_the_policy():
    assert uniform(p_values_of_unseen_policies(seed=0, n_runs=120)) > ACCEPTED


def test_p_values_that_take_the_mean_policy_for_the_truth_are_not_uniform():
    p_values = p_values_of_unseen_policies(seed=0, n_runs=120, parameter_uncertainty=False)
    assert uniform(p_values) < ACCEPTED


# -- changes ------------------------------------------------------------------------------------


def changed_walks(n, seed, first=20, length=40):
    """Sure of going east, from `first` on of going north."""
    rng = np.random.default_rng(seed)
    paths = []
    for _ in range(n):
        actions = rng.choice(8, size=length, p=by_half(np.ones((1, 2)))[0])
        actions[first:] = (actions[first:] + 2) % 8
        steps = COMPASS.steps[actions] + rng.normal(0, 0.2, (length, 2))
        paths.append(np.vstack([np.zeros(2), np.cumsum(steps, axis=0)]))
    return Demonstrations(paths)


def onsets(n, seed):
    return score_policy(
        lambda states: by_half(np.ones((len(states), 2))), COMPASS, changed_walks(n, seed),
        n_replicates=100, max_replicates=100, random_state=0,
    ).trajectories  # fmt: skip


def test_the_interval_of_the_onset_covers_it_nearly_as_often_as_it_says():
    found = onsets(150, seed=3)
    assert (found.p_change <= 0.05).all()
    covered = (found.onset_low <= 20) & (found.onset_high >= 20)
    assert covered.mean() > 0.8
    assert np.median(found.onset_high - found.onset_low) <= 6
