"""Pictures of scores show the numbers that they were given."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from onlooker.anomaly import score_policy
from onlooker.dynamics import DisplacementDynamics
from onlooker.plot import anomaly as plot_anomaly

COMPASS = DisplacementDynamics.compass(4, sigma=0.2)
EAST = [0.85, 0.05, 0.05, 0.05]


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.fixture(scope="module")
def tracks():
    rng = np.random.default_rng(0)
    steps = COMPASS.steps[[0] * 12 + [2] * 12] + rng.normal(0, 0.2, (24, 2))
    turned = np.vstack([[0.0, 0.0], np.cumsum(steps, axis=0)])
    nominal = np.vstack([[0.0, 0.0], np.cumsum(steps[:12], axis=0)])
    nominal[6:] += 20.0
    return [turned, nominal]


@pytest.fixture(scope="module")
def scores(tracks):
    return score_policy(
        lambda states: np.tile(EAST, (len(states), 1)), COMPASS, tracks,
        n_replicates=50, max_replicates=50, random_state=0,
    )  # fmt: skip


def test_importing_it_imports_no_matplotlib():
    code = "import onlooker.plot.anomaly, sys; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_trajectory_is_drawn_step_by_step_with_its_change(scores, ax):
    plot_anomaly.trajectory(scores, 0, ax)
    lines = {line.get_label(): line for line in ax.lines}
    chosen = scores.steps.trajectory == 0
    np.testing.assert_array_equal(
        lines["action surprise"].get_ydata(), scores.steps.action_surprise[chosen]
    )
    np.testing.assert_array_equal(
        lines["noise surprise"].get_ydata(), scores.steps.noise_surprise[chosen]
    )
    shaded = ax.patches[0].get_x(), ax.patches[0].get_x() + ax.patches[0].get_width()
    verdict = scores.trajectories
    assert shaded == (verdict.onset[0] - 0.5, verdict.end[0] + 0.5)
    onset = [verdict.onset_low[0] - 0.5, verdict.onset_high[0] + 0.5]
    np.testing.assert_array_equal(lines["onset"].get_xdata(), onset)
    assert (
        0.9 < min(lines["onset"].get_ydata()) == max(lines["onset"].get_ydata()) < 1
    )  # at the top
    assert "no action explains it" not in lines
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "excess [standard deviations]")
    assert ax.get_title().startswith(f"{scores.names[0]}: score ")


def test_unexplained_steps_are_crossed(scores, ax):
    plot_anomaly.trajectory(scores, 1, ax)
    crosses = next(line for line in ax.lines if line.get_label() == "no action explains it")
    assert crosses.get_xdata().tolist() == [5]
    assert 0.9 < crosses.get_ydata()[0] < 1
    assert [line.get_ydata() for line in ax.lines if len(line.get_xdata()) == 2] == [[0.0, 0.0]]


def test_a_track_has_one_coloured_segment_a_step(scores, tracks, ax):
    plot_anomaly.track(scores, tracks, 1, ax)
    lines = ax.collections[0]
    assert len(lines.get_segments()) == 12
    np.testing.assert_array_equal(
        lines.get_array(), scores.steps.action_surprise[scores.steps.trajectory == 1]
    )
    assert ax.lines[0].get_xydata().tolist() == [tracks[1][0].tolist()]  # where it starts
    assert lines.get_clim()[0] == -1
    assert ax.get_aspect() == 1
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y")
    (bar,) = (one for one in ax.figure.axes if one is not ax)
    assert bar.get_ylabel() == "excess surprise about actions [standard deviations]"
    low, high = np.min(tracks[1], axis=0), np.max(tracks[1], axis=0)
    assert ax.get_xlim()[0] <= low[0] < high[0] <= ax.get_xlim()[1]
    lost = next(line for line in ax.lines if line.get_label() == "no action explains it")
    np.testing.assert_array_equal(lost.get_xydata(), [tracks[1][6]])
    with pytest.raises(ValueError, match="demonstrations that were scored"):
        plot_anomaly.track(scores, tracks[:1], 0, ax)
    with pytest.raises(ValueError, match="index must be below 2"):
        plot_anomaly.track(scores, tracks, 2, ax)


def test_p_values_climb_to_one(ax):
    plot_anomaly.p_values([0.5, 0.25, 1.0, 0.75], ax)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [0, 0.25, 0.5, 0.75, 1, 1])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0, 0.25, 0.5, 0.75, 1, 1])
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[0, 0], [1, 1]])  # as right ones do
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 1), (0, 1))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("p-value", "share below")
    plot_anomaly.p_values([0.5, 0.5], ax)
    assert len(ax.lines) == 3  # right ones and their band are drawn once
    (band,) = ax.collections
    edge = band.get_paths()[0].vertices
    above = edge[np.isclose(edge[:, 0], 0.2), 1].max() - 0.2
    assert above == pytest.approx(0.624, abs=0.001)  # tables of Kolmogorov and Smirnov: n = 4, 5 %
    below = edge[np.isclose(edge[:, 0], 0.8), 1].min()
    assert below == pytest.approx(0.8 - above)
    assert (edge[:, 1].min(), edge[:, 1].max()) == (0, 1)
    with pytest.raises(ValueError, match="values holds no p-value"):
        plot_anomaly.p_values([], ax)
