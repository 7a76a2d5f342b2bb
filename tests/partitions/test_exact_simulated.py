"""The oracle agrees with plain simulation, and tells right draws from wrong ones."""

import itertools
from types import SimpleNamespace

import exact
import numpy as np
import pytest
from scipy import stats

NODE_OF, LOGLIK, N, COORDINATES = exact.small_problem()
DISTANCES = exact.pairwise_distances(COORDINATES)
WEIGHTS = exact.gaussian_decay(1.0, 0.01)(DISTANCES)
COUPLING = exact.weights_potts(DISTANCES, exact.gaussian_decay(), n_neighbors=2)

# ---------------------------------------------------------------- plain simulation


def simulate(prior, alpha, rng, size):
    """Draw hyper-parameters, partition, controllers and actions forwards; weigh by likelihood.

    No formula of the oracle is used: controllers, mixing weights and links are all explicit.
    """
    labels = np.array([prior(rng) for _ in range(size)])
    alphas = alpha.rvs(size, random_state=rng)
    gammas = rng.standard_gamma(np.broadcast_to(alphas[:, None, None], (size, N, 3)))
    theta = gammas / gammas.sum(axis=-1, keepdims=True)
    controller = np.take_along_axis(theta, labels[:, NODE_OF, None], axis=1)  # (size, M, A)
    u = rng.random((size, len(NODE_OF), 1))
    actions = np.minimum((np.cumsum(controller, axis=-1) < u).sum(axis=-1), 2)
    weight = np.exp(LOGLIK[np.arange(len(NODE_OF)), actions].sum(axis=1))
    return labels, actions, alphas, weight


def mixing_prior(rng):
    q = rng.dirichlet(np.full(3, 1.5 / 3))
    return rng.choice(3, size=N, p=q)


def crp_prior(rng):
    labels = [0]
    for i in range(1, N):
        j = rng.random() * (i + 1.5)
        labels.append(labels[int(j)] if j < i else max(labels) + 1)
    return labels


def ddcrp_prior(rng):
    nu = rng.exponential(0.5)
    links = []
    for i in range(N):
        p = WEIGHTS[i].copy()
        p[i] = nu
        links.append(rng.choice(N, p=p / p.sum()))
    reach = np.eye(N, dtype=bool)
    for i, j in enumerate(links):
        reach[i, j] = reach[j, i] = True
    reach = np.linalg.matrix_power(reach.astype(int), N) > 0
    return reach.argmax(axis=1)


def potts_prior(rng):
    beta = rng.gamma(2.0, 0.5)
    while True:  # rejection, so that the normaliser is never needed
        z = rng.integers(3, size=N)
        same = np.equal.outer(z, z)
        if rng.random() < np.exp(-beta * (COUPLING * ~same).sum() / 2):
            return z


ALPHA = stats.gamma(2.0, scale=0.5)
SIMULATED = {
    "mixing": (mixing_prior, lambda *data: exact.mixing(*data, ALPHA, 3, 1.5)),
    "crp": (crp_prior, lambda *data: exact.crp(*data, ALPHA, 1.5)),
    "ddcrp": (
        ddcrp_prior,
        lambda *data: exact.ddcrp(*data, ALPHA, stats.expon(scale=0.5), WEIGHTS),
    ),
    "potts": (
        potts_prior,
        lambda *data: exact.potts(*data, ALPHA, 3, stats.gamma(2.0, scale=0.5), COUPLING),
    ),
}


@pytest.mark.parametrize("name", SIMULATED)
def test_forward_simulation_agrees(name):
    prior, posterior = SIMULATED[name]
    result = posterior(NODE_OF, LOGLIK, N)
    size = 20_000
    labels, actions, alphas, weight = simulate(prior, ALPHA, np.random.default_rng(1), size)
    numbers = [(weight, np.exp(result.log_evidence), np.ones(size))]
    share = weight / weight.mean()
    for i, j in itertools.combinations(range(N), 2):
        numbers.append((labels[:, i] == labels[:, j], result.co_clustering[i, j], share))
    for (t, j), p in np.ndenumerate(result.actions):
        numbers.append((actions[:, t] == j, p, share))
    numbers.append((alphas, result.hyper["alpha"][0], share))
    for x, truth, w in numbers:
        influence = w * (x - truth)
        assert abs(influence.mean()) < 5.0 * influence.std() / np.sqrt(size)


# ---------------------------------------------------------------- the comparison


def right(name, alpha=0.8, concentration=1.5):
    data = (NODE_OF, LOGLIK, N)
    if name == "crp":
        return exact.crp(*data, alpha, concentration)
    return exact.ddcrp(*data, alpha, stats.expon(scale=concentration), WEIGHTS)


