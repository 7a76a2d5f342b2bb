"""Priors over partitions as objects: parameters checked, reached by name, and cloned."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from onlooker.hyper import Exponential, Gamma
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    ExponentialDecay,
    GaussianDecay,
    LogisticDecay,
    Mixing,
    PartitionPrior,
    Potts,
    Static,
    Uniform,
    WindowDecay,
)

PRIORS = [
    Static(),
    Uniform(3),
    Mixing(4, concentration=2.5, collapsed=False),
    Potts(3, 0.7, LogisticDecay(2.0, 0.1), 5, coordinates=np.eye(4), metric="cityblock"),
    ChineseRestaurant(0.3),
    DistanceDependent(0.2, WindowDecay(2.0, 0.01), 7, metric=1 - np.eye(4), start="self"),
]
each_prior = pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)


def same(a, b):
    """Whether two parameters say the same, arrays included."""
    return type(a) is type(b) and np.array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Uniform(0), ValueError, "n_clusters must be at least 1, got 0"),
        (lambda: Uniform(-2), ValueError, "n_clusters must be at least 1"),
        (lambda: Uniform(2.0), TypeError, "n_clusters must be an integer, got float"),
        (lambda: Uniform(True), TypeError, "n_clusters must be an integer"),
        (lambda: Mixing(2, -1.0), ValueError, "concentration must be finite and above 0, got -1"),
        (lambda: Mixing(2, 0.0), ValueError, "concentration must be finite and above 0"),
        (lambda: Mixing(2, "1"), TypeError, "concentration must be a number or a prior"),
        (lambda: Mixing(2, Gamma), TypeError, "concentration must be a number or a prior"),
        (lambda: Mixing(2, collapsed="no"), TypeError, "collapsed must be True or False, got 'no'"),
        (lambda: Mixing(0), ValueError, "n_clusters"),
        (lambda: ChineseRestaurant(-0.5), ValueError, "concentration must be"),
        (lambda: ChineseRestaurant(np.inf), ValueError, "concentration must be finite"),
        (lambda: Potts(0), ValueError, "n_clusters"),
        (lambda: Potts(2, beta=-1.0), ValueError, "beta must be finite and at least 0"),
        (lambda: Potts(2, beta=None), TypeError, "beta must be a number or a prior"),
        (lambda: Potts(2, decay=1.0), TypeError, "decay must be a Decay such as GaussianDecay"),
        (lambda: Potts(2, decay=GaussianDecay), TypeError, "decay must be a Decay such as"),
        (lambda: Potts(2, n_neighbors=0), ValueError, "n_neighbors must be at least 1"),
        (lambda: Potts(2, n_neighbors=2.5), TypeError, "n_neighbors must be an integer"),
        (lambda: DistanceDependent(-0.1), ValueError, "self_link must be finite and above 0"),
        (lambda: DistanceDependent(0.0), ValueError, "self_link must be finite and above 0"),
        (lambda: DistanceDependent(np.nan), ValueError, "self_link must be finite"),
        (lambda: DistanceDependent(decay=None), TypeError, "decay must be a Decay"),
        (lambda: DistanceDependent(n_neighbors=-1), ValueError, "n_neighbors"),
        (
            lambda: DistanceDependent(self_link_step="hmc"),
            ValueError,
            "one of 'slice', 'metropolis'",
        ),
        (lambda: DistanceDependent(start="far"), ValueError, "start must be .* got 'far'"),
        (lambda: DistanceDependent(tolerance=0.0), ValueError, "tolerance must be"),
        (lambda: DistanceDependent(tolerance=1.0), ValueError, "tolerance must be"),
        (lambda: DistanceDependent(tolerance="low"), TypeError, "tolerance must be a number"),
    ],
)
def test_bad_parameters_are_refused_by_name(make, error, message):
    with pytest.raises(error, match=message):
        make()


@each_prior
def test_parameters_rebuild_the_prior(prior):
    shallow = prior.get_params(deep=False)
    assert not any("__" in name for name in shallow)
    rebuilt = type(prior)(**shallow)
    for name, value in shallow.items():
        assert getattr(rebuilt, name) is value


@each_prior
def test_scikit_learn_clones_priors(prior):
    twin = clone(prior)
    assert twin is not prior
    assert type(twin) is type(prior)
    params, cloned = prior.get_params(deep=True), twin.get_params(deep=True)
    assert params.keys() == cloned.keys()
    for name, value in params.items():
        assert same(value, cloned[name]), name


@each_prior
def test_priors_survive_pickling(prior):
    again = pickle.loads(pickle.dumps(prior))
    for name, value in prior.get_params(deep=True).items():
        assert same(value, again.get_params(deep=True)[name]), name


def test_nested_parameters_are_listed_and_set():
    prior = DistanceDependent(decay=GaussianDecay(1.0, 0.01))
    params = prior.get_params()
    assert params["decay__scale"] == 1.0
    assert params["decay__offset"] == 0.01
    assert prior.set_params(decay__scale=3.0, n_neighbors=4) is prior
    assert prior.decay == GaussianDecay(3.0, 0.01)
    assert prior.n_neighbors == 4


def test_setting_a_nested_parameter_leaves_a_shared_decay_alone():
    decay = GaussianDecay(1.0)
    one, two = Potts(2, decay=decay), Potts(2, decay=decay)
    one.set_params(decay__scale=9.0)
    assert two.decay.scale == decay.scale == 1.0


def test_a_new_object_and_its_parameter_can_be_set_together_in_any_order():
    for params in (
        {"decay": ExponentialDecay(2.0), "decay__offset": 0.2},
        {"decay__offset": 0.2, "decay": ExponentialDecay(2.0)},
    ):
        assert Potts(2).set_params(**params).decay == ExponentialDecay(2.0, 0.2)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"temperature": 1.0}, "Potts has no parameter 'temperature'; it has n_clusters, beta"),
        ({"beta": -1.0}, "beta must be finite and at least 0"),
        ({"beta__mean": 1.0}, "beta is 1.6, which has no parameter 'mean'"),
        ({"decay__width": 1.0}, "GaussianDecay has no parameter 'width'; it has scale, offset"),
        ({"decay__scale": -1.0}, "scale must be finite and above 0"),
        ({"n_clusters": 5, "n_neighbors": 0}, "n_neighbors must be at least 1"),
    ],
)
def test_refused_parameters_leave_the_prior_as_it_was(params, message):
    prior = Potts(2)
    before = prior.get_params(deep=True)
    with pytest.raises(ValueError, match=message):
        prior.set_params(**params)
    assert prior.get_params(deep=True) == before


def test_a_grid_over_nested_parameters_works():
    grid = ParameterGrid({"decay__scale": [1.0, 2.0], "self_link": [0.1, Exponential(0.3)]})
    found = [clone(DistanceDependent()).set_params(**params) for params in grid]
    assert {prior.decay.scale for prior in found} == {1.0, 2.0}
    assert len(found) == 4


def test_defaults_are_not_shared_between_priors():
    assert DistanceDependent().decay == GaussianDecay(1.0, 0.01)
    assert DistanceDependent().self_link == Exponential(0.1)
    assert Potts(2).decay == GaussianDecay(1.0)


@each_prior
def test_only_the_links_insist_on_integrated_controllers(prior):
    assert isinstance(prior, PartitionPrior)
    assert prior.collapsed_only == isinstance(prior, DistanceDependent)
