"""`sample`: chains, seeds, threads, and what it shows while it runs."""

import warnings

import numpy as np
import pytest
from chains import make_chain
from small_runs import PRIORS, Mortal, assert_same_draws, plane_problem, quick

from onlooker import Problem, sample
from onlooker.inference.runner import Schedule
from onlooker.inference.target import Target
from onlooker.partitions import DistanceDependent, Mixing
from onlooker.sampling import _n_threads, short_run
from onlooker.warnings import ChainFailedWarning

PROBLEM = plane_problem()
NODES = PROBLEM.n_nodes


def _orders_of_appearance(labels):
    for row in labels.reshape(-1, labels.shape[-1]):
        seen = {}
        yield row.tolist(), [seen.setdefault(k, len(seen)) for k in row.tolist()]


@pytest.mark.parametrize("name", PRIORS)
def test_draws_have_the_shapes_of_the_contract(name):
    posterior = quick(PROBLEM, PRIORS[name], draws=6, chains=3)
    assert posterior.labels.shape == (3, 6, NODES)
    assert posterior.actions.shape == (3, 6, PROBLEM.n_transitions)
    assert posterior.n_controllers.shape == posterior.log_joint.shape == (3, 6)
    assert posterior.labels.dtype == posterior.actions.dtype == np.int8
    for row, canonical in _orders_of_appearance(posterior.labels):
        assert row == canonical
    assert (posterior.links is not None) == name.startswith("ddcrp")
    assert (posterior.hyper["alpha"] == 1.0).all()


@pytest.mark.parametrize("name", PRIORS)
def test_the_number_of_threads_does_not_change_a_bit(name):
    one = quick(PROBLEM, PRIORS[name], chains=3, n_jobs=1)
    assert_same_draws(one, quick(PROBLEM, PRIORS[name], chains=3, n_jobs=3))


@pytest.mark.parametrize("name", ["mixing", "ddcrp"])
def test_chains_follow_the_children_of_the_seed(name):
    prior = PRIORS[name]
    posterior = quick(PROBLEM, prior, tune=3, draws=4, thin=2, random_state=11)
    for index, child in enumerate(np.random.SeedSequence(11).spawn(2)):
        rng = np.random.default_rng(child)
        chain = make_chain(PROBLEM, prior, index=index, rng=rng)
        for _ in range(3):
            chain.sweep()
        for draw in range(4):
            chain.sweep()
            chain.sweep()
            np.testing.assert_array_equal(posterior.actions[index, draw], chain.actions)
            assert posterior.log_joint[index, draw] == chain.log_joint()
            assert posterior.n_controllers[index, draw] == chain.n_controllers
            labels = posterior.labels[index, draw]
            same = chain.labels[:, None] == chain.labels
            np.testing.assert_array_equal(labels[:, None] == labels, same)
            if posterior.links is not None:
                np.testing.assert_array_equal(posterior.links[index, draw], chain.links)
            for key, value in chain.state.hyper.items():
                assert posterior.hyper[key][index, draw] == value


def test_links_are_kept_and_their_components_are_the_labels():
    posterior = quick(PROBLEM, PRIORS["ddcrp"])
    for labels, links in zip(
        posterior.labels.reshape(-1, NODES), posterior.links.reshape(-1, NODES), strict=True
    ):
        np.testing.assert_array_equal(labels, labels[links])


def test_thinning_keeps_every_so_many_sweeps_and_tuning_drops_the_first():
    prior = PRIORS["mixing"]
    every = quick(PROBLEM, prior, tune=0, draws=14)
    thinned = quick(PROBLEM, prior, tune=2, draws=4, thin=3)
    np.testing.assert_array_equal(thinned.labels, every.labels[:, 4::3])
    np.testing.assert_array_equal(thinned.log_joint, every.log_joint[:, 4::3])


def test_more_chains_leave_the_first_ones_as_they_were():
    two, three = (quick(PROBLEM, PRIORS["crp"], chains=n) for n in (2, 3))
    np.testing.assert_array_equal(two.labels, three.labels[:2])
    assert not np.array_equal(three.labels[0], three.labels[2])


def test_ordinary_sampling_of_links_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="collapsed=True"):
        quick(PROBLEM, DistanceDependent(), collapsed=False)


