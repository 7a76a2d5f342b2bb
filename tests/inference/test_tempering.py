"""Parallel tempering leaves the posterior as it is."""

from types import SimpleNamespace

import exact
import numpy as np
import pytest
from test_against_exact import ALPHA, COORDINATES, LOGLIK, NODE_OF, _decay, _exact

from onlooker import Posterior, Problem, sample
from onlooker.inference import tempering
from onlooker.inference.tempering import TemperedChain, ladder
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Mixing

POWERS = (1.0, 0.5, 0.1)
unmixed = pytest.mark.filterwarnings("ignore::onlooker.warnings.ConvergenceWarning")


def run(prior, collapsed=True, sweeps=6_000, seed=0):
    problem = Problem(NODE_OF, LOGLIK, COORDINATES)
    sampler = prior.sampler(problem)
    draws = {"labels": [], "actions": []}
    for stream in np.random.SeedSequence(seed).spawn(2):
        chain = TemperedChain(
            problem, sampler, powers=POWERS, alpha=ALPHA, collapsed=collapsed,
            rng=np.random.default_rng(stream),
        )  # fmt: skip
        for _ in range(20):
            chain.sweep()
        for _ in range(sweeps):
            chain.sweep()
            draws["labels"].append(chain.labels)
            draws["actions"].append(chain.actions)
    shaped = {name: np.array(rows).reshape(2, sweeps, -1) for name, rows in draws.items()}
    return SimpleNamespace(**shaped, hyper={})


CASES = {
    "mixing": (Mixing(3, 1.3), True, lambda: _exact("mixing", n_clusters=3, gamma=1.3)),
    "mixing, ordinary": (Mixing(3, 1.3), False, lambda: _exact("mixing", n_clusters=3, gamma=1.3)),
    "crp": (ChineseRestaurant(0.8), True, lambda: _exact("crp", gamma=0.8)),
    "ddcrp": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1)),
        True,
        lambda: _exact("ddcrp", nu=0.4, weights=_decay(0.8, 0.1)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_cold_rung_matches_the_enumerated_posterior(case):
    prior, collapsed, oracle = CASES[case]
    assert exact.compare(run(prior, collapsed), oracle(), alpha=ALPHA) == []


def test_swaps_that_are_always_accepted_are_caught(monkeypatch):
    monkeypatch.setattr(TemperedChain, "_energy", lambda self, chain: 0.0)
    prior, collapsed, oracle = CASES["crp"]
    assert exact.compare(run(prior, collapsed), oracle(), alpha=ALPHA)


def test_swaps_do_happen(monkeypatch):
    swapped = []
    swap = tempering._swap
    monkeypatch.setattr(tempering, "_swap", lambda *two: (swapped.append(1), swap(*two)))
    run(CASES["crp"][0], sweeps=50)
    assert 10 < len(swapped) < 140


def test_the_ladder_is_finer_where_the_data_say_more():
    few = Problem(NODE_OF, LOGLIK, COORDINATES)
    many = Problem(np.zeros(5_000, dtype=int), np.tile(LOGLIK, (1000, 1))[:5_000], np.zeros((1, 2)))
    assert ladder(few, (1.0, 0.3)) == (1.0, 0.3)
    for problem in (few, many):
        powers = ladder(problem, 4)
        assert powers[0] == 1
        assert np.all(np.diff(powers) < 0)
    assert ladder(many, 4)[1] > ladder(few, 4)[1]


@unmixed
@pytest.mark.parametrize("prior", [CASES["ddcrp"][0], CASES["crp"][0]], ids=["ddcrp", "crp"])
def test_a_stored_tempered_run_goes_on_bit_for_bit(prior, tmp_path):
    problem = Problem(NODE_OF, LOGLIK, COORDINATES)
    options = {"tune": 5, "chains": 2, "random_state": 3, "progress": False, "tempering": POWERS}
    whole = sample(problem, prior, draws=30, **options)
    sample(problem, prior, draws=12, store=tmp_path / "run", **options)
    going_on = sample(problem, prior, draws=30, store=tmp_path / "run", resume=True, **options)
    np.testing.assert_array_equal(whole.labels, going_on.labels)
    np.testing.assert_array_equal(whole.actions, going_on.actions)
    assert Posterior.load(tmp_path / "run").labels.shape == whole.labels.shape


@unmixed
def test_another_ladder_is_another_run(tmp_path):
    problem = Problem(NODE_OF, LOGLIK, COORDINATES)
    options = {"draws": 5, "tune": 0, "chains": 1, "random_state": 3, "progress": False}
    sample(problem, Mixing(2), store=tmp_path / "run", tempering=2, **options)
    with pytest.raises(ValueError, match="tempering"):
        sample(problem, Mixing(2), store=tmp_path / "run", resume=True, **options)


@pytest.mark.parametrize("wrong", [1, [0.9, 0.5], [1.0, 1.0], [1.0], [1.0, -0.1], 2000])
def test_a_ladder_that_is_none_is_refused(wrong):
    problem = Problem(NODE_OF, LOGLIK, COORDINATES)
    with pytest.raises(ValueError, match="tempering"):
        sample(problem, Mixing(2), tempering=wrong, progress=False)