def slow_down(draws, rng, stay):
    """The same posterior visited by a lazy chain: each draw repeats with probability `stay`."""
    chains, n = draws.labels.shape[:2]
    last = np.where(rng.random((chains, n)) < stay, 0, np.arange(n))
    index = np.maximum.accumulate(last, axis=1)
    rows = np.arange(chains)[:, None]
    hyper = {name: x[rows, index] for name, x in draws.hyper.items()}
    return SimpleNamespace(
        labels=draws.labels[rows, index], actions=draws.actions[rows, index], hyper=hyper
    )


@pytest.mark.parametrize("name", ["crp", "ddcrp"])
def test_right_independent_draws_pass_for_many_seeds(name):
    posterior = right(name)
    for seed in range(100):
        draws = exact.draw(posterior, 4, 1000, np.random.default_rng(seed))
        assert exact.compare(draws, posterior, alpha=0.8) == []


@pytest.mark.parametrize("name", ["crp", "ddcrp"])
def test_right_but_autocorrelated_draws_pass_for_many_seeds(name):
    posterior = right(name)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        draws = slow_down(exact.draw(posterior, 4, 5000, rng), rng, stay=0.9)
        assert exact.compare(draws, posterior, alpha=0.8) == []


@pytest.mark.parametrize("name", ["crp", "ddcrp"])
@pytest.mark.parametrize("wrong", [{"alpha": 1.0}, {"concentration": 1.8}])
def test_slightly_wrong_hyper_parameters_are_caught(name, wrong):
    posterior = right(name)
    for seed in range(5):
        draws = exact.draw(right(name, **wrong), 4, 10_000, np.random.default_rng(seed))
        assert exact.compare(draws, posterior, alpha=0.8) != []


def test_a_hyper_parameter_drawn_without_regard_to_the_partition_is_caught():
    posterior = right("ddcrp")
    for seed in range(5):
        rng = np.random.default_rng(seed)
        draws = exact.draw(posterior, 4, 5000, rng)
        draws.hyper["nu"] = rng.permuted(draws.hyper["nu"], axis=1)
        problems = exact.compare(draws, posterior, alpha=0.8)
        assert problems
        assert all("nu;" in line for line in problems)


def test_an_inferred_alpha_is_compared_and_used_for_the_policies():
    posterior = exact.crp(NODE_OF, LOGLIK, N, ALPHA, stats.gamma(2.0))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        draws = exact.draw(posterior, 2, 5000, rng)
        assert exact.compare(draws, posterior) == []
        draws.hyper["alpha"] *= 1.1
        assert any("E[alpha]" in line for line in exact.compare(draws, posterior))
        draws.hyper["alpha"] = ALPHA.rvs(draws.hyper["alpha"].shape, random_state=rng)
        assert any("policy" in line for line in exact.compare(draws, posterior))


def test_an_impossible_event_is_caught_even_if_seen_once():
    posterior = exact.uniform(NODE_OF, LOGLIK, N, 0.8, 2)
    draws = exact.draw(posterior, 4, 1000, np.random.default_rng(0))
    draws.labels[2, 500] = [0, 1, 2, 0]
    assert [line.split(":")[0] for line in exact.compare(draws, posterior, alpha=0.8)] == [
        "P(3 different z)",
        "P(z = (0, 1, 2, 0))",
    ]


def test_a_stuck_chain_is_caught():
    posterior = right("crp")
    one = exact.draw(posterior, 4, 1, np.random.default_rng(0))
    stuck = SimpleNamespace(
        labels=np.repeat(one.labels, 2000, axis=1), actions=np.repeat(one.actions, 2000, axis=1)
    )
    assert exact.compare(stuck, posterior, alpha=0.8) != []


def test_renaming_clusters_changes_nothing():
    posterior = right("crp")
    rng = np.random.default_rng(0)
    draws = exact.draw(posterior, 4, 1000, rng)
    names = rng.permuted(np.tile(np.arange(9), (4, 1000, 1)), axis=-1)
    draws.labels = np.take_along_axis(names, draws.labels, axis=-1)
    assert exact.compare(draws, posterior, alpha=0.8) == []


def test_missing_hyper_draws_too_few_draws_and_wrong_shapes_are_refused():
    posterior = right("ddcrp")
    draws = exact.draw(posterior, 4, 1000, np.random.default_rng(0))
    with pytest.raises(ValueError, match="alpha"):
        exact.compare(draws, posterior)
    few = SimpleNamespace(labels=draws.labels[:, :99], actions=draws.actions[:, :99], hyper={})
    with pytest.raises(ValueError, match="too few"):
        exact.compare(few, posterior, alpha=0.8)
    cut = SimpleNamespace(labels=draws.labels[..., 1:], actions=draws.actions, hyper={})
    with pytest.raises(ValueError, match="nodes"):
        exact.compare(cut, posterior, alpha=0.8)
    draws.hyper = {}
    assert exact.compare(draws, posterior, alpha=0.8) == ["nu: no draws"]
