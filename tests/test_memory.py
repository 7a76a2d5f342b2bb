"""Memory is estimated before it is used: what does not fit is refused, with the remedy."""

import resource
import sys

import numpy as np
import pytest
from small_runs import PRIORS, made_up, plane_problem, quick

from onlooker import Demonstrations, Problem, checks
from onlooker.anomaly import score
from onlooker.baselines import ExpectationMaximization
from onlooker.checks import machine_memory, require_memory
from onlooker.dynamics import DisplacementDynamics
from onlooker.hyper import LogUniform
from onlooker.inference.draws import Draws
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
    Regions,
    Uniform,
)
from onlooker.worlds import CircularMotion, GridWorld, circular_expert, grid_dynamics

PROBLEM = plane_problem()
COMPASS, FINE = DisplacementDynamics.compass(4), DisplacementDynamics.compass(10**5)
LONG = np.zeros((10**4, 2))
WALK = np.random.default_rng(0).normal(size=(100, 2)).cumsum(axis=0)
WIDE = [
    DistanceDependent(decay=GaussianDecay(1e3)),
    DistanceDependent(decay=GaussianDecay(LogUniform(10.0, 1e3))),
    Regions(decay=GaussianDecay(1e3)),
    Regions(decay=GaussianDecay(LogUniform(10.0, 1e3))),
    Potts(3, decay=GaussianDecay(1e3), n_neighbors=None),
    DistanceDependent(n_neighbors=49_999),
]


def peak_memory():
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.fixture
def laptop(monkeypatch):
    """A machine with 16 GB, whatever this one has."""
    monkeypatch.setattr(checks, "machine_memory", lambda: 16 * 10**9)


@pytest.fixture(scope="module")
def large_problem():
    rng = np.random.default_rng(0)
    n = 50_000
    return Problem(np.arange(n), rng.normal(size=(n, 2)), rng.normal(size=(n, 2)))


@pytest.mark.parametrize("prior", WIDE, ids=lambda prior: repr(prior)[:60])
def test_a_reach_across_fifty_thousand_states_is_refused_before_it_is_tried(
    prior, large_problem, laptop
):
    before = peak_memory()
    with pytest.raises(ValueError, match=r"would take about [\d,.]+ GB.*n_neighbors=100"):
        quick(large_problem, prior)
    assert peak_memory() - before < 10**9


@pytest.mark.parametrize("prior", [Uniform(10**10), Mixing(10**10), Potts(10**10)])
def test_ten_billion_clusters_are_refused(prior, laptop):
    with pytest.raises(ValueError, match=r"n_clusters=10,000,000,000 would take about 1,600\.0 GB"):
        quick(PROBLEM, prior)


def test_a_billion_directions_or_speeds_are_refused(laptop):
    walk = Demonstrations([np.random.default_rng(0).normal(size=(20, 2)).cumsum(axis=0)])
    before = peak_memory()
    for make in (
        lambda: DisplacementDynamics.compass(10**9),
        lambda: DisplacementDynamics.from_demonstrations(walk, n_directions=10**5),
        lambda: DisplacementDynamics.from_demonstrations(walk, n_speeds=10**9),
    ):
        with pytest.raises(ValueError, match=r"directions would take about .* GB.*choose fewer"):
            make()
    assert peak_memory() - before < 10**8


class Ring:
    """Ten billion places, by no table."""

    n_states, n_actions = 10**10, 2

    def log_likelihood(self, states, next_states):
        moves = np.subtract(next_states, states)[:, None] % self.n_states
        return np.where(moves == [1, self.n_states - 1], 0.0, -np.inf)

    def sample(self, states, actions, rng):
        return (states + 1 - 2 * np.asarray(actions)) % self.n_states


def test_nodes_for_ten_billion_states_are_refused(laptop):
    demos = Demonstrations([np.arange(5), np.arange(10**10 - 5, 10**10)])
    before = peak_memory()
    with pytest.raises(ValueError, match=r"10,000,000,000 nodes would take.*nodes='visited'"):
        Problem.from_demonstrations(demos, Ring(), nodes="all")
    assert peak_memory() - before < 10**9
    assert Problem.from_demonstrations(demos, Ring()).n_nodes == 10


@pytest.mark.parametrize("draws", [10**9, 10**400])
def test_more_draws_than_fit_are_refused_before_anything_is_stored(laptop, tmp_path, draws):
    with pytest.raises(ValueError, match=r"000,000,000 draws of 2 chains.*fewer draws.*thin"):
        quick(PROBLEM, Mixing(3), draws=draws, store=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_million_chains_are_refused(laptop):
    with pytest.raises(ValueError, match=r"1,000,000 chains would take about .* fewer chains"):
        quick(PROBLEM, ChineseRestaurant(), chains=10**6, draws=1)


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda: FINE.log_likelihood(LONG, LONG), "10,000 steps with 100,000 actions"),
        (lambda: CircularMotion().rollout(10**9), "1,000,000,000 trajectories of 100 states"),
        (lambda: GridWorld(3).rollout(2, 10**10), "2 trajectories of 10,000,000,000 states"),
        (lambda: GridWorld(10**4), "a grid of 10,000 × 10,000 states with 8 actions"),
        (lambda: GridWorld(5, 10**8), "a grid of 5 × 5 states with 100,000,000 actions"),
        (lambda: GridWorld(5, sigma=10**11), "steps across 600,000,000,006 states"),
        (
            lambda: circular_expert(LONG, n_actions=10**7),
            "the policy at 10,000 points with 10,000,000 actions",
        ),
        (
            lambda: ExpectationMaximization(COMPASS, n_controllers=10**9).fit([WALK]),
            "n_controllers=1,000,000,000",
        ),
    ],
)
def test_large_numbers_are_refused_by_name(ask, told, laptop):
    before = peak_memory()
    remedy = "(choose|ask at) (a )?(fewer|smaller)"
    with pytest.raises(ValueError, match=f"^{told} would take about .*{remedy}"):
        ask()
    assert peak_memory() - before < 10**8


