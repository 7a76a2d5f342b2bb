"""The storms example, at a small size."""

import sys
from pathlib import Path

import numpy as np
import pytest

from onlooker import Demonstrations
from onlooker.datasets import load_storms
from onlooker.dynamics import GeographicDynamics

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def examples(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    yield
    for name in [name for name in sys.modules if name.startswith("storms")]:
        del sys.modules[name]


def test_the_regimes_predict_storms_that_were_held_out(examples, tmp_path, capsys):
    import storms

    found = storms.main(["--quick", "--output", str(tmp_path)])
    told = capsys.readouterr().out
    for name, least in (("position", 0.1), ("position, heading, season", 0.7)):
        means = storms.summary(found.scores[name])
        assert means["onlooker"] > means["global marginal"] + least
        assert means["onlooker"] > means["k-NN, best k"] - 0.02  # few sweeps of few storms
        assert f"Knowing {name}" in told
    assert found.anomalies.loc["Lenny 1999", "rank"] <= 3
    assert "Lenny (1999), which crossed the Caribbean the wrong way, is number" in told
    assert found.regimes["regime"].nunique() > 1
    assert (tmp_path / "storms.png").stat().st_size > 50_000
    assert (tmp_path / "storms_scores.csv").exists()
    assert "Took" in told


def test_directions_given_actions_are_those_of_simulated_steps(examples):
    from storms_directions import sector_given_action

    dynamics = GeographicDynamics(
        [[100.0, 0.0], [-20.0, 30.0], [0.0, -1.0]], np.array([10.0, 40.0, 50.0])
    )
    found = sector_given_action(dynamics)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-9)
    rng = np.random.default_rng(0)
    for a in range(3):
        moves = dynamics.steps[a] + rng.normal(0, dynamics.sigma[a], (40_000, 2))
        sector = np.round(np.arctan2(moves[:, 1], moves[:, 0]) / (np.pi / 4)).astype(int) % 8
        share = np.bincount(sector, minlength=8) / len(moves)
        np.testing.assert_allclose(found[a], share, atol=0.012)


def test_pieces_of_a_storm_are_held_out_together(examples):
    import storms

    demos = load_storms().demos
    folds = storms.folds(demos, 5, seed=0)
    assert sorted(np.concatenate(folds).tolist()) == list(range(len(demos)))
    groups = [set(demos.names[fold]) for fold in folds]
    assert sum(map(len, groups)) == len(set(demos.names))


def test_steps_that_stand_still_have_no_direction(examples):
    from storms_directions import seen_directions

    demos = Demonstrations([[[-50.0, 20.0], [-49.0, 20.0], [-49.0, 20.0], [-49.0, 21.0]]])
    moving, sectors = seen_directions(demos)
    assert moving.tolist() == [True, False, True]
    assert sectors.tolist() == [0, 2]  # east, north
