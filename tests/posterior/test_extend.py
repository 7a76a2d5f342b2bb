"""More data for a posterior: its chains go on, and end where a fresh run would."""

import exact
import numpy as np
import pytest
from agreement import canonical
from small_runs import PRIORS, assert_same_draws, plane_problem, quick, ring_dynamics

from onlooker import Demonstrations, Posterior, Problem
from onlooker.diagnostics import scalar_row
from onlooker.dynamics import DisplacementDynamics
from onlooker.hyper import Exponential, Gamma
from onlooker.inference.extension import extension
from onlooker.inference.runner import Runner
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Potts,
    Static,
    Uniform,
)
from onlooker.worlds import CircularMotion

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.warnings.ConvergenceWarning")

COORDINATES = np.array([[0.0, 0.0], [0.7, 0.3], [1.5, -0.2], [0.4, 1.6]])
DYNAMICS = ring_dynamics(4)
OLD, NEW = [[0, 1, 1]], [[2, 1], [3, 0, 1]]
PLANE = DisplacementDynamics.compass(4, sigma=0.3)


def tracks(n, length=6, seed=0):
    rng = np.random.default_rng(seed)
    steps = PLANE.steps[rng.integers(4, size=(n, length))] + rng.normal(0, 0.3, (n, length, 2))
    return list(np.concatenate([rng.normal(0, 1, (n, 1, 2)), steps], axis=1).cumsum(axis=1))


def last_states(plan):
    """The chains of a plan before their first sweep."""
    sampler = plan.prior.sampler(plan.problem)
    return [Runner(chain, plan, sampler).chain for chain in range(plan.chains)]


# -- the joint problem --------------------------------------------------------------------------


def test_an_extended_problem_is_the_problem_of_all_demonstrations():
    for old, new, dynamics in ((OLD, NEW, DYNAMICS), (tracks(3), tracks(2, seed=1), PLANE)):
        joint = Problem.from_demonstrations(old, dynamics).extended(Demonstrations(new))
        whole = Problem.from_demonstrations([*old, *new], dynamics)
        for name in ("node_of", "loglik", "states", "next_states"):
            np.testing.assert_array_equal(getattr(joint, name), getattr(whole, name))
        assert joint.dynamics is dynamics


@pytest.mark.parametrize("name", PRIORS)
def test_chains_go_on_from_the_last_draw(name):
    posterior = quick(Problem.from_demonstrations(tracks(3), PLANE), PRIORS[name])
    plan = extension(posterior, tracks(2, seed=1), 5, draws=4, tune=0)
    n_nodes, n_transitions = posterior.problem.n_nodes, posterior.problem.n_transitions
    for number, chain in enumerate(last_states(plan)):
        assert canonical(chain.labels[:n_nodes]) == canonical(posterior.labels[number, -1])
        np.testing.assert_array_equal(chain.actions[:n_transitions], posterior.actions[number, -1])
        if posterior.links is not None:
            np.testing.assert_array_equal(chain.links[:n_nodes], posterior.links[number, -1])
        for key, values in posterior.hyper.items():
            assert chain.state.hyper[key] == values[number, -1]
        assert np.isfinite(chain.log_joint())
        if chain.n_controllers < plan.problem.n_nodes:  # new nodes are in old clusters
            assert chain.n_controllers == posterior.n_controllers[number, -1]


def test_a_new_node_joins_the_nearest_old_one():
    posterior = quick(Problem.from_demonstrations(tracks(3), PLANE), DistanceDependent())
    plan = extension(posterior, tracks(2, seed=1), 5, draws=4, tune=0)
    old = posterior.problem.states
    for chain in last_states(plan):
        for node in range(len(old), plan.problem.n_nodes):
            away = np.linalg.norm(old - plan.problem.states[node], axis=1)
            assert chain.links[node] == away.argmin()


# -- the same posterior -------------------------------------------------------------------------


def _weights(scale, offset):
    return exact.gaussian_decay(scale, offset)(exact.pairwise_distances(COORDINATES))


CASES = {
    "static": (Static(), "static", {}),
    "uniform": (Uniform(2), "uniform", {"n_clusters": 2}),
    "mixing": (Mixing(3, 0.8), "mixing", {"n_clusters": 3, "gamma": 0.8}),
    "potts": (
        Potts(2, 0.9, GaussianDecay(1.2), n_neighbors=None, coordinates=COORDINATES),
        "potts",
        {
            "n_clusters": 2,
            "beta": 0.9,
            "weights": exact.weights_potts(
                exact.pairwise_distances(COORDINATES), exact.gaussian_decay(1.2)
            ),
        },
    ),
    "crp": (ChineseRestaurant(1.3), "crp", {"gamma": 1.3}),
    "ddcrp": (
        DistanceDependent(0.4, GaussianDecay(0.8, 0.1), coordinates=COORDINATES),
        "ddcrp",
        {"nu": 0.4},
    ),
}


def enumerated(model, options):
    """The posterior of old and new data, with nodes in order of appearance: 0, 1, 2, 3."""
    pairs = [(0, 1), (1, 1), (2, 1), (3, 0), (0, 1)]
    table = DYNAMICS.toarray()
    loglik = np.log([table[s, :, end] for s, end in pairs])
    if model == "ddcrp":
        options = options | {"weights": _weights(0.8, 0.1)}
    return getattr(exact, model)([s for s, _ in pairs], loglik, 4, 0.7, **options)


