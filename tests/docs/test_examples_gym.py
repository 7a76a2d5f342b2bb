"""The examples in Gymnasium's worlds, at their small size: what they find."""

import importlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium")
pytest.importorskip("matplotlib")

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def example():
    """Import an example as Python does when it runs one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        yield importlib.import_module


def table_of(*rows):
    """One state with these actions, in a table that is square."""
    table = np.zeros((len(rows[0]), len(rows), len(rows[0])))
    table[:] = np.array(rows)
    return table


# -- what can be told apart ----------------------------------------------------------------------


def test_actions_with_one_and_the_same_distribution_are_look_alikes(example):
    alike = example("_common").same_actions(table_of([0.5, 0.5], [0.5, 0.5], [0.4, 0.6]))[0]
    np.testing.assert_array_equal(alike, [[1, 1, 0], [1, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (([0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]), True),
        (([0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.8, 0.1]), False),
        # all differ, but the third is a mixture of the others
        (([0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.45, 0.45, 0.1]), False),
    ],
)
def test_a_policy_is_identifiable_where_the_actions_are_linearly_independent(
    example, rows, expected
):
    assert (example("_common").identifiable(table_of(*rows)) == expected).all()


# -- Taxi ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rain(example):
    return example("taxi").Rain()


def test_in_the_rain_some_actions_look_alike_at_every_state(example, rain):
    known = example("taxi").not_knowable(rain, rain.live / rain.live.sum())
    assert (known["live"], known["not identifiable"]) == (400, 400)
    distinct = [known[f"distinct {k}"] for k in range(1, 7)]
    assert distinct == [0, 9, 130, 197, 64, 0]
    assert known["often"] == 336


def test_spreading_the_mass_of_look_alikes_changes_no_next_state(rain):
    evenly = rain.evenly(rain.expert)
    np.testing.assert_allclose(evenly.sum(axis=1), 1.0)
    np.testing.assert_allclose(rain.ahead(evenly), rain.ahead(rain.expert), atol=1e-12)
    assert np.abs(evenly - rain.expert)[rain.live].max() > 0.05


def test_distances_in_the_rain_are_squares_and_another_passenger_is_one_more(rain):
    encode = rain.env.unwrapped.encode
    here = rain.coordinates[encode(1, 1, 0, 2)]
    for other, distance in (((1, 3, 0, 2), 2), ((1, 1, 4, 2), 1), ((1, 1, 0, 3), 1)):
        assert np.linalg.norm(rain.coordinates[encode(*other)] - here) == pytest.approx(distance)


def test_the_experts_own_predictions_are_reliable_and_a_guess_is_not(example, rain):
    taxi = example("taxi")
    held = rain.drive(150, np.random.default_rng(3))
    own = taxi.reliability(rain, rain.expert, held)
    guess = taxi.reliability(rain, np.full_like(rain.expert, 1 / 6), held)
    assert taxi.calibration_error(own) < 0.02
    assert taxi.calibration_error(guess) > 0.05
    assert (np.abs(own["stated"] - own["observed"]) < 4 * own["error"] + 0.01).all()


def test_next_states_in_the_rain_are_predicted_and_stated_honestly(example, tmp_path, capsys):
    taxi = example("taxi")
    found = taxi.main(["--quick", "--output", str(tmp_path)])
    last = found.scores[found.scores["episodes"] == 150].set_index("method")
    bounds = found.scores[found.scores["episodes"].isna()].set_index("method")["score"]
    ours = last.loc[taxi.OURS]
    assert bounds[taxi.EXPERT] - 0.12 < ours["score"] < bounds[taxi.EXPERT]
    for worse in (taxi.OWN, taxi.CLONING, taxi.MARGINAL):
        assert ours["score"] > last.loc[worse, "score"]
    assert ours["score"] > bounds[taxi.RANDOM] + 0.7
    assert taxi.calibration_error(found.calibration[taxi.OURS]) < 0.03
    assert ours["next state"] < ours["evenly"] < ours["action"]
    assert "At 400 of 400 states the policy cannot be known" in capsys.readouterr().out
    assert (tmp_path / "taxi.png").stat().st_size > 10_000
