"""Demonstrations with states that were not seen: taken, kept, used, or refused."""

import warnings

import numpy as np
import pytest
from bare import bare_problem
from chains import make_chain
from small_runs import assert_same_draws, quick, ring_dynamics

from onlooker import Demonstrations, PolicyRecognizer, Posterior
from onlooker.dynamics import DisplacementDynamics, SlipperyDynamics
from onlooker.hyper import LogUniform
from onlooker.partitions import DistanceDependent, Mixing

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.warnings.ConvergenceWarning")

# -- in and out -----------------------------------------------------------------------------------


def ring_demos(share=0.4, n=8, seed=0):
    rng = np.random.default_rng(seed)
    walks = [(rng.integers(6) + rng.integers(-1, 2, size=9).cumsum()) % 6 for _ in range(n)]
    return Demonstrations(walks).hide(share, seed)


def plane_demos(share=0.3, n=5, seed=0):
    rng = np.random.default_rng(seed)
    tracks = [rng.normal(0, 1, (8, 2)).cumsum(axis=0) for _ in range(n)]
    return Demonstrations(tracks).hide(share, seed)


def problems():
    compass = DisplacementDynamics.compass(4, step=LogUniform(0.3, 3.0), sigma=LogUniform(0.1, 2.0))
    return {
        "ring": bare_problem(ring_demos(), ring_dynamics(6), nodes="all"),
        "plane": bare_problem(plane_demos(), compass, observation_noise=LogUniform(0.01, 0.3)),
    }


@pytest.mark.parametrize("name", ["ring", "plane"])
def test_a_stopped_run_goes_on_with_the_same_bits(name, tmp_path):
    problem = problems()[name]
    prior = DistanceDependent(
        coordinates=np.random.default_rng(0).normal(size=(6, 2)) if name == "ring" else None
    )
    whole = quick(problem, prior, draws=12)
    quick(problem, prior, draws=5, store=tmp_path / "run")
    parts = quick(problem, prior, draws=12, store=tmp_path / "run", resume=True)
    assert_same_draws(whole, parts)
    np.testing.assert_array_equal(whole.imputed, parts.imputed)
    loaded = Posterior.load(tmp_path / "run")
    np.testing.assert_array_equal(whole.imputed, loaded.imputed)
    np.testing.assert_array_equal(whole.policy(), loaded.policy())
    assert loaded.problem.incomplete.noise == problem.incomplete.noise
    whole.save(tmp_path / "file.npz")
    np.testing.assert_array_equal(Posterior.load(tmp_path / "file.npz").imputed, whole.imputed)


def test_policies_count_actions_where_they_were_imputed():
    problem = problems()["ring"]
    posterior = quick(problem, Mixing(2))
    expected = np.zeros((6, 3))
    seen = problem.incomplete
    for chain, draw in np.ndindex(2, 8):
        path = np.array(seen.observed)
        path[seen.hidden] = posterior.imputed[chain, draw]
        labels = posterior.labels[chain, draw]
        counts = np.zeros((labels.max() + 1, 3))
        np.add.at(counts, (labels[path[seen.starts]], posterior.actions[chain, draw]), 1)
        policy = (counts + 1) / (counts + 1).sum(axis=1, keepdims=True)
        expected += policy[labels] / 16
    np.testing.assert_allclose(posterior.policy(), expected)


def test_a_thinned_posterior_and_a_single_chain_keep_unseen_states_and_links():
    coordinates = np.random.default_rng(0).normal(size=(6, 2))
    posterior = quick(problems()["ring"], DistanceDependent(coordinates=coordinates))
    thinned, second = posterior.thin(3), posterior.chain(1)
    for name in ("labels", "actions", "log_joint", "links", "imputed"):
        values = getattr(posterior, name)
        np.testing.assert_array_equal(getattr(thinned, name), values[:, ::3])
        np.testing.assert_array_equal(getattr(second, name), values[1:])
    np.testing.assert_array_equal(thinned.hyper["nu"], posterior.hyper["nu"][:, ::3])
    assert (thinned.chain_ids, second.chain_ids) == ([0, 1], [1])
    chains = [posterior.chain(index).policy() for index in range(2)]
    np.testing.assert_allclose(np.mean(chains, axis=0), posterior.policy())


def test_with_nothing_hidden_the_posterior_is_that_of_complete_data():
    demos = ring_demos(0.0)
    whole = quick(
        bare_problem(demos.split(), ring_dynamics(6), nodes="all"),
        Mixing(2),
        draws=300,
    )
    filled = quick(bare_problem(demos, ring_dynamics(6), nodes="all"), Mixing(2), draws=300)
    assert filled.imputed is None
    assert np.abs(filled.policy() - whole.policy()).max() < 0.1


