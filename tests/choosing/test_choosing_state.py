"""What joins the position in the state, and the scales, are chosen by left-out trajectories."""

import numpy as np
import pytest

from onlooker import Demonstrations
from onlooker.choosing import features
from onlooker.choosing.features import choose_state
from onlooker.choosing.left_out import Gain, gain_by_track, known_folds, make_folds
from onlooker.choosing.noise import fit_of_noise
from onlooker.choosing.trials import QUICK, make_trials
from onlooker.dynamics import DisplacementDynamics, GeographicDynamics, TabularDynamics
from onlooker.dynamics.features import Heading, Speed
from onlooker.hyper import Gamma
from onlooker.reading.tracks import Tracks
from onlooker.repertoire.base import World
from onlooker.worlds import CircularMotion


def along(angles, length=1.0):
    """Tracks from the origin, by the direction of every step."""
    steps = length * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    start = np.zeros((len(angles), 1, 2))
    return Demonstrations(list(np.concatenate([start, np.cumsum(steps, axis=1)], axis=1)))


def correlated_walks(rng, n=9, length=12):
    turns = rng.vonmises(0.0, 2.0, (n, length))
    return along(rng.uniform(-np.pi, np.pi, (n, 1)) + np.cumsum(turns, axis=1))


def by_strips(rng, n=10, length=60):
    """East, west of 0, and west, east of it, with noise; the other coordinate says nothing."""
    tracks = []
    for _ in range(n):
        here = np.array([rng.normal(0, 3.0), rng.normal(0, 3.0)])
        track = [here]
        for _ in range(length):
            east = np.sin(here[0]) > 0
            move = (
                [1.0 if east else -1.0, 0.0] if rng.random() < 0.9 else [0.0, rng.choice([-1, 1])]
            )
            here = here + move + rng.normal(0, 0.1, 2)
            track.append(here)
        tracks.append(np.array(track))
    return Demonstrations(tracks)


@pytest.fixture
def short_chains_not_asked(monkeypatch):
    """The local predictor alone decides."""

    def gain_over(space, other):
        return space.tracks.folds.gain(space.best, other.best)

    monkeypatch.setattr(features._Space, "gain_over", gain_over)


def test_correlated_walks_have_the_heading_in_their_state():
    demos = correlated_walks(np.random.default_rng(0))
    choice = choose_state(demos, DisplacementDynamics.compass(16, 1.0, 0.2))
    assert choice.names[:1] == ("heading",)
    assert isinstance(choice.features[0], Heading)
    assert choice.gains["heading",].mean > 0.2


def test_a_memoryless_agent_has_not_though_the_local_predictor_would_have_it():
    world = CircularMotion()
    demos, _ = world.rollout(8, 60, random_state=0)
    choice = choose_state(demos, world.dynamics)
    assert choice.names == ()
    assert choice.gains["heading",].mean < 0
    assert choice.local.counts


def test_without_short_chains_it_would_have(short_chains_not_asked):
    """The control: what the test above is about happens."""
    world = CircularMotion()
    demos, _ = world.rollout(8, 60, random_state=0)
    assert choose_state(demos, world.dynamics).names != ()


def test_steps_that_are_drawn_at_random_leave_the_position_alone():
    rng = np.random.default_rng(1)
    demos = along(rng.uniform(-np.pi, np.pi, (15, 20)))
    choice = choose_state(demos, DisplacementDynamics.compass(16, 1.0, 0.2))
    assert (choice.features, choice.metric) == ([], None)
    assert not choice.local.counts  # one policy for all states is as good


def test_an_idle_coordinate_is_scaled_down():
    demos = by_strips(np.random.default_rng(2))
    choice = choose_state(demos, DisplacementDynamics.compass(4, 1.0, 0.15), ())
    assert choice.metric.factors[0] == 1.0
    assert choice.metric.factors[1] <= 0.5
    assert choice.local.mean > 0.2


def test_units_do_not_matter(short_chains_not_asked):
    demos = correlated_walks(np.random.default_rng(3))
    names = ["heading", "speed"]
    one = choose_state(demos, DisplacementDynamics.compass(16, 1.0, 0.2), names)
    far = Demonstrations([1024 * track for track in demos])
    other = choose_state(far, DisplacementDynamics.compass(16, 1024.0, 204.8), names)
    assert other.names == one.names == ("heading", "speed")
    for large, small in zip(other.features, one.features, strict=True):
        assert large.weight == pytest.approx(1024 * small.weight, rel=1e-3)
    assert other.features[1].unit == pytest.approx(1024 * one.features[1].unit, rel=1e-3)
    for joined, gain in one.gains.items():
        assert other.gains[joined] == pytest.approx(gain, abs=1e-6)