def extend_small(name, **options):
    prior, model, parameters = CASES[name]
    first = quick(Problem.from_demonstrations(OLD, DYNAMICS), prior, concentration=0.7)
    options = {"draws": 3_000, "tune": 20, "random_state": 1, "progress": False} | options
    return first.extend(NEW, **options), enumerated(model, parameters)


@pytest.mark.parametrize("name", CASES)
def test_extended_chains_match_the_enumerated_posterior_of_all_data(name):
    posterior, oracle = extend_small(name)
    assert exact.compare(posterior, oracle) == []


def test_an_extension_that_mistakes_the_new_transitions_is_caught(monkeypatch):
    right = Problem.extended

    def wrong(self, demos):
        problem = right(self, demos)
        mixed = Problem(problem.node_of, problem.loglik[[0, 1, 3, 2, 4]], problem.states)
        mixed.set_world(problem.dynamics, problem.next_states)
        return mixed

    monkeypatch.setattr(Problem, "extended", wrong)
    posterior, oracle = extend_small("mixing")
    assert exact.compare(posterior, oracle) != []


def test_extended_and_fresh_chains_cannot_be_told_apart():
    world = CircularMotion(n_actions=8)
    demos, _ = world.rollout(4, 25, random_state=0)
    prior = DistanceDependent(Exponential(0.1))
    options = {"draws": 1_000, "chains": 2, "random_state": 4, "concentration": 0.3}
    first = quick(Problem.from_demonstrations(demos[:3], world.dynamics), prior, **options)
    longer = first.extend(demos[3:], tune=100, random_state=7, progress=False)
    fresh = quick(Problem.from_demonstrations(demos, world.dynamics), prior, tune=300, **options)
    for name in ("n_controllers", "log_joint"):
        both = np.concatenate([getattr(longer, name), getattr(fresh, name)]).astype(float)
        assert scalar_row(both)["r_hat"] < 1.05, name
    assert np.abs(longer.policy() - fresh.policy()).max() < 0.12
    together = np.abs(longer.co_clustering() - fresh.co_clustering())
    assert together.mean() < 0.03


# -- in and out ---------------------------------------------------------------------------------


def test_an_extension_can_be_stored_stopped_and_resumed(tmp_path):
    posterior = quick(Problem.from_demonstrations(tracks(3), PLANE), DistanceDependent())
    options = {"tune": 3, "random_state": 2, "progress": False}
    whole = posterior.extend(tracks(1, seed=1), draws=9, **options)
    posterior.extend(tracks(1, seed=1), draws=4, store=tmp_path / "run", **options)
    posterior.save(tmp_path / "first.npz")
    loaded = Posterior.load(tmp_path / "first.npz")
    parts = loaded.extend(
        tracks(1, seed=1), draws=9, store=tmp_path / "run", resume=True, **options
    )
    assert_same_draws(whole, parts)
    assert_same_draws(whole, Posterior.load(tmp_path / "run"))
    other = quick(Problem.from_demonstrations(tracks(3), PLANE), DistanceDependent(), draws=5)
    with pytest.raises(ValueError, match="another run"):
        other.extend(tracks(1, seed=1), draws=9, store=tmp_path / "run", resume=True, **options)


def test_extensions_can_be_extended():
    posterior = quick(Problem.from_demonstrations(OLD, DYNAMICS), ChineseRestaurant())
    posterior = posterior.extend(NEW[:1], tune=2, random_state=0, progress=False)
    posterior = posterior.extend(NEW[1:], tune=2, random_state=0, progress=False)
    whole = Problem.from_demonstrations([*OLD, *NEW], DYNAMICS)
    np.testing.assert_array_equal(posterior.problem.node_of, whole.node_of)


def test_controllers_that_are_drawn_go_on_too():
    posterior = quick(
        Problem.from_demonstrations(OLD, DYNAMICS), ChineseRestaurant(), collapsed=False
    )
    longer = posterior.extend(NEW, tune=2, random_state=0, progress=False)
    assert longer.labels.shape == (2, 8, 4)


def test_unknown_noise_goes_on_from_its_last_draw():
    dynamics = DisplacementDynamics.compass(4, sigma=Gamma(2.0, 6.0))
    posterior = quick(Problem.from_demonstrations(tracks(3), dynamics), Mixing(2))
    plan = extension(posterior, tracks(2, seed=1), 5, draws=4, tune=0)
    for number, chain in enumerate(last_states(plan)):
        sigma = posterior.hyper["sigma"][number, -1]
        assert chain.state.hyper["sigma"] == sigma
        states = plan.problem.states[plan.problem.node_of]
        table = dynamics.at({"sigma": sigma}).log_likelihood(states, plan.problem.next_states)
        scaled = np.exp(table - table.max(axis=1, keepdims=True))
        np.testing.assert_allclose(chain.data.likelihood, scaled[chain.layout.order], atol=1e-12)


@pytest.mark.parametrize(
    ("demos", "message"),
    [([[0, 1]], "new demonstrations have states of shape"), ([[[0.0, 1.0, 2.0]] * 2], "shape")],
)
def test_demonstrations_of_another_world_are_refused(demos, message):
    posterior = quick(Problem.from_demonstrations(tracks(2), PLANE), Mixing(2))
    with pytest.raises(ValueError, match=message):
        posterior.extend(demos)


def test_a_problem_without_dynamics_cannot_be_extended():
    problem = plane_problem()
    problem.dynamics = None
    with pytest.raises(ValueError, match="without dynamics"):
        quick(problem, Mixing(2)).extend(tracks(1))
