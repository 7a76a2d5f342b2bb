"""Which steps the actions of a dynamics explain."""

import json

import numpy as np
import pandas as pd
import pytest

from onlooker import Demonstrations
from onlooker.dynamics import DisplacementDynamics


def test_the_coverage_tells_where_steps_are_not_explained():
    dynamics = DisplacementDynamics([[1.0], [-1.0]], 0.1)
    demos = Demonstrations([[0.0, 1.0, 2.0, 2.5], [5.0, 4.0, 9.0]])
    coverage = dynamics.coverage(demos)
    assert coverage.unexplained.tolist() == [2, 4]
    assert coverage.trajectory[coverage.unexplained].tolist() == [0, 1]
    assert coverage.index[coverage.unexplained].tolist() == [2, 1]
    assert coverage.misfit == pytest.approx([0, 0, 5, 0, 40])
    assert coverage.share == pytest.approx(3 / 5)
    assert coverage.usage.tolist() == [2 / 3, 1 / 3]
    assert coverage.limit == pytest.approx(3.29, abs=0.01)
    text = str(coverage)
    assert "2 actions explain 60.00 % of 5 steps" in text
    assert "trajectory 1, step 1: 40 sigma\n  trajectory 0, step 2: 5 sigma" in text


def test_the_coverage_can_be_read_by_machines():
    dynamics = DisplacementDynamics([[1.0], [-1.0]], 0.1)
    content = json.loads(json.dumps(dynamics.coverage([[0.0, 1.0, 2.5]]).to_dict()))
    assert content["share"] == 0.5
    assert content["unexplained"] == [
        {
            "transition": 1,
            "trajectory": 0,
            "step": 1,
            "place": "trajectory 0, step 1",
            "misfit": pytest.approx(5.0),
        }
    ]


def test_an_unexplained_step_is_named_by_its_trajectory_its_time_and_its_row():
    times = ["2024-05-03 14:00", "2024-05-03 12:00", "2024-05-03 13:00:07", "2024-05-03 10:00"]
    frame = pd.DataFrame(
        {"animal": ["elk_07"] * 3 + ["elk_08"] * 1, "t": times, "x": [9.0, 0.0, 1.0, 5.0]}
    )
    frame.loc[4] = ["elk_08", "2024-05-03 11:00", 6.0]
    demos = Demonstrations.from_dataframe(frame, "x", trajectory="animal", time="t")
    coverage = DisplacementDynamics([[1.0], [-1.0]], 0.1).coverage(demos)
    assert "\n  elk_07, step 1, 2024-05-03 13:00:07, row 2: 70 sigma" in str(coverage)
    assert "rows count from 0" in str(coverage)
    assert demos.place(3) == demos[[1]].place(0) == "elk_08, step 0, 2024-05-03 10:00, row 3"
    np.testing.assert_array_equal(demos.rows, [1, 2, 0, 3, 4])
    resampled = Demonstrations.from_dataframe(frame, "x", "animal", "t", gaps="resample")
    assert resampled.rows is None  # a state of the grid stands in no row


def test_a_thousandth_of_what_actions_do_counts_as_unexplained():
    dynamics = DisplacementDynamics([[0.0, 0.0], [50.0, 0.0]], [1.0, 4.0])
    rng = np.random.default_rng(0)
    after = dynamics.sample(np.zeros((20_000, 2)), rng.integers(2, size=20_000), rng)
    pairs = Demonstrations(list(np.stack([np.zeros_like(after), after], axis=1)))
    coverage = dynamics.coverage(pairs)
    assert 1 - coverage.share == pytest.approx(0.001, abs=0.0006)


def test_many_steps_are_looked_at_in_pieces(monkeypatch):
    steps = np.random.default_rng(0).normal(0.0, 1.0, (100, 2))
    demos = Demonstrations([np.cumsum(steps, axis=0)])
    dynamics = DisplacementDynamics.compass(8, sigma=0.1)
    whole = dynamics.coverage(demos)
    monkeypatch.setattr("onlooker.dynamics.coverage._ROWS", 7)
    np.testing.assert_array_equal(dynamics.coverage(demos).misfit, whole.misfit)


def test_one_step_is_singular():
    dynamics = DisplacementDynamics([[1.0]], 0.1)
    assert "1 is not explained" in str(dynamics.coverage([[0.0, 1.0, 2.5]]))


def test_steps_are_counted_where_they_are_although_others_were_not_seen():
    walk = np.arange(8.0)[:, None] * [[1.0, 0.0]]
    walk[2] = np.nan
    walk[6:, 1] += 9.0
    demos = Demonstrations([np.arange(4.0)[:, None] * [[1.0, 0.0]], walk], missing="infer")
    coverage = DisplacementDynamics.compass(4, sigma=0.1).coverage(demos)
    assert coverage.n_steps == 3 + 5
    (worst,) = coverage.unexplained
    assert (coverage.trajectory[worst], coverage.index[worst]) == (1, 5)
    assert "trajectory 1, step 5: " in str(coverage)
