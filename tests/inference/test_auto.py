"""``draws="auto"``: until everything has settled, or time is over; never by the clock otherwise."""

import json
import math

import numpy as np
import pytest
from small_runs import Mortal, assert_same_draws, plane_problem, quick

from onlooker import Posterior, sampling
from onlooker.diagnostics import Settled, settled
from onlooker.findings.opened import OpenedRun
from onlooker.findings.verdict import verdict
from onlooker.inference.draws import Draws
from onlooker.inference.runner import LEAST_DRAWS, Runner
from onlooker.partitions import DistanceDependent, Mixing
from onlooker.progress import Progress
from onlooker.warnings import ChainFailedWarning, ConvergenceWarning

PROBLEM = plane_problem()
PRIOR = DistanceDependent()
AUTO = {"draws": "auto", "tune": 20, "chains": 4, "random_state": 1}


def header(store):
    return json.loads((store / "run.json").read_text())


@pytest.fixture(scope="module")
def whole():
    """A run that converges, after more draws than it first had room for."""
    posterior = quick(PROBLEM, PRIOR, **AUTO)
    assert posterior.n_draws in (500, 1000, 2000, 4000)
    return posterior


@pytest.fixture
def never(monkeypatch):
    """Nothing ever settles."""
    monkeypatch.setattr(sampling, "settled", lambda table: Settled({"policy": False}))


