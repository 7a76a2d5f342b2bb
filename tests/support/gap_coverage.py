"""Whether intervals cover the truth where positions were not seen, or not exactly.

All is drawn from the prior, as coverage needs: weights, labels, controllers, actions, positions.
"""

from __future__ import annotations

import numpy as np
from bare import bare_problem
from chains import draws_of

from onlooker import Demonstrations
from onlooker.dynamics import DisplacementDynamics
from onlooker.partitions import Mixing

LEVEL = 0.9
ALPHA = 0.5
CLUSTERS = 2


def covered(
    seed: int,
    gap: int,
    sigma: float,
    noise: float = 0.0,
    *,
    n_directions: int = 8,
    n_trajectories: int = 10,
    sweeps: int = 1000,
) -> tuple[float, float]:
    """Shares of a data set's action probabilities and of its unknown coordinates that are covered.

    Steps have length 1. A trajectory has 12 transitions or a few more; `gap` states are unseen
    between any two that were seen.
    """
    rng = np.random.default_rng([seed, gap, int(1000 * sigma), int(1000 * noise)])
    dynamics = DisplacementDynamics.compass(n_directions, sigma=sigma)
    weights = rng.dirichlet(np.full(CLUSTERS, 1.0 / CLUSTERS))
    theta = rng.dirichlet(np.full(n_directions, ALPHA), size=CLUSTERS)
    n = (gap + 1) * -(-12 // (gap + 1))
    positions, labels = [], []
    for k in range(n_trajectories):
        z = rng.choice(CLUSTERS, p=weights, size=n)
        actions = [rng.choice(n_directions, p=theta[label]) for label in z]
        moves = dynamics.steps[actions] + rng.normal(0.0, sigma, (n, 2))
        positions.append(np.concatenate([np.zeros((1, 2)), np.cumsum(moves, axis=0)]) + 100.0 * k)
        labels.append(z)
    seen = np.array(positions)
    if noise:
        seen += rng.normal(0.0, noise, seen.shape)
    seen[:, np.arange(n + 1) % (gap + 1) > 0] = np.nan
    demos = Demonstrations(list(seen), missing="infer")
    problem = bare_problem(demos, dynamics, observation_noise=noise or None)
    draws = draws_of(
        problem,
        Mixing(CLUSTERS, 1.0),
        sweeps=sweeps,
        seed=seed,
        alpha=ALPHA,
        more={"positions": lambda chain: chain.state.unseen.states.copy()},
    )
    policies = _policies(draws, problem.node_of, n_directions, rng)
    unknown = (
        np.isnan(seen).any(axis=2).ravel() if noise == 0.0 else np.ones(seen[..., 0].size, bool)
    )
    where = draws.positions[:, sweeps // 4 :, unknown]
    truth = np.concatenate(positions)[unknown]
    return _share(policies, theta[np.concatenate(labels)]), _share(where, truth)


def _share(draws, truth) -> float:
    """Of true values within the central interval of their draws, ``(chain, draw, ...)``."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=(0, 1))
    return float(((low <= truth) & (truth <= high)).mean())


def _policies(draws, node_of, n_actions, rng):
    """``(chain, draw, transition, A)``: ``θ_k ~ Dir(ξ_k + α)`` in every draw, where steps start."""
    quarter = draws.labels.shape[1] // 4
    labels, actions = draws.labels[:, quarter:, node_of], draws.actions[:, quarter:]
    at = np.indices(labels.shape, sparse=True)[:2]
    counts = np.zeros((*labels.shape[:2], CLUSTERS, n_actions))
    np.add.at(counts, (*at, labels, actions), 1)
    theta = rng.standard_gamma(counts + ALPHA)
    theta /= theta.sum(axis=-1, keepdims=True)
    return theta[(*at, labels)]