def test_ordinary_and_collapsed_schemes_differ_but_both_run():
    collapsed, ordinary = (quick(PROBLEM, Mixing(3), collapsed=c) for c in (True, False))
    assert not np.array_equal(collapsed.actions, ordinary.actions)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"draws": 0}, ValueError, "draws"),
        ({"draws": 2.5}, TypeError, "draws"),
        ({"tune": -1}, ValueError, "tune"),
        ({"chains": 0}, ValueError, "chains"),
        ({"thin": 0}, ValueError, "thin"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"random_state": "lucky"}, TypeError, "random_state"),
        ({"concentration": -1.0}, ValueError, "concentration"),
        ({"concentration": "much"}, TypeError, "concentration"),
        ({"resume": True}, ValueError, "store"),
    ],
)
def test_bad_options_are_refused_by_name(options, error, message):
    with pytest.raises(error, match=message):
        quick(PROBLEM, Mixing(2), **options)


def test_what_is_no_problem_or_no_prior_is_refused():
    with pytest.raises(TypeError, match="from_demonstrations"):
        sample("demos", Mixing(2))
    with pytest.raises(TypeError, match="prior"):
        sample(PROBLEM, "ddcrp")


def test_generators_and_old_random_states_are_seeds_too():
    for make in (np.random.default_rng, np.random.RandomState):
        one, other = (quick(PROBLEM, Mixing(2), random_state=make(5)) for _ in range(2))
        assert_same_draws(one, other)


def test_without_a_seed_runs_differ():
    one, other = (quick(PROBLEM, Mixing(2), random_state=None) for _ in range(2))
    assert not np.array_equal(one.actions, other.actions)


def test_a_chain_that_dies_is_reported_and_the_others_are_kept():
    with pytest.warns(ChainFailedWarning, match=r"chain 1 failed .*out of luck.*2 of 3 chains"):
        posterior = quick(PROBLEM, Mortal(3), chains=3, draws=40, n_jobs=1)
    assert posterior.chain_ids == [0, 2]
    whole = quick(PROBLEM, Mixing(3), chains=3, draws=40)
    assert not np.array_equal(posterior.labels[0], posterior.labels[1])
    np.testing.assert_array_equal(posterior.labels, whole.labels[[0, 2]])


def test_a_chain_that_dies_may_be_tried_again_if_it_was_stored(tmp_path):
    for store in (None, tmp_path):
        with pytest.warns(ChainFailedWarning) as told:
            quick(PROBLEM, Mortal(3), chains=3, draws=40, n_jobs=1, store=store)
        again = "; resume=True tries again from where it was stored"
        assert str(told[0].message).endswith(again) == (store is not None)


def test_if_every_chain_dies_the_first_error_is_raised(monkeypatch):
    monkeypatch.setattr(Mortal, "doomed", (0, 1))
    with pytest.warns(ChainFailedWarning), pytest.raises(RuntimeError, match="every chain") as told:
        quick(PROBLEM, Mortal(3), draws=60)
    assert isinstance(told.value.__cause__, ArithmeticError)


def test_short_runs_tell_of_chains_that_die_too(monkeypatch):
    target, schedule = Target(PROBLEM, Mortal(3)), Schedule(draws=40, tune=2, chains=3, seed=0)
    with pytest.warns(ChainFailedWarning, match="chain 1 failed"):
        assert short_run(target, schedule).n_chains == 2
    monkeypatch.setattr(Mortal, "doomed", (0, 1, 2))
    with pytest.warns(ChainFailedWarning), pytest.raises(RuntimeError, match="every chain"):
        short_run(target, schedule)


def test_progress_goes_to_standard_error_and_changes_no_bit(capsys):
    shown = quick(PROBLEM, Mixing(2), progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("24/24 sweeps (100 %)") == 1
    assert_same_draws(shown, quick(PROBLEM, Mixing(2)))
    assert capsys.readouterr().err == ""


def test_large_problems_get_wider_integers():
    rng = np.random.default_rng(0)
    loglik = np.zeros((200, 130))
    loglik[:, 1:] -= rng.exponential(size=(200, 129))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = Problem(np.arange(200), loglik)
    posterior = quick(problem, PRIORS["static"], draws=2)
    assert posterior.labels.dtype == posterior.actions.dtype == np.int16
    assert posterior.labels.max() == 199


@pytest.mark.parametrize(
    ("n_jobs", "chains", "threads"),
    [(None, 8, 3), (-1, 8, 3), (None, 2, 2), (1, 8, 1), (5, 8, 5), (16, 8, 8)],
)
def test_chains_share_the_cores_that_this_process_may_use(n_jobs, chains, threads, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 2, 5}, raising=False)
    assert _n_threads(n_jobs, chains) == threads
