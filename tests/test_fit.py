"""`onlooker fit`: from a file of tracks to a stored posterior, stopped and resumed."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from onlooker import Posterior
from onlooker.cli import main
from onlooker.worlds import CircularMotion
from small_runs import assert_same_draws


@pytest.fixture(scope="module")
def tracks(tmp_path_factory):
    demos, _ = CircularMotion().rollout(3, 30, random_state=0)
    rows = [
        {"id": f"fox {k}", "t": t, "x": x, "y": y}
        for k, track in enumerate(demos)
        for t, (x, y) in enumerate(track)
    ]
    path = tmp_path_factory.mktemp("tracks") / "tracks.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def call(tracks, output, *more, draws=8):
    words = ["fit", tracks, "--states", "x,y", "--trajectory", "id", "--time", "t"]
    words += ["--draws", draws, "--tune", 3, "--chains", 2, "--output", output, *more]
    return CliRunner().invoke(main, [str(word) for word in words])


def test_defaults_come_from_the_tracks_and_findings_are_told(tracks, tmp_path):
    result = call(tracks, tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "Read 3 trajectories, 90 states." in result.output
    assert "16 directions, steps of" in result.output
    assert "Controllers: " in result.output
    found = Posterior.load(tmp_path / "run")
    assert found.labels.shape == (2, 8, 90)
    step = np.linalg.norm(found.problem.dynamics.steps[0])
    assert 0.9 < step < 1.1


def test_a_resumed_command_ends_with_the_draws_of_an_unbroken_one(tracks, tmp_path):
    assert call(tracks, tmp_path / "a").exit_code == 0
    again = call(tracks, tmp_path / "a", "--resume", draws=14)
    assert again.exit_code == 0, again.output
    assert call(tracks, tmp_path / "b", draws=14).exit_code == 0
    assert_same_draws(Posterior.load(tmp_path / "a"), Posterior.load(tmp_path / "b"))


def test_a_store_is_not_written_over(tracks, tmp_path):
    assert call(tracks, tmp_path / "run").exit_code == 0
    result = call(tracks, tmp_path / "run")
    assert result.exit_code == 1
    assert "resume" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--states", "x,z"], "no column 'z'"),
        (["--states", "x"], "two columns"),
        (["--sigma", "0"], "sigma must be finite and above 0"),
    ],
)
def test_bad_input_is_one_clear_line(more, message, tracks, tmp_path):
    result = call(tracks, tmp_path / "run", *more)
    assert result.exit_code == 1
    assert message in result.output
    assert result.output.strip().splitlines()[-1].startswith("Error: ")
    assert not (tmp_path / "run").exists()
