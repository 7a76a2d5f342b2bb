"""How much of what is done is of which kind of behaviours."""

import re

import numpy as np
import pytest
from bare import bare_problem
from pictured_runs import store_run

from onlooker.findings.kinds import format_kinds, kinds
from onlooker.findings.opened import OpenedRun
from onlooker.findings.words import findings, format_done


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("goals") / "run"
    store_run("goals", path, draws=60, tune=60)
    return path


@pytest.fixture(scope="module")
def run(path):
    return OpenedRun.read(path)


def test_shares_are_those_of_the_steps(run):
    posterior = run.posterior
    problem = posterior.problem
    found = {one["kind"]: one for one in kinds(posterior)}
    drawn = posterior.draws.behaviours.reshape(-1, problem.n_transitions)
    goals = [k for k, name in enumerate(problem.behaviours) if name.startswith("heads for")]
    shares = np.isin(drawn, goals).mean(axis=1)
    assert found["heading for a place"]["mean"] == pytest.approx(shares.mean())
    low, high = np.quantile(shares, [0.05, 0.95])
    assert found["heading for a place"]["low"] == pytest.approx(low)
    assert found["heading for a place"]["high"] == pytest.approx(high)
    assert sum(one["mean"] for one in found.values()) == pytest.approx(1.0)
    blurs = [k for k, name in enumerate(problem.behaviours) if "±" in name]
    assert found["a fixed action or one of its neighbours"]["mean"] == pytest.approx(
        np.isin(drawn, blurs).mean()
    )


def test_who_heads_for_a_place_is_said_to(run):
    assert kinds(run.posterior)[0]["kind"] == "heading for a place"
    assert re.search(r"\d+ % \[\d+–\d+\] heading for a place", format_kinds(kinds(run.posterior)))
    lines = format_done(run, findings(run))
    assert any(re.search(r"heads for state \d+, \d+ % \[\d+–\d+\]", line) for line in lines)
    assert lines[-1].startswith("Steps by kind of behaviour (90 % intervals): ")


def test_bare_actions_are_of_one_kind_which_needs_no_word(run):
    from onlooker import sample
    from onlooker.partitions import Mixing

    problem = bare_problem([[0, 1, 2]] * 3, run.posterior.problem.dynamics)
    with pytest.warns(UserWarning, match="."):
        posterior = sample(problem, Mixing(2), draws=4, tune=0, chains=2, progress=False)
    assert kinds(posterior) is None
    assert format_kinds(None) is None


def test_commands_say_it(path, tmp_path):
    from click.testing import CliRunner

    from onlooker.cli import main

    said = CliRunner().invoke(main, ["summary", str(path)])
    assert said.exit_code == 0, said.output
    assert "heading for a place" in said.stdout
    assert re.search(r"heads for state \d+, \d+ % \[", said.stdout)


def test_predictions_may_be_of_behaviours(path, tmp_path, run):
    import json

    from click.testing import CliRunner

    from onlooker.cli import main

    def ask(*words):
        return CliRunner().invoke(main, ["predict", str(path), *map(str, words)])

    said = ask("--at", "3", "--behaviours")
    assert said.exit_code == 0, said.output
    assert re.search(r"heads for state \d+ ", said.stdout)
    found = json.loads(ask("--at", "3", "--at", "48", "--behaviours", "--json").stdout)
    assert found["behaviours"] == run.posterior.problem.behaviours
    expected = run.posterior.behaviours(np.array([3, 48]), interval=0.9)
    for k, row in enumerate(found["states"]):
        np.testing.assert_allclose(row["probability"], expected.mean[k])
        np.testing.assert_allclose(row["low"], expected.low[k])
        assert row["name"] == run.posterior.problem.behaviours[row["behaviour"]]
    out = tmp_path / "behaviours.csv"
    assert ask("--at", "3", "--behaviours", "--csv", out).exit_code == 0
    assert "behaviour" in out.read_text().splitlines()[0].split(",")


def test_intervals_of_behaviours_lie_around_their_means(run):
    mean, low, high = run.posterior.behaviours(interval=0.9)
    np.testing.assert_array_equal(mean, run.posterior.behaviours())
    assert ((low <= high) & (low >= 0) & (high <= 1 + 1e-9)).all()
    likely = mean > 0.3
    assert np.mean((low <= mean)[likely] & (mean <= high)[likely]) > 0.8
