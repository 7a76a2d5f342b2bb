"""Maximum entropy inverse reinforcement learning, over paths and causal.

Ziebart, Maas, Bagnell, Dey, "Maximum entropy inverse reinforcement learning", AAAI 2008;
Ziebart, Bagnell, Dey, "Modeling interaction via the principle of maximum causal entropy", 2010.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from scipy.optimize import minimize

from onlooker.baselines._soft_models import CausalModel, PathModel, SoftModel
from onlooker.baselines.base import (
    TabularBaseline,
    check_features,
    discounted_visits,
    starts_by_length,
)
from onlooker.checks import Array, one_of, positive_integer, positive_number
from onlooker.demonstrations import Demonstrations
from onlooker.planning import value_iteration
from onlooker.planning.transitions import Transitions
from onlooker.progress import make_progress


class MaximumEntropyIRL(TabularBaseline):
    r"""The reward under which the demonstrations are most likely, for a soft planner.

    The reward is linear in state features, :math:`r_\theta(s) = \theta^\top\varphi(s)`, and the
    expert is soft-optimal for it: with ``entropy="causal"``,

    .. math:: V(s) = \log\sum_a \exp\Big(r_\theta(s) + \gamma\sum_{s'} T(s'|s,a) V(s')\Big),

    and with ``entropy="path"`` (2008) the logarithm is taken over next states as well,
    :math:`V(s) = r_\theta(s) + \log\sum_{a,s'} T(s'|s,a)\, e^{\gamma V(s')}`.

    Without a horizon, the fit maximises, averaged over trajectories,

    .. math:: \sum_t \big[r_\theta(s_t) + \gamma V(s_{t+1}) - V(s_t)\big]
              - \tfrac{\lambda}{2}\lVert\theta\rVert^2.

    For the path form the bracket is, up to a constant, the log-probability of the transition;
    for the causal form it is an unbiased estimate of the log-probability of the unseen action.
    Trajectories may thus end before the expert's plan does. With ``horizon="length"`` each
    trajectory is a complete plan, and the fit maximises the concave dual
    :math:`\sum_t\gamma^t r_\theta(s_t) - V_0(s_0)`.

    The derivative is what was seen less what the model expects, so the optimum matches features.
    Planning is in log space, so nothing overflows; the optimiser is L-BFGS with line search.

    Parameters
    ----------
    dynamics : TabularDynamics
    features : array_like or sparse matrix of shape (S, F), optional
        State features; by default one indicator a state.
    discount : float
        The expert's discount factor γ; may be 1 with a horizon.
    entropy : {"causal", "path"}
    horizon : {None, "length"}
        None: the expert plans for ever. "length": it plans to the end of each trajectory.
    policy : {"soft", "greedy"}
        Predict with the soft policy, or with the optimal one for the learned reward.
    l2 : float
        Penalty λ. Finitely many trajectories of a noisy world ask for features that no policy
        has; without a penalty the reward then grows without bound.
    tolerance : float
        The fit ends when no component of the derivative exceeds this.
    max_iter : int
    progress : bool

    Attributes
    ----------
    policy_ : ndarray of shape (S, A)
        With a horizon, the policy at the start of the longest trajectory.
    weights_ : ndarray of shape (F,)
    reward_ : ndarray of shape (S,)
    values_ : ndarray of shape (S,)
        Soft values.
    feature_residual_ : float
        Largest difference between seen and expected features (penalty left aside).
    convergence_ : Convergence
        Its residual is the largest component of the derivative.
    """

    def __init__(
        self,
        dynamics: Any,
        features: Any = None,
        discount: float = 0.9,
        *,
        entropy: str = "causal",
        horizon: str | None = None,
        policy: str = "soft",
        l2: float = 4e-3,
        tolerance: float = 1e-4,
        max_iter: int = 1000,
        progress: bool = False,
    ) -> None:
        self.dynamics = dynamics
        self.features = features
        self.discount = discount
        self.entropy = entropy
        self.horizon = horizon
        self.policy = policy
        self.l2 = l2
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.progress = progress

    def fit(self, demos: Any, y: None = None) -> Self:
        """Learn the reward."""
        one_of("entropy", self.entropy, ("causal", "path"))
        one_of("policy", self.policy, ("soft", "greedy"))
        if self.horizon not in (None, "length"):
            raise ValueError(f"horizon must be None or 'length', got {self.horizon!r}")
        l2 = positive_number("l2", self.l2, zero_ok=True)
        tolerance = positive_number("tolerance", self.tolerance)
        max_iter = positive_integer("max_iter", self.max_iter)
        demos, move = self._start(demos)
        features = check_features(self.features, move.n_states)
        objective: _Objective = (
            _Continuing(demos, move, self.discount, self.entropy)
            if self.horizon is None
            else _Episodic(demos, move, self.discount, self.entropy)
        )

        def loss(theta: Array) -> tuple[float, Array]:
            value, slope = objective(features @ theta)
            return -value + 0.5 * l2 * float(theta @ theta), -(features.T @ slope) + l2 * theta

        with make_progress(self.progress, max_iter, "maximum entropy", "iterations") as bar:
            result = _lbfgs(loss, features.shape[1], tolerance, max_iter, bar.update)
        self.weights_ = result.x
        self.reward_ = np.asarray(features @ result.x)
        slope = features.T @ objective(self.reward_)[1]
        self.feature_residual_ = float(np.abs(slope).max())
        self.values_ = objective.values
        if self.policy == "soft":
            self.policy_ = objective.policy(self.reward_)
        else:
            self.policy_ = self._greedy(move, demos)
        residual = float(np.abs(slope - l2 * result.x).max())
        self._report(
            residual <= tolerance,
            result.nit,
            residual,
            f"derivative {residual:.2g}, tolerance {tolerance:g}",
            "raise max_iter" if result.nit >= max_iter else "raise l2",
        )
        return self

    def _greedy(self, move: Transitions, demos: Demonstrations) -> Array:
        if self.horizon is None:
            return value_iteration(move, self.reward_, self.discount).policy
        longest = int(demos.lengths.max())
        return value_iteration(move, self.reward_, self.discount, horizon=longest).policy[0]


def _model(entropy: str, move: Transitions) -> SoftModel:
    return CausalModel(move) if entropy == "causal" else PathModel(move)


class _Objective(Protocol):
    """Log-likelihood of a reward and its derivative; remembers the plan of the last call."""

    values: Array

    def __call__(self, reward: Array) -> tuple[float, Array]: ...
    def policy(self, reward: Array) -> Array: ...


class _Continuing:
    """The expert plans for ever; a trajectory is a piece of what it does."""

    def __init__(
        self, demos: Demonstrations, move: Transitions, discount: float, entropy: str
    ) -> None:
        states, next_states = demos.transitions()
        n, n_states = len(demos), move.n_states
        self.left = np.bincount(states, minlength=n_states) / n
        self.arrived = np.bincount(next_states, minlength=n_states) / n
        self.discount = discount
        self.model = _model(entropy, move)
        self.values = np.zeros(n_states)

    def __call__(self, reward: Array) -> tuple[float, Array]:
        self.values, chain = self.model.solve(reward, self.discount, self.values)
        credit = self.discount * self.arrived - self.left
        value = self.left @ reward + credit @ self.values
        return float(value), self.left + chain.flow(credit)

    def policy(self, reward: Array) -> Array:
        return self.model.policy(reward, self.discount, self.values)


class _Episodic:
    """Each trajectory is a plan of its own length; one backward pass serves all lengths."""

    def __init__(
        self, demos: Demonstrations, move: Transitions, discount: float, entropy: str
    ) -> None:
        if not 0 <= discount <= 1:
            raise ValueError(f"discount must be in [0, 1], got {discount!r}")
        self.seen = discounted_visits(demos, move.n_states, discount)
        self.starts = starts_by_length(demos, move.n_states)
        self.discount = discount
        self.model = _model(entropy, move)
        self.n_states = move.n_states

    def __call__(self, reward: Array) -> tuple[float, Array]:
        longest = max(self.starts)
        # values[k] and chain[k]: with k more states to come after this one.
        values = [reward]
        chain: list[Any] = [None]
        for _ in range(longest - 1):
            new, step = self.model.step(reward, self.discount, values[-1])
            values.append(new)
            chain.append(step)
        value = self.seen @ reward
        expected = np.zeros(self.n_states)
        mass = np.zeros(self.n_states)
        for k in range(longest - 1, -1, -1):
            start = self.starts.get(k + 1)
            if start is not None:
                value -= start @ values[k]
                mass = mass + start
            expected += mass
            if k > 0:
                mass = self.discount * chain[k].push(mass)
        self.values, self._following = values[-1], values[-2]
        return float(value), self.seen - expected

    def policy(self, reward: Array) -> Array:
        return self.model.policy(reward, self.discount, self._following)


def _lbfgs(loss: Any, n: int, tolerance: float, max_iter: int, update: Any) -> Any:
    done = 0

    def callback(intermediate_result: Any) -> None:
        nonlocal done
        done += 1
        update(done, f"loss {intermediate_result.fun:.6f}")

    return minimize(
        loss,
        np.zeros(n),
        jac=True,
        method="L-BFGS-B",
        callback=callback,
        options={
            "maxiter": max_iter,
            "maxfun": 20 * max_iter,
            "maxcor": 20,
            "gtol": tolerance,
            "ftol": 0.0,
        },
    )
