"""Stores keep dynamics that are made of others, and never let a file choose what code runs."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from bare import bare_problem

from onlooker import Posterior, sample
from onlooker.dynamics import (
    DisplacementDynamics,
    GeographicDynamics,
    GymnasiumDynamics,
    SlipperyDynamics,
)
from onlooker.dynamics.codec import decode_dynamics, encode_dynamics
from onlooker.dynamics.features import Elapsed, Feature, FeatureDynamics, Heading, day_of_year
from onlooker.hyper import Beta
from onlooker.partitions import ChineseRestaurant

gymnasium = pytest.importorskip("gymnasium")


def there_and_back(dynamics):
    arrays = {}
    description = json.loads(json.dumps(encode_dynamics(dynamics, arrays)))
    return description, decode_dynamics(description, arrays)


def moves(dynamics, states, seed=0):
    return dynamics.sample(states, np.arange(len(states)) % dynamics.n_actions, rng(seed))


def rng(seed):
    return np.random.default_rng(seed)


def test_steps_over_the_earth_keep_the_noise_of_each_action():
    dynamics = GeographicDynamics([[100.0, 0.0], [0.0, 50.0]], sigma=[10.0, 20.0])
    _, back = there_and_back(dynamics)
    assert type(back) is GeographicDynamics
    places = np.array([[-60.0, 20.0], [179.9, -30.0]])
    np.testing.assert_array_equal(moves(back, places), moves(dynamics, places))


def test_features_keep_their_weights_and_the_interval():
    inner = GeographicDynamics.compass(4, step=100.0, sigma=10.0)
    dynamics = FeatureDynamics(inner, [Heading(2.0), Elapsed(0.1), day_of_year(3.0)], 2, 21_600.0)
    _, back = there_and_back(dynamics)
    assert back.features == dynamics.features
    states = dynamics.join([[-60.0, 20.0], [10.0, 5.0]], times=[0.0, 1e6])
    np.testing.assert_array_equal(moves(back, states), moves(dynamics, states))


def test_tables_within_tables_keep_their_success():
    table = rng(0).dirichlet(np.ones(3), size=(3, 2))
    dynamics = SlipperyDynamics(SlipperyDynamics(table, success=0.7), success=Beta(3.0, 1.0))
    _, back = there_and_back(dynamics)
    assert back.intended.success == 0.7
    assert back.parameters == dynamics.parameters
    np.testing.assert_array_equal(back.toarray(), dynamics.toarray())


class _Windy(DisplacementDynamics):
    """Moves differently, whatever its steps are."""


def test_a_subclass_of_the_users_own_is_only_named():
    arrays = {}
    assert "opaque" in encode_dynamics(_Windy.compass(4), arrays)
    assert not arrays


@dataclass(frozen=True)
class _MyPrior:
    mean: float = 1.0

    def logpdf(self, value):
        return -value

    def sample(self, rng):
        return rng.exponential()


def test_a_parameter_with_a_prior_of_the_users_own_cannot_be_read_back():
    dynamics = DisplacementDynamics.compass(4, sigma=_MyPrior())
    description, back = there_and_back(dynamics)
    assert description["sigma"]["opaque"] == "_MyPrior"
    assert back is None
    slippery = SlipperyDynamics(np.stack([np.eye(2), 1 - np.eye(2)], axis=1), success=0.9)
    description, arrays = SlipperyDynamics(slippery, success=0.5).to_arrays("dynamics")
    description["intended"]["success"] = {"opaque": "_MyPrior", "params": {}}
    assert decode_dynamics(description, arrays) is None


class _Mine(Feature):
    def observe(self, moves, times, elapsed):
        return self.weight * moves[:, :1]


def test_a_feature_of_the_users_own_is_only_named():
    dynamics = FeatureDynamics(DisplacementDynamics.compass(4), [_Mine(1.0)], 2)
    assert there_and_back(dynamics) == (
        {"opaque": "onlooker.dynamics.features.FeatureDynamics"},
        None,
    )


def test_a_table_of_an_environment_is_stored_as_a_table():
    dynamics = GymnasiumDynamics(gymnasium.make("FrozenLake-v1"))
    description, back = there_and_back(dynamics)
    assert description["class"] == "TabularDynamics"
    np.testing.assert_array_equal(back.toarray(), dynamics.toarray())


@pytest.mark.parametrize(
    ("name", "options", "state"),
    [
        ("MountainCar-v0", {"sigma": [0.01, 0.001]}, [-0.5, 0.01]),
        ("Acrobot-v1", {"sigma": 0.1, "actions": [0, 2]}, [0.1, 0.2, 0.3, 0.4]),
        ("Pendulum-v1", {"sigma": 0.1, "actions": [[-1.0], [1.0]]}, [3.1, 0.5]),
    ],
)
def test_a_simulator_is_made_again_by_its_name(name, options, state):
    dynamics = GymnasiumDynamics(gymnasium.make(name), **options)
    _, back = there_and_back(dynamics)
    states = np.array([state, state])
    np.testing.assert_allclose(moves(back, states), moves(dynamics, states), rtol=1e-12)
    assert back.periodic == dynamics.periodic


def test_a_simulator_with_functions_of_the_users_own_is_only_named():
    dynamics = GymnasiumDynamics(
        gymnasium.make("MountainCar-v0"), sigma=0.1, state_of=lambda seen: seen
    )
    assert there_and_back(dynamics)[1] is None


@pytest.mark.parametrize("name", ["evil_module:Env-v0", "NoSuch-v0"])
def test_a_file_can_not_choose_a_module_to_import(name):
    arrays = {}
    dynamics = GymnasiumDynamics(gymnasium.make("MountainCar-v0"), sigma=0.1)
    description = encode_dynamics(dynamics, arrays) | {"id": name}
    assert decode_dynamics(description, arrays) is None


def test_what_a_later_version_wrote_is_left_alone():
    assert decode_dynamics({"class": "QuantumDynamics"}, {}) is None


@pytest.mark.filterwarnings("ignore::onlooker.warnings.ConvergenceWarning")
def test_a_stored_run_with_features_needs_nothing_else(tmp_path):
    from onlooker.dynamics.features import with_features

    track = np.cumsum(rng(0).normal(0, 1, size=(20, 2)), axis=0)
    demos, dynamics = with_features([track], [Heading(0.5)], DisplacementDynamics.compass(4))
    problem = bare_problem(demos, dynamics)
    sample(
        problem, ChineseRestaurant(), draws=4, tune=2, chains=1, random_state=0, progress=False,
        store=tmp_path / "run",
    )  # fmt: skip
    loaded = Posterior.load(tmp_path / "run")
    assert np.isfinite(loaded.log_predictive(demos)).all()