def test_what_is_fixed_is_kept_and_what_it_costs_is_known(short_chains_not_asked):
    demos = correlated_walks(np.random.default_rng(4))
    dynamics = DisplacementDynamics.compass(16, 1.0, 0.2)
    without = choose_state(demos, dynamics, ())
    assert without.names == ()
    assert without.gains["heading",].counts
    both = choose_state(demos, dynamics, ("heading", "speed"))
    assert [type(feature) for feature in both.features] == [Heading, Speed]
    with pytest.raises(ValueError, match="names must be one of"):
        choose_state(demos, dynamics, ("speed",))


def test_the_same_seed_chooses_the_same(short_chains_not_asked):
    demos = correlated_walks(np.random.default_rng(5))
    dynamics = DisplacementDynamics.compass(8, 1.0, 0.3)
    assert choose_state(demos, dynamics) == choose_state(demos, dynamics)
    assert choose_state(demos, dynamics) != choose_state(demos, dynamics, random_state=1)


def test_places_on_the_earth_are_one_group():
    earth = GeographicDynamics.compass(8, 100.0, 20.0)
    rng = np.random.default_rng(6)
    start = np.array([[10.0, 60.0]])
    tracks = []
    for _ in range(6):
        states = [start]
        for _ in range(10):
            states.append(earth.sample(states[-1], rng.integers(8, size=1), rng))
        tracks.append(np.concatenate(states))
    choice = choose_state(Demonstrations(tracks), earth, ("heading",))
    assert choice.metric is None
    assert choice.names == ("heading",)


@pytest.mark.parametrize(
    ("demos", "dynamics"),
    [
        ([np.arange(40) % 3], TabularDynamics(np.full((3, 2, 3), 1 / 3))),
        ([np.zeros((5, 2)) + np.arange(5)[:, None]], DisplacementDynamics.compass(4)),
        (
            [np.cumsum(np.ones((50, 2)), axis=0)],
            DisplacementDynamics.compass(4, sigma=Gamma(1.0, 1.0)),
        ),
    ],
)
def test_where_nothing_can_be_told_nothing_is(demos, dynamics):
    assert choose_state(Demonstrations(demos), dynamics) is None
    assert fit_of_noise(Demonstrations(demos), dynamics) is None


def test_unseen_states_and_impossible_steps_tell_nothing():
    track = np.cumsum(np.ones((50, 2)), axis=0)
    track[[20, 30]] += 1e6
    compass = DisplacementDynamics.compass(4, 1.0, 1e-200)
    assert known_folds(Demonstrations([track]), compass, 0) is None
    track[7] = np.nan
    gappy = Demonstrations([track], missing="infer")
    assert choose_state(gappy, DisplacementDynamics.compass(4)) is None


# -- what is left out ------------------------------------------------------------------------------


def local_twin(places, train, test, loglik, base):
    """The predictor of the module's first lines, step by step."""
    likelihood = np.exp(loglik)
    shares = np.array(base)
    for _ in range(20):
        total = np.array(base)
        for t in train:
            total += shares * likelihood[t] / (shares * likelihood[t]).sum()
        shares = total / (len(train) + 1)
    scores = []
    for s in test:
        apart = np.array([np.linalg.norm(places[s] - places[t]) for t in train])
        order = np.argsort(apart)[:32]
        eighth = apart[order[7]]
        theta = shares.copy()
        for t in order:
            own = shares * likelihood[train[t]]
            theta += np.exp(-((apart[t] / eighth) ** 2)) * own / own.sum()
        scores.append(np.log(theta @ likelihood[s] / theta.sum()))
    return np.array(scores)


def test_the_local_predictor_is_its_twin():
    demos = correlated_walks(np.random.default_rng(7), n=6, length=12)
    dynamics = DisplacementDynamics.compass(5, 1.0, 0.4)
    folds = make_folds(demos, np.random.default_rng(0))
    tracks = features._Tracks(demos, dynamics, folds, make_trials(demos, np.random.default_rng(0)))
    space = features._space(tracks, ())
    before, after = demos.transitions()
    kinds = [kind.build(World(dynamics, demos)) for kind in QUICK]
    parts = [part for made in kinds for part in made]
    policies = np.concatenate([part.block.policies(before[:1])[0] for part in parts])
    loglik = np.log(np.exp(dynamics.log_likelihood(before, after)) @ policies.T)
    base = np.concatenate([np.full(p.block.n, 1 / p.block.n) for p in parts]) / len(parts)
    expected = [local_twin(before, *pair, loglik, base) for pair in folds.pairs]
    np.testing.assert_allclose(space.score, np.concatenate(expected), atol=1e-5)


