"""Apprenticeship learning by matching feature expectations.

Abbeel, Ng, "Apprenticeship learning via inverse reinforcement learning", ICML 2004.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.optimize import nnls

from onlooker.baselines.base import (
    TabularBaseline,
    check_features,
    discounted_visits,
    starts_by_length,
)
from onlooker.checks import Array, one_of, positive_integer, positive_number
from onlooker.planning import policy_iteration
from onlooker.planning.transitions import Transitions
from onlooker.progress import make_progress


class MaximumMarginIRL(TabularBaseline):
    r"""Policies whose mixture visits states as the expert does.

    With discounted feature counts :math:`\mu = E\sum_t \gamma^t\varphi(s_t)`, each round takes
    the reward weights :math:`w = \mu_E - \bar\mu`, adds the optimal policy for them, and moves
    :math:`\bar\mu` towards :math:`\mu_E`:

    - ``method="projection"`` projects :math:`\mu_E` onto the line through :math:`\bar\mu` and the
      new policy's counts (Section 3.1);
    - ``method="qp"`` onto the convex hull of all counts so far, which is the dual of the
      maximum margin problem (Section 3).

    Counts of a policy are taken over as many states as the trajectories have, from where these
    start, so that both sides are cut off alike.

    Parameters
    ----------
    dynamics : TabularDynamics
    features : array_like or sparse matrix of shape (S, F), optional
        State features; by default one indicator a state.
    discount : float
        The expert's discount factor.
    method : {"projection", "qp"}
    select : {"best", "mixture", "last"}
        What to predict with: the policy whose counts are nearest to the expert's, the mixture
        whose counts are nearest, or the last policy found. At each state the mixture's members
        count by how often they come there.
    tolerance : float
        Stops when the mixture is this near to the expert, or gets nearer by less than a
        thousandth of it a round.
    max_iter : int
        Most policies to find, besides the first, which acts at random and is never selected
        alone.
    progress : bool

    Attributes
    ----------
    policy_ : ndarray of shape (S, A)
    policies_ : ndarray of shape (n, S, A)
        The policies found, without the random one.
    mixture_ : ndarray of shape (n,)
        Weights of `policies_` in the mixture nearest to the expert.
    distances_ : ndarray of shape (n,)
        Distance of each policy's counts from the expert's.
    weights_ : ndarray of shape (F,)
        Reward weights of the last round.
    reward_ : ndarray of shape (S,)
        Reward of the last round.
    convergence_ : Convergence
        Its residual is the distance between the mixture and the expert.
    """

    def __init__(
        self,
        dynamics: Any,
        features: Any = None,
        discount: float = 0.9,
        *,
        method: str = "projection",
        select: str = "best",
        tolerance: float = 1e-3,
        max_iter: int = 40,
        progress: bool = False,
    ) -> None:
        self.dynamics = dynamics
        self.features = features
        self.discount = discount
        self.method = method
        self.select = select
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.progress = progress

    def fit(self, demos: Any, y: None = None) -> Self:
        """Find the policies."""
        one_of("method", self.method, ("projection", "qp"))
        one_of("select", self.select, ("best", "mixture", "last"))
        tolerance = positive_number("tolerance", self.tolerance)
        max_iter = positive_integer("max_iter", self.max_iter)
        demos, move = self._start(demos)
        features = check_features(self.features, move.n_states)
        expert = np.asarray(features.T @ discounted_visits(demos, move.n_states, self.discount))
        starts = starts_by_length(demos, move.n_states)

        uniform = np.full((move.n_states, move.n_actions), 1 / move.n_actions)
        nearest = features.T @ _visits(move, uniform, starts, self.discount)
        policies: list[Array] = []
        visits: list[Array] = []
        counts: list[Array] = [nearest]
        margin, gain = float(np.linalg.norm(expert - nearest)), np.inf
        values = None
        with make_progress(self.progress, max_iter, "maximum margin", "iterations") as bar:
            while margin > tolerance and gain > 1e-3 * tolerance and len(policies) < max_iter:
                # Only the direction matters for the policy; its size would matter for rounding.
                self.weights_ = (expert - nearest) / margin
                reward = np.asarray(features @ self.weights_)
                plan = policy_iteration(move, reward, self.discount, initial=values)
                values = plan.values
                policies.append(plan.policy)
                visits.append(_visits(move, plan.policy, starts, self.discount))
                counts.append(features.T @ visits[-1])
                nearest = _towards(self.method, expert, nearest, counts)
                before, margin = margin, float(np.linalg.norm(expert - nearest))
                gain = before - margin
                bar.update(len(policies), f"margin {margin:.4f}")
        if not policies:
            raise ValueError(
                "the random policy already matches the demonstrations to within tolerance="
                f"{tolerance:g}; lower it"
            )
        self.reward_ = np.asarray(features @ self.weights_)
        self.policies_ = np.array(policies)
        self.distances_ = np.linalg.norm(np.array(counts[1:]) - expert, axis=1)
        self.mixture_ = _hull_weights(expert, np.array(counts[1:]))
        self.policy_ = self._choose(np.array(visits))
        self._report(
            margin <= tolerance or gain <= 1e-3 * tolerance,
            len(policies),
            margin,
            f"margin {margin:.2g}, last round's gain {gain:.2g}, tolerance {tolerance:g}",
            "raise max_iter or tolerance",
        )
        return self

    def _choose(self, visits: Array) -> Array:
        if self.select == "last":
            return np.asarray(self.policies_[-1])
        if self.select == "best":
            return np.asarray(self.policies_[self.distances_.argmin()])
        # A member is met at a state as often as it goes there; where none goes, by its weight.
        share = self.mixture_[:, None] * visits
        total = share.sum(axis=0)
        share = np.where(total > 0, share / np.where(total > 0, total, 1), self.mixture_[:, None])
        return np.einsum("ns,nsa->sa", share, self.policies_)


def _visits(move: Transitions, policy: Array, starts: dict[int, Array], discount: float) -> Array:
    """Discounted visits within the trajectories' lengths, averaged over trajectories."""
    chain = move.under(policy)
    mass = np.array(list(starts.values())).T
    left = np.array(list(starts))
    total = mass.sum(axis=1)
    for t in range(1, int(left.max())):
        mass = discount * (chain.T @ mass)
        total = total + mass[:, left > t].sum(axis=1)
    return np.asarray(total)


def _towards(method: str, expert: Array, nearest: Array, counts: list[Array]) -> Array:
    if method == "qp":
        hull = np.array(counts)
        return np.asarray(_hull_weights(expert, hull) @ hull)
    step = counts[-1] - nearest
    length = float(step @ step)
    share = float(step @ (expert - nearest)) / length if length > 0 else 0.0
    return np.asarray(nearest + min(max(share, 0.0), 1.0) * step)


def _hull_weights(expert: Array, counts: Array) -> Array:
    """Weights of the point of the convex hull of `counts` that is nearest to `expert`.

    Non-negative least squares for ``λ (counts − expert) ≈ 0`` and ``Σλ ≈ 1``: scaling ``λ`` trades
    the two off alike for every direction, so that the normalised solution is exact.
    """
    offset = counts - expert
    scale = max(float(np.linalg.norm(offset, axis=1).max()), 1e-300)
    system = np.vstack([offset.T / scale, np.ones(len(counts))])
    target = np.zeros(len(system))
    target[-1] = 1.0
    # An orthogonal reduction to few rows changes nothing but the speed.
    q, r = np.linalg.qr(system)
    weights, _ = nnls(r, q.T @ target)
    return np.asarray(weights / weights.sum())
