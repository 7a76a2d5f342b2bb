"""What deviating trajectories do instead of the nominal behaviour."""

from dataclasses import replace

import numpy as np
import pytest

from onlooker import Demonstrations
from onlooker.anomaly import score_policy
from onlooker.anomaly.explaining import explained
from onlooker.dynamics import DisplacementDynamics
from onlooker.repertoire.making import make_policies

COMPASS = DisplacementDynamics.compass(8, sigma=0.1)
PLACE = np.array([2.0, 3.0])


def walk(choose, start, length, seed):
    rng, states = np.random.default_rng(seed), [np.asarray(start, dtype=float)]
    for _ in range(length):
        states.append(COMPASS.sample(states[-1:], [choose(states[-1], rng)], rng)[0])
    return np.array(states)


def east(state, rng):
    return int(rng.integers(-1, 2)) % 8


def to_the_place(state, rng):
    return int(((PLACE - state) @ COMPASS.steps.T).argmax())


def judge(tracks):
    policy = np.array([1, 1, 0, 0, 0, 0, 0, 1]) / 3
    return score_policy(
        lambda states: np.tile(policy, (len(states), 1)), COMPASS, tracks,
        reference=[walk(east, [0.0, 0.0], 25, 100 + k) for k in range(30)], random_state=0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def scores():
    changing = walk(east, [0.0, 0.0], 25, 3)
    changing = np.concatenate([changing, walk(to_the_place, changing[-1], 40, 4)[1:]])
    return judge([walk(east, [0.0, 0.0], 25, 1), walk(to_the_place, [-4.0, -3.0], 25, 2), changing])


def test_a_track_that_heads_elsewhere_is_said_to(scores):
    for k in (1, 2):
        name = str(scores.trajectories.behaviour[k])
        assert name.startswith("heads for (")
        place = [float(x.replace("−", "-")) for x in name[len("heads for (") : -1].split(",")]
        assert np.abs(place - PLACE).max() < 1.0
        assert scores.trajectories.gain[k] > 10


def test_a_nominal_track_needs_no_other_behaviour(scores):
    assert scores.trajectories.behaviour[0] == ""
    assert np.isnan(scores.trajectories.gain[0])


def test_nor_does_one_that_is_odd_in_one_respect_of_five():
    track = walk(to_the_place, [-4.0, -3.0], 25, 2)
    scores = judge([track])
    nothing = {"behaviour": np.array([""]), "gain": np.array([np.nan])}
    for combined, told in ((0.04, True), (0.2, False)):
        table = replace(scores.trajectories, p_combined=np.array([combined]), **nothing)
        found = explained(replace(scores, trajectories=table), Demonstrations([track]), COMPASS)
        assert bool(found.trajectories.behaviour[0]) == told


def test_tables_and_dictionaries_have_it(scores):
    ranking = scores.ranking(by="p_combined")
    assert {"behaviour", "gain"} <= set(ranking.columns)
    assert scores.to_dict()["trajectories"]["behaviour"][0] == ""
    assert len(scores.joined(scores).trajectories.behaviour) == 6


def test_the_gain_is_that_of_the_steps(scores):
    track = walk(to_the_place, [-4.0, -3.0], 25, 2)
    alone = judge([track])
    demos = Demonstrations([track])
    policies = make_policies("auto", COMPASS, demos)
    states, next_states = demos.transitions()
    rows = slice(None)
    if alone.trajectories.p_change[0] <= 0.05:
        rows = slice(alone.trajectories.onset[0], alone.trajectories.end[0] + 1)
    states, next_states = states[rows], next_states[rows]
    likelihood = np.exp(COMPASS.log_likelihood(states, next_states))
    nominal = np.exp(-alone.steps.surprise[rows])
    best = -np.inf
    for b in range(policies.n_behaviours):
        doing = (policies(states)[:, b] * likelihood).sum(axis=1)
        mixed = [0.95 * q + 0.05 * likelihood.mean(axis=1) for q in (doing, nominal)]
        best = max(best, float((np.log(mixed[0]) - np.log(mixed[1])).sum()))
    assert alone.trajectories.gain[0] == pytest.approx(best)
