"""The model that `onlooker fit` makes of flags, of a file, and of the tracks themselves."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from small_runs import walk

from onlooker import Demonstrations
from onlooker.choosing.lengths import step_distances, typical_step
from onlooker.defaults import SHARING, default_prior
from onlooker.dynamics import DisplacementDynamics, GeographicDynamics, TabularDynamics
from onlooker.dynamics.features import Heading, with_features
from onlooker.fitting.building import make_prior
from onlooker.fitting.model_file import Model, read_model, with_flags
from onlooker.hyper import Exponential, LogUniform
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    ExponentialDecay,
    GaussianDecay,
    Mixing,
    Potts,
    Regions,
    ScaledAxes,
)
from onlooker.partitions.continuation import Continuation
from onlooker.problem import Landmarks

# -- the model ------------------------------------------------------------------------------------

TRACK = Demonstrations([walk(2)])
COMPASS = DisplacementDynamics.compass(8)


def flags(model=None, *, dynamics=None, prior=None):
    return with_flags(model or Model(), dynamics or {}, prior or {})


def test_flags_win_over_the_file():
    model = Model(
        dynamics={"kind": "displacement", "directions": 8, "speeds": 3},
        prior={"kind": "ddcrp", "neighbors": 9, "decay": {"kind": "gaussian", "scale": 3.0}},
    )
    both = flags(model, dynamics={"directions": 4, "sigma": None}, prior={"scale": 2.0})
    assert both.dynamics == {"kind": "displacement", "directions": 4, "speeds": 3}
    assert both.prior["neighbors"] == 9
    assert both.prior["decay"] == {"kind": "gaussian", "scale": 2.0}


def test_another_prior_leaves_the_options_of_the_first_behind():
    model = Model(prior={"kind": "ddcrp", "neighbors": 9})
    assert flags(model, prior={"kind": "crp"}).prior == {"kind": "crp"}


@pytest.mark.parametrize(
    ("model", "given", "told"),
    [
        (Model(), {"prior": {"clusters": 3}}, "--clusters does not apply to 'regions'"),
        (Model(), {"prior": {"kind": "pots"}}, "--prior must be one of .*; did you mean 'potts'?"),
        (Model(), {"prior": {"kind": "crp", "scale": 1.0}}, "--scale does not apply to 'crp'"),
        (Model(), {"dynamics": {"step": 1.0, "speeds": 2}}, "--step gives .* leave out --speeds"),
        (
            Model(dynamics={"kind": "tabular"}),
            {"dynamics": {"directions": 3}},
            "--directions does not apply to 'tabular'",
        ),
    ],
)
def test_flags_that_do_not_apply_are_refused(model, given, told):
    with pytest.raises(ValueError, match=told):
        flags(model, **given)


def test_the_default_prior_reaches_a_typical_step():
    prior = default_prior(TRACK, COMPASS)
    assert prior.self_link == Exponential(0.1)
    step = typical_step(TRACK, COMPASS)
    assert prior.decay == GaussianDecay(LogUniform(step / 2, 5 * step))
    assert 0.9 < step < 1.1
    assert prior.metric == "euclidean"


def test_distances_with_features_on_the_earth_are_chords():
    earth = GeographicDynamics.compass(4, 100.0, 10.0)
    demos, dynamics = with_features(TRACK, [Heading(1.0)], earth)
    assert default_prior(TRACK, earth).metric == "haversine"
    assert default_prior(demos, dynamics).metric == "chord"


def test_with_features_the_reach_is_no_less_than_the_spacing_of_states():
    far, dynamics = with_features(TRACK, [Heading(50.0)], COMPASS)
    apart = np.sort(cdist(far.states, far.states), axis=1)[:, 8]
    spacing = np.median(apart) / np.sqrt(8)
    assert spacing > typical_step(TRACK, COMPASS)
    assert typical_step(far, dynamics) == pytest.approx(spacing)
    near, dynamics = with_features(TRACK, [Heading(1e-6)], COMPASS)
    assert typical_step(near, dynamics) == typical_step(TRACK, COMPASS)
    half = ScaledAxes((0.5, 0.5))
    assert typical_step(TRACK, COMPASS, half) == pytest.approx(typical_step(TRACK, COMPASS) / 2)


def test_with_landmarks_the_reach_is_no_less_than_their_spacing():
    far = np.random.default_rng(0).uniform(0, 100, (2_500, 2))
    near = np.cumsum(np.full((5, 2), 1e-3), axis=0)
    demos = Demonstrations([near] * 1_300 + [far])  # most steps are short
    low = default_prior(demos, COMPASS).decay.scale.low
    landmarks = Landmarks.for_states(len(demos.distinct()[0]))
    assert typical_step(demos, COMPASS) < 0.01
    assert 2 * low == pytest.approx(typical_step(demos, COMPASS, landmarks=landmarks))
    assert 2 * low == pytest.approx(np.sqrt(100**2 / 1_253 / np.pi), rel=0.1)


def test_steps_between_states_are_counted_either_way_and_islands_are_far():
    one_way = np.zeros((4, 1, 4))
    one_way[[0, 1, 2, 3], 0, [1, 2, 2, 3]] = 1.0
    apart = step_distances(TabularDynamics(one_way))
    np.testing.assert_array_equal(apart[:3, :3], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert (apart[3, :3] > 3).all()


@pytest.mark.parametrize(
    ("prior", "made"),
    [
        ({"kind": "crp"}, ChineseRestaurant(SHARING)),
        ({"kind": "crp", "concentration": 2.0}, ChineseRestaurant(2.0)),
        ({"kind": "mixing", "clusters": 4}, Mixing(4, SHARING)),
        ({"kind": "mixing", "collapsed": False}, Mixing(10, SHARING, False)),
    ],
)
def test_priors_without_space(prior, made):
    assert make_prior(TRACK, COMPASS, Model(prior=prior)) == made


def test_a_table_says_how_regions_go_on(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text('[prior]\nkind = "regions"\ncontinuation = {sharpness = 2, alone = 0.1}\n')
    prior = make_prior(TRACK, COMPASS, read_model(path))
    assert prior.continuation == Continuation(sharpness=2, alone=0.1)
    path.write_text('[prior]\nkind = "regions"\ncontinuation = {sharp = 2}\n')
    with pytest.raises(ValueError, match=r"continuation has no key 'sharp'; did you mean"):
        read_model(path)


def test_priors_with_space_keep_what_is_not_said(tmp_path):
    step = typical_step(TRACK, COMPASS)
    said = {"kind": "ddcrp", "neighbors": 7, "decay": {"kind": "gaussian", "offset": 0.2}}
    prior = make_prior(TRACK, COMPASS, Model(prior=said))
    assert isinstance(prior, DistanceDependent)
    assert (prior.n_neighbors, prior.self_link) == (7, Exponential(0.1))
    assert prior.decay == GaussianDecay(step, 0.2)
    said = {"kind": "potts", "clusters": 3, "beta": 2.0, "decay": {"kind": "exponential"}}
    prior = make_prior(TRACK, COMPASS, Model(prior=said))
    assert isinstance(prior, Potts)
    assert (prior.n_clusters, prior.beta) == (3, 2.0)
    assert type(prior.decay) is ExponentialDecay
    assert (prior.decay.scale, prior.decay.offset) == (step, 0.0)
    prior = make_prior(TRACK, COMPASS, Model(prior={"kind": "regions", "sharing": 2.0}))
    assert isinstance(prior, Regions)
    assert (prior.sharing, prior.decay) == (2.0, default_prior(TRACK, COMPASS).decay)
