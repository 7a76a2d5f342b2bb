"""The dynamics that a model file asks for, and what it may not ask for."""

import numpy as np
import pytest

from onlooker import Demonstrations
from onlooker.dynamics import DisplacementDynamics, TabularDynamics
from onlooker.fitting.building import make_dynamics
from onlooker.fitting.model_file import Model

RING = np.stack([np.roll(np.eye(5), 1, axis=1), np.roll(np.eye(5), -1, axis=1)], axis=1)
STEPS = [[1.0, 0.0], [0.0, 1.0]]
TRACK = Demonstrations([np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])])
STILL = Demonstrations([np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])])
WALK = Demonstrations([np.array([0, 1, 2, 1])])


def made(demos, folder=None, **dynamics):
    return make_dynamics(demos, Model(dynamics=dynamics, folder=folder), geographic=False)


def test_steps_are_taken_as_they_are_given():
    dynamics = made(TRACK, kind="steps", steps=STEPS, sigma=0.3)
    assert isinstance(dynamics, DisplacementDynamics)
    np.testing.assert_array_equal(dynamics.steps, STEPS)


def test_a_compass_without_a_step_takes_a_typical_one_and_a_fifth_of_it_as_noise():
    dynamics = made(TRACK, kind="compass", directions=4)
    np.testing.assert_allclose(np.linalg.norm(dynamics.steps, axis=1), 2.0)
    expected = DisplacementDynamics.compass(4, 2.0, 0.4)
    there = (TRACK[0][:-1], TRACK[0][1:])
    np.testing.assert_array_equal(dynamics.log_likelihood(*there), expected.log_likelihood(*there))


def test_a_compass_has_the_sixteen_points_that_have_names_unless_told_otherwise():
    np.testing.assert_allclose(
        made(TRACK, kind="compass").steps, DisplacementDynamics.compass(16, 2.0, 0.4).steps
    )


@pytest.mark.parametrize("name", ["table.npy", "one.npz", "two.npz"])
def test_a_table_is_read_from_any_numpy_file(name, tmp_path):
    np.save(tmp_path / "table.npy", RING)
    np.savez(tmp_path / "one.npz", only=RING)
    np.savez(tmp_path / "two.npz", table=RING, other=np.zeros(3))
    array = {"array": "table"} if name == "two.npz" else {}
    dynamics = made(WALK, tmp_path, kind="tabular", file=name, **array)
    assert isinstance(dynamics, TabularDynamics)
    np.testing.assert_array_equal(dynamics.toarray(), RING)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"file": "two.npz"}, r"two.npz holds several arrays \(table, other\); name one: array"),
        ({"file": "two.npz", "array": "tabel"}, "two.npz has no array 'tabel'.*table.*; it has"),
        ({"file": "none.npy"}, "cannot read .*none.npy: No such file"),
        ({"file": "text.npy"}, "cannot read .*text.npy: it is not a NumPy file"),
        ({"file": "half.npy"}, "half.npy: .*sum to"),
        ({}, r'\[dynamics\] kind = "tabular" needs file'),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else "",
)
def test_a_table_that_is_none_is_refused_by_its_name(wanted, told, tmp_path):
    np.savez(tmp_path / "two.npz", table=RING, other=np.zeros(3))
    np.save(tmp_path / "half.npy", RING / 2)
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(ValueError, match=told):
        made(WALK, tmp_path, kind="tabular", **wanted)


@pytest.mark.parametrize(
    ("demos", "wanted", "told"),
    [
        (TRACK, {"kind": "steps", "steps": STEPS}, 'kind = "steps" needs sigma'),
        (STILL, {"kind": "compass"}, "half of the steps or more stand still; give --step"),
        (WALK, {"kind": "compass"}, "the states are whole numbers, .* needs a table"),
        (WALK, {"kind": "gymnasium"}, 'kind = "gymnasium" needs id'),
        (WALK, {"kind": "gymnasium", "id": "Nowhere-v9"}, "Gymnasium cannot make 'Nowhere-v9'"),
        (
            WALK,
            {"kind": "gymnasium", "id": "FrozenLake-v1", "sigma": 0.1},
            r"\[dynamics\] FrozenLake-v1: .*sigma",
        ),
    ],
    ids=["steps", "still", "discrete", "no id", "unknown id", "no noise in a table"],
)
def test_dynamics_that_cannot_be_made_are_refused_with_a_remedy(demos, wanted, told):
    with pytest.raises(ValueError, match=told):
        made(demos, **wanted)


def test_an_environment_that_is_simulated_takes_some_of_its_actions_and_a_noise():
    car = Demonstrations([np.array([[-0.5, 0.0], [-0.501, -0.001], [-0.503, -0.002]])])
    wanted = {"kind": "gymnasium", "id": "MountainCar-v0", "actions": [0.0, 2.0]}
    dynamics = made(car, **wanted, sigma=[0.01, 0.001])
    assert dynamics.n_actions == 2
    np.testing.assert_array_equal(dynamics.sigma, [0.01, 0.001])
    proposed = made(car, **wanted)
    assert (np.asarray(proposed.sigma) > 0).all()
