"""docs/theory on what is asked of the draws: predictions, consensus, p-values, unseen states."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm
from small_runs import made_up, plane_problem, ring_dynamics
from test_theory_draws import assert_drawn_from
from theory_pages import named, text_of

from onlooker.anomaly._predictive import Predictive
from onlooker.dynamics import DisplacementDynamics
from onlooker.missing.paths import make_gaps, make_moves
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Mixing, Potts

ALPHA = 0.7  # of `made_up`
QUERY = np.array([[0.4, -0.3]])


def draws_of(posterior):
    """Labels, counts ξ and policies of every draw, chains one after the other."""
    problem = posterior.problem
    n_nodes, n_actions = problem.n_nodes, problem.n_actions
    for z, a in zip(
        posterior.labels.reshape(-1, n_nodes),
        posterior.actions.reshape(-1, problem.n_transitions),
        strict=True,
    ):
        xi = np.zeros((z.max() + 1, n_actions))
        np.add.at(xi, (z[problem.node_of], a), 1)
        yield z, (xi + ALPHA) / (xi.sum(axis=1, keepdims=True) + n_actions * ALPHA)


# -- prediction -----------------------------------------------------------------------------------


def test_a_node_has_the_mean_policy_of_its_clusters():
    policy = named(
        "prediction.md",
        r"\pi_i = \frac{\xi_{z_i} + \alpha}{\xi_{z_i \cdot} + A\alpha}",
        "onlooker.Posterior.policy",
    )
    posterior = made_up(plane_problem(), Mixing(3))
    expected = np.mean([pi[z] for z, pi in draws_of(posterior)], axis=0)
    assert_allclose(policy(posterior), expected)


def test_local_predictions_weigh_neighbours_by_g_alone():
    page = text_of("prediction.md")
    assert r"\pi(s^*) = \frac{\sum_j g(d(s^*, s_j))\, \pi_j}{\sum_j g(d(s^*, s_j))}" in page
    named("prediction.md", '| `"local"` |', "onlooker.prediction.neighbours.smooth")
    posterior = made_up(plane_problem(), DistanceDependent(decay=GaussianDecay(0.9, 0.2)))
    g = np.exp(-(((posterior.problem.states - QUERY) ** 2).sum(axis=1)) / 0.9**2)
    expected = np.mean([g @ pi[z] / g.sum() for z, pi in draws_of(posterior)], axis=0)
    assert_allclose(posterior.policy(QUERY, extrapolate="local")[0], expected)


@pytest.mark.parametrize(
    ("row", "prior", "hyper"),
    [
        (r"$\zeta_k$ | $\gamma$", ChineseRestaurant(1.3), {"gamma": 1.3}),
        (r"$\zeta_k + \gamma/K$", Mixing(5, 0.8), {"gamma": 0.8}),
        (
            r"$\sum_{j \in C_k} f(d(s^*, s_j))$ | $\nu$",
            DistanceDependent(0.4, GaussianDecay(0.9, 0.05)),
            {"nu": 0.4},
        ),
        (
            r"\exp\bigl(\beta \sum_{j \in N(s^*)} f(d(s^*, s_j))\,\delta(k, z_j)\bigr)",
            Potts(4, beta=0.6, decay=GaussianDecay(0.9), n_neighbors=None),
            {"beta": 0.6},
        ),
    ],
    ids=["crp", "mixing", "ddcrp", "potts"],
)
def test_other_states_join_clusters_by_the_printed_weights(row, prior, hyper):
    assert row in text_of("prediction.md")
    posterior = made_up(plane_problem(), prior, hyper)
    d = np.linalg.norm(posterior.problem.states - QUERY, axis=1)
    average, likeliest = [], []
    for z, pi in draws_of(posterior):
        inside = [z == k for k in range(len(pi))]
        zeta = np.array([one.sum() for one in inside])
        if isinstance(prior, ChineseRestaurant):
            weights, new = zeta, 1.3
        elif isinstance(prior, Mixing):
            weights, new = zeta + 0.8 / 5, 0.8 / 5 * (5 - len(pi))
        else:
            f = np.array([prior.decay(d[one]).sum() for one in inside])
            weights, new = f, 0.4
            if isinstance(prior, Potts):
                weights, new = np.exp(0.6 * f), 4.0 - len(pi)
        average.append((weights @ pi + new / pi.shape[1]) / (weights.sum() + new))
        likeliest.append(pi[weights.argmax()])
        assert weights.max() > new  # else the likeliest cluster would be a new one
    assert_allclose(posterior.policy(QUERY, extrapolate="average")[0], np.mean(average, axis=0))
    if isinstance(prior, Potts | DistanceDependent):
        assert_allclose(posterior.policy(QUERY, extrapolate="map")[0], np.mean(likeliest, axis=0))


def test_the_next_state_mixes_what_actions_do():
    density = named(
        "prediction.md",
        r"\ln \sum_j T(s' \mid s, j)\, \pi_j(s)",
        "onlooker.Posterior.next_state_log_density",
    )
    posterior = made_up(plane_problem(), Mixing(3))
    states, ends = posterior.problem.states[:4], posterior.problem.states[:4] + 0.5
    transition = np.exp(posterior.problem.dynamics.log_likelihood(states, ends))
    expected = np.log((transition * posterior.policy()[:4]).sum(axis=1))
    assert_allclose(density(posterior, states, ends), expected)


# -- consensus ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "name", "f"),
    [
        (
            r"f(n) = \frac{n}{N} \log_2 n",
            "variation_of_information",
            lambda n, total: n / total * np.log2(n, out=np.zeros_like(n), where=n > 0),
        ),
        (r"f(n) = (n/N)^2", "binder_distance", lambda n, total: (n / total) ** 2),
    ],
    ids=["vi", "binder"],
)
def test_both_losses_have_the_printed_form(formula, name, f):
    form = r"L(x, y) = \sum_k f(n_k) + \sum_l f(m_l) - 2 \sum_{kl} f(n_{kl})"
    named("consensus.md", form, f"onlooker.consensus.{name}")
    distance = named("consensus.md", formula, f"onlooker.consensus.{name}")
    rng = np.random.default_rng(0)
    x, y = rng.integers(3, size=12), rng.integers(4, size=12)
    overlap = np.zeros((3, 4))
    np.add.at(overlap, (x, y), 1)
    own, other = overlap.sum(axis=1), overlap.sum(axis=0)
    value = f(own, 12).sum() + f(other, 12).sum() - 2 * f(overlap, 12).sum()
    assert_allclose(distance(x, y), value)


# -- anomalies ------------------------------------------------------------------------------------


def test_a_surprise_is_behaviour_and_blur():
    surprise = named(
        "anomaly.md",
        r"h_t = -\ln q(s_{t+1} \mid s_t)",
        "onlooker.anomaly._predictive.Predictive.surprise",
    )
    compass = DisplacementDynamics.compass(4, sigma=0.4)
    states, ends = np.zeros((1, 2)), np.array([[0.3, 0.8]])
    policy = np.array([[0.1, 0.6, 0.2, 0.1]])
    likelihood = np.exp(compass.log_likelihood(states, ends))[0]
    predictive = Predictive(compass, states, policy, np.zeros(1, dtype=np.int64))
    found = surprise(predictive, np.arange(1), compass.log_likelihood(states, ends))
    q, q_0 = likelihood @ policy[0], likelihood.mean()
    assert_allclose([found.behaviour[0], found.blur[0]], [-np.log(q / q_0), -np.log(q_0)])


def test_a_p_value_is_a_rank_among_replicates():
    rank = named(
        "anomaly.md",
        r"p = \frac{1 + \#\{\text{replicates as odd}\}}{1 + R}",
        "onlooker.anomaly._judge.rank",
    )
    from onlooker.anomaly._judge import COLUMNS

    rng = np.random.default_rng(0)
    observed, pool = rng.normal(size=(3, 5)), rng.normal(size=(20, 3, 5))
    table, _ = rank(observed, pool)
    expected = (1 + (pool >= observed).sum(axis=0)) / 21
    assert_allclose(table[:, 1:6], expected)
    assert COLUMNS[1:6] == ("p_value", "p_calm", "p_misfit", "p_change", "p_standstill")


def test_the_onset_has_the_posterior_of_an_integral():
    onset_posterior = named(
        "anomaly.md",
        r"\mathcal{N}(\delta; 0, 3^2)\, d\delta",
        "onlooker.anomaly._changes.onset_posterior",
    )
    assert r"S = \max(0, \sum_{t=\tau}^e x_t)" in text_of("anomaly.md")
    x = np.array([0.2, -0.1, 1.4, 0.9, 2.1])  # all tails sum to more than 0

    def weight(tail):
        def density(delta):
            return np.prod(norm.pdf(tail, delta) / norm.pdf(tail, 0)) * norm.pdf(delta, 0, 3)

        return quad(density, -30, 30, points=[tail.mean()])[0]

    weights = np.array([weight(x[tau:]) for tau in range(len(x))])
    assert_allclose(onset_posterior(x), weights / weights.sum(), rtol=1e-6)


# -- what was not seen ----------------------------------------------------------------------------


def test_gaps_are_drawn_with_the_probability_of_their_paths():
    draw_paths = named(
        "missing_states.md",
        r"m_{r+1}(s) = \sum_{s'} P(s' \mid s)\, m_r(s')",
        "onlooker.missing.paths.draw_paths",
    )
    dynamics = ring_dynamics(5)
    rng = np.random.default_rng(0)
    policy = rng.dirichlet(np.ones(3), size=5)
    moves = make_moves(dynamics)
    path = np.array([0, -1, -1, 2])
    gaps = make_gaps(path, np.array([1, 2]))
    transition = np.array([0, 1, 2, -1])
    actions, move_of = np.zeros(3, dtype=np.int32), np.zeros(3, dtype=np.int64)
    counts = np.zeros((5, 5), dtype=int)
    for _ in range(4_000):
        draw_paths(path, actions, move_of, transition, gaps, policy, moves, rng)
        counts[path[1], path[2]] += 1
    step = np.einsum("sj,sjt->st", policy, dynamics.toarray())  # P(s' | s)
    weights = np.zeros((5, 5))
    for s, t in itertools.product(range(5), repeat=2):
        weights[s, t] = step[0, s] * step[s, t] * step[t, 2]
    assert_drawn_from(counts.ravel(), weights.ravel())


def test_positions_are_drawn_from_the_gaussian_that_is_printed():
    draw_positions = named(
        "missing_states.md",
        r"x_{t+1} \sim \mathcal{N}(x_t + \mu u_{a_t}, \sigma^2 I), \qquad"
        r" y_t \sim \mathcal{N}(x_t, \varsigma^2 I)",
        "onlooker.missing.positions.draw_positions",
    )
    sigma, noise = 0.5, 0.3
    seen = np.array([[0.1], [np.nan], [1.5], [2.6]])
    drift = np.array([[0.6], [0.8], [1.0], [0.0]])
    steps = np.diff(np.eye(4), axis=0)  # x_{t+1} - x_t
    known = ~np.isnan(seen[:, 0])
    precision = steps.T @ steps / sigma**2 + np.diag(known / noise**2)
    pull = (
        steps.T @ drift[:3, 0] / sigma**2 + np.where(known, np.nan_to_num(seen[:, 0]), 0) / noise**2
    )
    cov = np.linalg.inv(precision)
    mean = cov @ pull
    rng = np.random.default_rng(0)
    drawn = np.empty((4_000, 4))
    for one in drawn:
        positions = np.zeros((4, 1))
        draw_positions(positions, seen, np.array([0, 4]), drift, sigma, noise, rng)
        one[:] = positions[:, 0]
    error = np.sqrt(np.diag(cov) / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - mean) < 4.5 * error).all()
    assert_allclose(np.cov(drawn.T), cov, atol=0.12 * cov.max())