@pytest.mark.parametrize("names", [(), ("heading",), ("heading", "speed")])
def test_coordinates_are_measured_by_their_spread_and_features_as_they_are(names):
    demos = correlated_walks(np.random.default_rng(7), n=6, length=12)
    folds = make_folds(demos, np.random.default_rng(0))
    trials = make_trials(demos, np.random.default_rng(0))
    dynamics = DisplacementDynamics.compass(5, 1.0, 0.4)
    space = features._space(features._Tracks(demos, dynamics, folds, trials), names)
    before = demos.transitions()[0][folds.kept]
    spread = np.sqrt(before.var(axis=0).sum() / 2)
    np.testing.assert_allclose(space.units, [spread, spread, *[1.0] * len(names)])
    for axis in range(2):
        np.testing.assert_array_equal(space.groups[axis][:, 0], before[:, axis])
    assert [group.shape[1] for group in space.groups[2:]] == [2, 1][: len(names)]


@pytest.mark.parametrize("n", [3, 7])
def test_trajectories_are_left_out_whole_or_in_pieces_where_they_are_few(n):
    tracks = [np.cumsum(np.ones((40 + k, 2)), axis=0) for k in range(n)]
    demos = Demonstrations(tracks)
    folds = make_folds(demos, np.random.default_rng(0))
    for train, test in folds.pairs:
        assert not set(folds.track[train]) & set(folds.track[test])
    whole = np.array_equal(folds.track, demos.trajectory_of())
    assert whole == (n == 7)
    assert len(set(folds.track.tolist())) >= 5
    trials = make_trials(demos, np.random.default_rng(0))
    covered = sorted(i for start, stop in trials.pieces for i in range(start, stop - 1))
    assert covered == demos.transition_starts().tolist()
    for k in range(3):
        left, kept = trials.track[trials.fold == k], trials.track[trials.fold != k]
        assert not set(left) & set(kept)


def test_pieces_of_a_trajectory_that_share_its_name_stay_together():
    tracks = [np.cumsum(np.ones((10, 2)), axis=0)] * 12
    demos = Demonstrations(tracks)
    names = np.repeat([f"fox {k}" for k in range(6)], 2)
    named = Demonstrations.from_tracks(Tracks(demos.states, demos.offsets, names))
    folds = make_folds(named, np.random.default_rng(0))
    for track in range(6):
        assert (
            len({k for k, (_, test) in enumerate(folds.pairs) if track in folds.track[test]}) == 1
        )


def test_of_many_steps_some_are_looked_at():
    demos = Demonstrations([np.cumsum(np.ones((401, 2)), axis=0) for _ in range(60)])
    folds = make_folds(demos, np.random.default_rng(0))
    assert len(folds.kept) == 10_000
    assert sum(len(test) for _, test in folds.pairs) == 2_000
    trials = make_trials(demos, np.random.default_rng(0))
    assert 2_000 <= sum(stop - start - 1 for start, stop in trials.pieces) < 2_200


def test_the_error_of_a_gain_is_by_trajectory():
    rng = np.random.default_rng(8)
    by_track = rng.normal(0.1, 1.0, 9)
    track = np.repeat(np.arange(9), 5)
    gain = gain_by_track(track, by_track[track])
    assert gain.mean == pytest.approx(by_track.mean())
    assert gain.error == pytest.approx(by_track.std(ddof=1) / 3)
    assert gain_by_track(np.zeros(4, dtype=int), np.ones(4)) == Gain(1.0, np.inf)
    assert Gain(0.2, 0.1).counts
    assert not Gain(0.1, 0.1).counts


# -- noise -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "factor"), [(0.2, 1.0), (0.05, 4.0), (0.8, 0.25)])
def test_noise_that_does_not_fit_is_found(sigma, factor):
    demos, _ = CircularMotion().rollout(6, 40, random_state=1)
    found = fit_of_noise(demos, DisplacementDynamics.compass(24, 1.0, sigma))
    assert found.factor == factor
    assert found.gain.counts == (factor != 1)