def test_a_billion_sectors_take_no_more_memory_than_eight():
    before = peak_memory()
    world = CircularMotion(n_sectors=10**9)
    np.testing.assert_array_equal(world.regions([[0.0, 1.0], [0.0, 8.0]]), [250e6, 1250e6])
    np.testing.assert_array_equal(world.policy([[1.0, 0.0]]).nonzero()[1], [5, 6, 7])
    assert peak_memory() - before < 10**8


def test_a_billion_replicates_or_samples_are_refused(laptop):
    posterior = quick(Problem.from_demonstrations([WALK], COMPASS), ChineseRestaurant())
    before = peak_memory()
    for known in (False, True):
        with pytest.raises(ValueError, match=r"^1,000,000,000 replicates would take .* fewer of"):
            score(posterior, [WALK], n_replicates=10**9, parameter_uncertainty=not known)
    with pytest.raises(ValueError, match=r"^1,000,000,000 samples of the next state would take"):
        posterior.next_state_samples(WALK, 10**9)
    assert peak_memory() - before < 10**8


@pytest.mark.parametrize("name", [*PRIORS, "regions"])
def test_what_draws_take_is_estimated_within_a_factor_of_two(name, monkeypatch):
    prior = PRIORS.get(name, Regions())
    problem = plane_problem(n_nodes=2000, n_transitions=5000)
    draws: Draws = quick(problem, prior, draws=2, tune=0, chains=1).draws
    taken = sum(values.nbytes for values in draws.arrays.values()) / 2
    estimates = []
    monkeypatch.setattr(
        "onlooker.inference.runner.require_memory", lambda n, *_: estimates.append(n)
    )
    quick(problem, prior, draws=2, tune=0, chains=1)
    assert taken <= estimates[-1] / 4 < 2 * taken


def test_half_of_the_memory_is_the_budget(monkeypatch):
    monkeypatch.setattr(checks, "machine_memory", lambda: 1000)
    require_memory(500, "it")
    with pytest.raises(ValueError, match="it would take about"):
        require_memory(501, "it")
    with pytest.raises(ValueError, match="it would take about"):
        require_memory(10**400, "it")  # no float holds it


@pytest.mark.parametrize(("limit", "known"), [("12345", 12345), ("max", None), (None, None)])
def test_the_limit_of_a_container_counts(tmp_path, monkeypatch, limit, known):
    machine = machine_memory.__wrapped__  # what it finds is kept
    whole = machine()
    file = tmp_path / "memory.max"
    if limit is not None:
        file.write_text(f"{limit}\n")
    monkeypatch.setattr(checks, "_LIMITS", (file,))
    assert machine() == known if known else machine() >= whole


# what is asked for: how many bytes, and how often the result that is, temporaries included
ASKED = [
    ("posterior", 2, lambda k: made_up(plane_problem(n_nodes=60 * k), Mixing(2)).co_clustering()),
    ("worlds.circular", 1, lambda k: circular_expert(LONG[: 100 * k], n_actions=30 * k)),
    ("dynamics.displacement", 4, lambda k: MANY_WAYS[k].log_likelihood(LONG[:300], LONG[:300])),
    ("dynamics.rollout", 3, lambda k: CircularMotion().rollout(5 * k, 40 * k, 0)[0].states),
    ("dynamics.rollout", 4, lambda k: GridWorld(3).rollout(5 * k, 40 * k, 0)[0].states),
    (
        "prediction.forecast",
        6,
        lambda k: made_up(plane_problem(), Mixing(2)).next_state_samples(LONG[: 20 * k], 30 * k),
    ),
]
MANY_WAYS = {k: DisplacementDynamics.compass(50 * k) for k in (1, 3)}


@pytest.mark.parametrize(("room", "times", "make"), ASKED, ids=[room for room, *_ in ASKED])
def test_estimates_grow_as_what_they_are_of(room, times, make, monkeypatch):
    estimates = []
    monkeypatch.setattr(f"onlooker.{room}.require_memory", lambda n, *_: estimates.append(n))
    for k in (1, 3):
        taken = make(k).nbytes
        assert estimates[-1] == times * taken


@pytest.mark.parametrize(("size", "sigma"), [(8, 1.0), (10, 0.5), (60, 0.5)])
def test_what_a_grid_takes_is_estimated_within_a_factor_of_four(size, sigma, monkeypatch):
    estimates = []
    monkeypatch.setattr("onlooker.worlds.grid.require_memory", lambda n, *_: estimates.append(n))
    dynamics = grid_dynamics(size, 4, sigma=sigma)
    if dynamics.is_sparse:
        tables = dynamics.matrices
        taken = sum(one.data.nbytes + one.indices.nbytes + one.indptr.nbytes for one in tables)
    else:
        taken = dynamics.toarray().nbytes
    assert 1 <= estimates[0] / taken < 4
