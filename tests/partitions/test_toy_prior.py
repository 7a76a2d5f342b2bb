"""A prior in one file of its own is sampled, stored, resumed, predicted with and reported."""

from typing import Any, NamedTuple

import exact
import numpy as np
import pytest
from chains import draws_of
from small_runs import assert_same_draws, plane_problem, quick
from toy_prior import FAIR, CoinToss

from onlooker import Posterior, Problem
from onlooker.explorer.overview import overview
from onlooker.explorer.report import write_report
from onlooker.explorer.run import read
from onlooker.findings.names import hyper_text
from onlooker.findings.opened import OpenedRun
from onlooker.findings.verdict import verdict
from onlooker.partitions import PRIORS
from onlooker.runs.header import StoreMismatchError

PROBLEM = plane_problem()


@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "ordinary"])
def test_it_is_sampled_right(collapsed):
    """A fair coin is the uniform prior over labelings with two labels."""
    node_of, loglik, n, coordinates = exact.small_problem(seed=3, n_nodes=4)
    problem = Problem(node_of, loglik, coordinates)
    draws = draws_of(problem, CoinToss(0.5), sweeps=6_000, alpha=0.7, collapsed=collapsed)
    oracle = exact.uniform(node_of, loglik, n, 0.7, 2)
    assert exact.compare(draws, oracle, alpha=0.7) == []


def test_what_it_keeps_and_what_its_updates_report_is_kept_beside_the_draws():
    posterior = quick(PROBLEM, CoinToss(FAIR))
    changes = posterior.draws.arrays["changes"]
    assert changes.shape == posterior.labels.shape
    assert (np.diff(changes, axis=1) >= 0).all()
    assert posterior.info["toss.moved"].shape == (2, 8)
    assert 0 < posterior.info["toss.moved"].mean() < 1
    assert posterior.hyper["w"].std() > 0


def test_it_is_stored_resumed_and_loaded(tmp_path):
    quick(PROBLEM, CoinToss(FAIR), draws=4, store=tmp_path)
    more = quick(PROBLEM, CoinToss(FAIR), draws=9, store=tmp_path, resume=True)
    whole = quick(PROBLEM, CoinToss(FAIR), draws=9)
    assert_same_draws(more, whole)
    for name, values in whole.draws.arrays.items():
        np.testing.assert_array_equal(more.draws.arrays[name], values, err_msg=name)
    loaded = Posterior.load(tmp_path, prior=CoinToss(FAIR))
    np.testing.assert_array_equal(loaded.draws.arrays["changes"], whole.draws.arrays["changes"])


def test_it_places_states_that_are_no_nodes_and_without_it_they_are_refused(tmp_path):
    posterior = quick(PROBLEM, CoinToss(), store=tmp_path)
    elsewhere = [[9.0, 9.0], [-9.0, 3.0]]
    policy = posterior.policy(elsewhere, interval=0.9)
    np.testing.assert_allclose(policy.mean.sum(axis=1), 1.0)
    assert (policy.low <= policy.mean).all()
    assert (policy.mean <= policy.high).all()
    stranger = Posterior.load(tmp_path)
    np.testing.assert_array_equal(stranger.policy(), posterior.policy())
    with pytest.raises(TypeError, match=r"CoinToss.*give prior= to Posterior.load"):
        stranger.policy(elsewhere)


def test_with_its_one_line_in_the_registry_it_is_loaded_without_being_given(tmp_path, monkeypatch):
    posterior = quick(PROBLEM, CoinToss(FAIR), store=tmp_path)
    monkeypatch.setitem(PRIORS, CoinToss.key, CoinToss)
    quick(PROBLEM, CoinToss(FAIR), store=tmp_path / "known")
    loaded = Posterior.load(tmp_path / "known")
    assert loaded.prior == CoinToss(FAIR)
    np.testing.assert_array_equal(loaded.policy([[9.0, 9.0]]), posterior.policy([[9.0, 9.0]]))


def test_a_state_that_remembers_more_now_is_refused_and_nothing_is_deleted(tmp_path, monkeypatch):
    quick(PROBLEM, CoinToss(FAIR), store=tmp_path)
    parts = sorted(tmp_path.rglob("part-*.npz"))

    class More(NamedTuple):
        changes: Any
        streak: Any

    monkeypatch.setattr(CoinToss, "state", More)
    with pytest.raises(StoreMismatchError, match=r"partition\.streak"):
        quick(PROBLEM, CoinToss(FAIR), draws=9, store=tmp_path, resume=True)
    assert sorted(tmp_path.rglob("part-*.npz")) == parts


def test_a_hyper_parameter_with_the_name_of_another_is_refused(monkeypatch):
    monkeypatch.setattr(CoinToss, "hyper", lambda self: {"alpha": 0.5})
    with pytest.raises(ValueError, match="two hyper-parameters are called 'alpha'"):
        quick(PROBLEM, CoinToss())


def test_its_words_are_used_and_it_is_reported(tmp_path):
    posterior = quick(PROBLEM, CoinToss(FAIR), store=tmp_path / "run")
    assert hyper_text(posterior.prior, "w").name == "bias of the coin"
    assert verdict(OpenedRun.of(posterior))["sentences"]
    write_report(tmp_path / "run", tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000
    shown = overview(read(tmp_path / "run")[1])
    assert "CoinToss" in shown["run"]["prior"]
    assert [row["name"] for row in shown["hyper"]] == ["alpha", "w"]