def test_the_log_joint_is_that_of_the_completed_problem():
    problem = problems()["ring"]
    rng = np.random.default_rng(0)
    prior = Mixing(2)
    chain = make_chain(problem, prior, rng=rng)
    for _ in range(3):
        chain.sweep()
    path = chain.state.unseen.states
    offsets = problem.incomplete.offsets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = bare_problem(np.split(path, offsets[1:-1]), ring_dynamics(6), nodes="all")
    loglik = whole.loglik[np.arange(whole.n_transitions), chain.actions].sum()
    assert chain.update("unseen").log_density(chain.state) == pytest.approx(loglik)
    counts = np.zeros((6, 3), dtype=int)
    np.add.at(counts, (whole.node_of, chain.actions), 1)
    np.testing.assert_array_equal(chain.state.counts.node, counts)


def test_the_recognizer_takes_incomplete_and_noisy_demonstrations():
    options = {"draws": 4, "tune": 2, "chains": 1, "random_state": 0}
    rec = PolicyRecognizer(ring_dynamics(6), Mixing(2), nodes="all", **options)
    assert rec.fit(ring_demos()).predict_proba([0, 5]).shape == (2, 3)
    compass = DisplacementDynamics.compass(4)
    rec = PolicyRecognizer(compass, Mixing(2), observation_noise=LogUniform(0.01, 0.3), **options)
    assert "observation_noise" in rec.fit(plane_demos().split()).posterior_.hyper


# -- what was seen --------------------------------------------------------------------------------


def test_ends_that_were_not_seen_are_cut_off_and_lone_states_left_out():
    demos = Demonstrations([[-1, 0, -1, 2, -1], [-1, 3, -1], [4, 5]], missing="infer")
    assert [list(one) for one in demos] == [[0, -1, 2], [4, 5]]
    assert demos.hidden.tolist() == [False, True, False, False, False]
    assert [list(one) for one in demos.split()] == [[4, 5]]
    assert "20.0 % not seen" in repr(demos)


def test_splitting_keeps_what_was_seen_in_a_row():
    demos = Demonstrations(
        [[[0.0], [1.0], [np.nan], [3.0], [4.0], [5.0], [np.nan]]], missing="infer"
    )
    assert [one.ravel().tolist() for one in demos.split()] == [[0.0, 1.0], [3.0, 4.0, 5.0]]
    np.testing.assert_allclose(demos.filled().states.ravel(), [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Demonstrations([[0, -2, 1]], missing="infer"), ValueError, "-2 at index 1"),
        (lambda: Demonstrations([[0.0, np.inf, 1.0]], missing="infer"), ValueError, "at index 1"),
        (
            lambda: Demonstrations([[-1, 1, -1]], missing="infer"),
            ValueError,
            "no trajectory has two",
        ),
        (lambda: Demonstrations([["a", "b"]], missing="infer"), TypeError, "trajectory 0"),
        (
            lambda: Demonstrations([[0, 1], [[0.0, 1.0]] * 2], missing="infer"),
            ValueError,
            "kind of state",
        ),
        (
            lambda: Demonstrations([[0, -1, -1, 1]], missing="infer").split(),
            ValueError,
            "no two states",
        ),
        (
            lambda: Demonstrations([[[0.0, np.nan]] * 3], missing="infer").filled(),
            ValueError,
            "coordinate 1 was never seen",
        ),
        (lambda: _problem(ring_demos(), ring_dynamics(6)), ValueError, "nodes='all'"),
        (lambda: _problem(ring_demos(), ring_dynamics(4), nodes="all"), ValueError, "0 to 3"),
        (
            lambda: _problem(ring_demos(), SlipperyDynamics(ring_dynamics(6)), nodes="all"),
            ValueError,
            "fix 'success'",
        ),
        (
            lambda: _problem(ring_demos(), ring_dynamics(6), nodes="all", observation_noise=0.1),
            ValueError,
            "observation_noise is for positions",
        ),
        (
            lambda: _problem(plane_demos(), ring_dynamics(6)),
            TypeError,
            "need DisplacementDynamics",
        ),
        (
            lambda: _problem(plane_demos(), DisplacementDynamics.compass(4), observation_noise=-1),
            ValueError,
            "observation_noise must be",
        ),
        (
            lambda: ring_demos(0.0).hide(1.0),
            ValueError,
            "share",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def _problem(demos, dynamics, **options):
    return bare_problem(demos, dynamics, **options)
