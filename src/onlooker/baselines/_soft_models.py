"""Soft planners of maximum entropy methods: the causal one, and the one over whole paths.

Both solve ``V = F(V)`` for a convex ``F`` whose derivative is ``γ`` times a Markov chain, so that
Newton's method converges from anywhere, and derivatives of ``V`` are flows of that chain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from onlooker.checks import Array
from onlooker.planning import policy_iteration, soft_policy
from onlooker.planning.bellman import (
    back_up,
    check_discount,
    evaluate,
    macqueen_bounds,
    visit_forever,
)
from onlooker.planning.transitions import Transitions

# Newton's method needs about ten steps; this only guards against rounding without end.
_MAX_NEWTON = 100


class SoftModel(Protocol):
    """What a maximum entropy fit asks of a planner."""

    def solve(self, reward: Array, discount: float, initial: Array) -> tuple[Array, Flow]: ...
    def step(self, reward: Array, discount: float, values: Array) -> tuple[Array, Step]: ...
    def policy(self, reward: Array, discount: float, following: Array) -> Array: ...


class Flow:
    """The chain that a discounted soft plan follows, with its adjoint solve."""

    def __init__(self, chain: Any, discount: float) -> None:
        self._chain = chain
        self._discount = discount

    def flow(self, credit: Array) -> Array:
        """``(I − γ Pᵀ)⁻¹ credit``: how credit for values becomes credit for rewards."""
        return visit_forever(self._chain, credit, self._discount, 1e-12)


class Step:
    """One stage of a finite plan."""

    def __init__(self, push: Callable[[Array], Array]) -> None:
        self.push = push


class CausalModel:
    """``F(V)(s) = log Σ_a exp(r(s) + γ E[V(s') | s, a])``."""

    def __init__(self, move: Transitions) -> None:
        self._move = move

    def solve(self, reward: Array, discount: float, initial: Array) -> tuple[Array, Flow]:
        """The fixed point, and the chain there."""
        gamma = check_discount(discount)
        plan = policy_iteration(
            self._move,
            reward,
            gamma,
            temperature=1.0,
            tolerance=_accuracy(reward, gamma),
            max_iter=_MAX_NEWTON,
            initial=initial,
        )
        return plan.values, Flow(self._move.under(plan.policy), gamma)

    def step(self, reward: Array, discount: float, values: Array) -> tuple[Array, Step]:
        """``F(values)``, and the stage that leads there."""
        q = reward[:, None] + discount * self._move.expect(values)
        policy = soft_policy(q)
        return back_up(q, 1.0), Step(lambda mass: self._move.push(mass[:, None] * policy))

    def policy(self, reward: Array, discount: float, following: Array) -> Array:
        """``π(a|s)`` when `following` are the values of the next states."""
        return soft_policy(reward[:, None] + discount * self._move.expect(following))


class PathModel:
    """``F(V)(s) = r(s) + log Σ_{a,s'} T(s'|s, a) exp(γ V(s'))``; all in log space.

    Its chain is tilted towards good next states: paths are weighed whole, luck included.
    """

    def __init__(self, move: Transitions) -> None:
        self._move = move
        uniform = move.under(np.full((move.n_states, move.n_actions), 1.0 / move.n_actions))
        self._is_sparse = sparse.issparse(uniform)
        chain = sparse.csr_array(uniform)
        chain.eliminate_zeros()
        self._indptr, self._indices = chain.indptr, chain.indices
        self._log_weight = np.log(chain.data) + np.log(move.n_actions)

    def _tilt(self, reward: Array, discount: float, values: Array) -> tuple[Array, Any]:
        exponent = self._log_weight + discount * values[self._indices]
        total, share = _row_log_sum(exponent, self._indptr)
        n = len(values)
        return reward + total, sparse.csr_array((share, self._indices, self._indptr), shape=(n, n))

    def solve(self, reward: Array, discount: float, initial: Array) -> tuple[Array, Flow]:
        """The fixed point by Newton's method, and the chain there."""
        gamma = check_discount(discount)
        accuracy = _accuracy(reward, gamma)
        values = initial
        for _ in range(_MAX_NEWTON):
            new, tilted = self._tilt(reward, gamma, values)
            chain = tilted if self._is_sparse else tilted.toarray()
            low, high = macqueen_bounds(new - values, gamma)
            if 0.5 * (high - low) <= accuracy:
                break
            gain = new - gamma * (chain @ values)
            values = evaluate(chain, gain, gamma, 0.1 * accuracy, new)
        return new + 0.5 * (low + high), Flow(chain, gamma)

    def step(self, reward: Array, discount: float, values: Array) -> tuple[Array, Step]:
        """``F(values)``, and the stage that leads there."""
        new, chain = self._tilt(reward, discount, values)
        return new, Step(lambda mass: np.asarray(chain.T @ mass))

    def policy(self, reward: Array, discount: float, following: Array) -> Array:
        """``π(a|s) ∝ Σ_s' T(s'|s, a) exp(γ V(s'))``."""
        n_states, n_actions = self._move.n_states, self._move.n_actions
        log_weight = np.empty((n_states, n_actions))
        for a in range(n_actions):
            always = np.zeros((n_states, n_actions))
            always[:, a] = 1.0
            chain = sparse.csr_array(self._move.under(always))
            chain.eliminate_zeros()
            exponent = np.log(chain.data) + discount * following[chain.indices]
            log_weight[:, a] = _row_log_sum(exponent, chain.indptr)[0]
        return soft_policy(log_weight)


def _row_log_sum(exponent: Array, indptr: Array) -> tuple[Array, Array]:
    """Row-wise log-sum-exp of CSR entries, and each entry's share of its row's sum."""
    # Every row of a chain has an entry, so that reduceat is safe.
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    top = np.maximum.reduceat(exponent, indptr[:-1])
    weight = np.exp(exponent - top[rows])
    total = np.add.reduceat(weight, indptr[:-1])
    return top + np.log(total), weight / total[rows]


def _accuracy(reward: Array, discount: float) -> float:
    """As well as rounding lets values be known: line searches compare tiny differences."""
    size = max(1.0, float(np.abs(reward).max()) / (1.0 - discount))
    return size * max(1e-12, 1e-14 / (1.0 - discount))