def test_it_ends_when_everything_has_settled_and_not_before(whole):
    assert whole.ended == "converged"
    assert settled(whole.summary()).all
    half = whole.draws.take(draws=slice(whole.n_draws // 2))
    assert not settled(Posterior(whole.target, whole.schedule, half, range(4)).summary()).all


@pytest.mark.parametrize(
    ("n_draws", "look"),
    [(0, 250), (1, 250), (250, 250), (251, 500), (500, 500), (1000, 1000), (1001, 2000)],
)
def test_looks_are_taken_after_twice_as_many_draws_each(n_draws, look):
    assert sampling._next_look(n_draws) == look


def test_the_time_budget_is_in_minutes_and_a_fixed_number_of_draws_has_none(monkeypatch):
    deadlines, hints = [], []
    monkeypatch.setattr(sampling.time, "monotonic", lambda: 1000.0)

    def until(*arguments):
        deadlines.append(arguments[-1])
        raise ArithmeticError

    def shown(*about, hint="", **options):
        hints.append(hint)
        return Progress()

    monkeypatch.setattr(sampling, "_until_converged", until)
    monkeypatch.setattr(sampling, "make_progress", shown)
    with pytest.raises(ArithmeticError):
        quick(PROBLEM, Mixing(3), max_minutes=2.5, **AUTO)
    monkeypatch.setattr(sampling.threads, "run", until)
    with pytest.raises(ArithmeticError):
        quick(PROBLEM, Mixing(3), max_minutes=2.5)
    assert deadlines == [1150.0, math.inf]
    assert hints[0] == ""
    assert "draws" in hints[1]


def test_its_draws_are_those_of_a_run_of_that_length(whole):
    assert_same_draws(whole, quick(PROBLEM, PRIOR, **(AUTO | {"draws": whole.n_draws})))


def test_it_does_not_depend_on_threads_or_a_store(whole, tmp_path):
    assert_same_draws(whole, quick(PROBLEM, PRIOR, n_jobs=1, store=tmp_path, **AUTO))
    assert header(tmp_path)["end"] == "converged"
    assert header(tmp_path)["draws"] == whole.n_draws
    loaded = Posterior.load(tmp_path)
    assert_same_draws(whole, loaded)
    assert loaded.ended == "converged"


def test_a_saved_posterior_still_says_what_ended_it(whole, tmp_path):
    whole.save(tmp_path / "draws.npz")
    assert Posterior.load(tmp_path / "draws.npz").ended == "converged"
    assert quick(PROBLEM, Mixing(2)).ended == "draws"


@pytest.mark.parametrize("n_draws", [3, 250, 270])
def test_a_run_that_goes_on_ends_as_an_unbroken_one(whole, tmp_path, n_draws):
    quick(PROBLEM, PRIOR, store=tmp_path, **(AUTO | {"draws": n_draws}))
    assert_same_draws(whole, quick(PROBLEM, PRIOR, store=tmp_path, resume=True, **AUTO))


def test_a_run_that_has_converged_draws_no_more(whole, tmp_path, monkeypatch):
    quick(PROBLEM, PRIOR, store=tmp_path, **AUTO)
    monkeypatch.setattr(Runner, "sweep", lambda self: pytest.fail("a sweep"))
    again = quick(PROBLEM, PRIOR, store=tmp_path, resume=True, **AUTO)
    assert_same_draws(whole, again)
    assert again.ended == "converged"


def test_a_longer_run_is_not_cut_back(tmp_path):
    """What is stored counts, whatever earlier looks would have said."""
    quick(PROBLEM, Mixing(2, 50.0), store=tmp_path, **(AUTO | {"draws": 1100}))
    posterior = quick(PROBLEM, Mixing(2, 50.0), store=tmp_path, resume=True, **AUTO)
    assert posterior.n_draws == 2000


def test_time_may_cut_it_short_and_that_is_said(never, tmp_path):
    cut = quick(PROBLEM, Mixing(3), store=tmp_path, max_minutes=0.01, **AUTO)
    assert cut.ended == "time"
    assert cut.n_draws >= LEAST_DRAWS
    assert header(tmp_path)["end"] == "time"
    assert header(tmp_path)["draws"] == cut.n_draws
    unbroken = quick(PROBLEM, Mixing(3), **(AUTO | {"draws": cut.n_draws}))
    np.testing.assert_array_equal(cut.labels, unbroken.labels)
    assert_same_draws(cut, Posterior.load(tmp_path))
    assert OpenedRun.read(tmp_path).state == "finished"


def test_however_little_time_there_is_each_chain_gets_a_few_draws(never):
    cut = quick(PROBLEM, Mixing(3), max_minutes=1e-9, n_jobs=1, **AUTO)
    assert cut.ended == "time"
    assert cut.n_draws >= LEAST_DRAWS


def test_what_time_has_cut_goes_on_where_it_was(whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(sampling, "settled", lambda table: Settled({"policy": False}))
        cut = quick(PROBLEM, PRIOR, store=tmp_path, max_minutes=1e-9, **AUTO)
    assert cut.n_draws < whole.n_draws
    again = quick(PROBLEM, PRIOR, store=tmp_path, resume=True, **AUTO)
    assert_same_draws(whole, again)
    assert again.ended == "converged"


def test_a_run_that_time_ended_warns_and_says_so(never):
    with pytest.warns(ConvergenceWarning, match="^The time budget ended before convergence. "):
        posterior = sampling.sample(PROBLEM, PRIOR, **AUTO, max_minutes=1e-9, progress=False)
    sentences = " ".join(verdict(OpenedRun.of(posterior))["sentences"])
    assert "Sampling reached its time limit" in sentences
    assert "Raise max_minutes" in sentences


def test_a_run_that_converged_says_so(whole):
    found = verdict(OpenedRun.of(whole))
    assert "Sampling ended when everything had settled." in found["sentences"]
    assert found["level"] == "good"


@pytest.mark.parametrize(
    ("looks", "minutes", "last"),
    [(2, 30, "converged after 500 draws"), (9, 1e-9, "out of time after ")],
)
def test_what_each_look_finds_is_told(monkeypatch, capsys, looks, minutes, last):
    found = iter([Settled({"policy": False, "partition": True})] * (looks - 1) + [Settled({})])
    monkeypatch.setattr(sampling, "settled", lambda table: next(found))
    quick(PROBLEM, Mixing(3), progress=True, max_minutes=minutes, **AUTO)
    lines = capsys.readouterr().err.splitlines()
    if looks == 2:
        (look,) = (line for line in lines if "250 draws per chain." in line)
        assert look.endswith("The partition has settled, the policy has not.")
    assert lines[-1].removeprefix("sampling: ").startswith(last)
    assert lines[-1].endswith(" draws per chain")


def test_an_interrupted_run_is_unfinished(tmp_path, monkeypatch, never):
    def look(posterior):
        raise KeyboardInterrupt

    monkeypatch.setattr(sampling, "summary", look)
    with pytest.raises(KeyboardInterrupt, match="resume=True"):
        quick(PROBLEM, Mixing(3), store=tmp_path, **AUTO)
    assert Posterior.load(tmp_path).n_draws == 250
    assert Posterior.load(tmp_path).ended == "auto"
    assert OpenedRun.read(tmp_path).state == "stopped"


def test_a_chain_that_fails_does_not_keep_the_others():
    with pytest.warns(ChainFailedWarning, match=r"chain \d failed"):
        part = quick(PROBLEM, Mortal(2, 50.0), n_jobs=1, **AUTO)
    assert part.n_chains == 3
    assert part.ended == "converged"


def test_if_every_chain_fails_there_is_an_error():
    prior = Mortal(2)
    prior.doomed = range(4)
    with pytest.raises(RuntimeError, match="every chain failed"), pytest.warns(ChainFailedWarning):
        quick(PROBLEM, prior, **AUTO)


def test_nothing_that_can_change_is_settled_at_once():
    from onlooker import Problem
    from onlooker.partitions import Static

    certain = Problem([0, 1], [[0.0, -math.inf], [-math.inf, 0.0]], np.eye(2))
    posterior = quick(certain, Static(), **AUTO)
    assert posterior.ended == "converged"
    assert posterior.n_draws == 250


def test_the_progress_lines_say_what_has_settled_and_what_ended_it(never, capsys):
    quick(PROBLEM, Mixing(3), **(AUTO | {"progress": True, "max_minutes": 0.02}))
    lines = capsys.readouterr().err.splitlines()
    assert "sampling: 250 draws per chain. The policy has not settled." in lines
    assert lines[-1].startswith("sampling: out of time after ")


def test_the_progress_line_says_that_it_converged(capsys):
    quick(PROBLEM, Mixing(2, 50.0), **(AUTO | {"progress": True}))
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("sampling: converged after ") for line in lines)


@pytest.mark.parametrize(
    ("n_draws", "look"),
    [(0, 250), (1, 250), (250, 250), (251, 500), (500, 500), (1001, 2000), (2000, 2000)],
)
def test_the_next_look_is_one_that_was_not_gone_past(n_draws, look):
    assert sampling._next_look(n_draws) == look


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"draws": "all"}, ValueError, "draws must be a number or 'auto', got 'all'"),
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"max_minutes": 0}, ValueError, "max_minutes must be finite and above 0"),
    ],
)
def test_what_makes_no_sense_is_refused(options, error, text):
    with pytest.raises(error, match=text):
        quick(PROBLEM, Mixing(2), **(AUTO | options))


def test_buffers_grow_with_the_schedule_and_keep_what_they_hold():
    from dataclasses import replace

    from onlooker.inference.runner import Schedule
    from onlooker.inference.target import Binder, Target

    bind = Binder(Target(PROBLEM, Mixing(2)))
    runner = Runner(0, Schedule(draws=3), bind)
    runner.advance()
    first: Draws = runner.draws
    runner.schedule = replace(runner.schedule, draws=8)
    runner.advance()
    assert len(runner.draws) == 8
    np.testing.assert_array_equal(runner.draws.labels[:3], first.labels)
    whole = Runner(0, Schedule(draws=8), bind)
    whole.advance()
    np.testing.assert_array_equal(runner.draws.actions, whole.draws.actions)
