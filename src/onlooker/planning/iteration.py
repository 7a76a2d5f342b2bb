"""Value and policy iteration, and the visits of a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlooker.checks import as_policy
from onlooker.planning.bellman import (
    Floats,
    back_up,
    check_discount,
    evaluate,
    macqueen_bounds,
    visit_forever,
)
from onlooker.planning.transitions import ROW_TOLERANCE, Transitions, as_transitions


@dataclass(frozen=True)
class Solution:
    """The solution of a planning problem.

    Attributes
    ----------
    values : (S,) or, with a horizon, (horizon, S)
    q : (S, A) or (horizon, S, A)
    policy : like `q`; probabilities of the actions
    converged : whether `residual` is within the tolerance
    n_iter : iterations done
    residual : bound on the error of `values` (0 for a finite horizon)
    """

    values: Floats
    q: Floats
    policy: Floats
    converged: bool
    n_iter: int
    residual: float


def value_iteration(
    T: Any,
    reward: ArrayLike,
    discount: float,
    *,
    horizon: int | None = None,
    tolerance: float = 1e-6,
    max_iter: int = 100_000,
    initial: ArrayLike | None = None,
) -> Solution:
    """Solve ``V = max_a Q`` by iteration; the values are within `tolerance` of the solution.

    MacQueen's bounds are used: one step ``Δ`` of the iteration confines the solution to
    ``V + γ/(1−γ)·[min Δ, max Δ]``, so the middle is returned and half the width is the error.
    With a `horizon`, backward induction over that many actions, also for ``discount=1``.
    """
    return _value_iteration(T, reward, discount, 0.0, horizon, tolerance, max_iter, initial)


def soft_value_iteration(
    T: Any,
    reward: ArrayLike,
    discount: float,
    *,
    temperature: float = 1.0,
    horizon: int | None = None,
    tolerance: float = 1e-6,
    max_iter: int = 100_000,
    initial: ArrayLike | None = None,
) -> Solution:
    """Solve ``V = τ log Σ_a exp(Q/τ)``; the policy is ``exp((Q − V)/τ)``.

    See `value_iteration` for the bounds and the horizon.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature!r}")
    return _value_iteration(T, reward, discount, temperature, horizon, tolerance, max_iter, initial)


def policy_iteration(
    T: Any,
    reward: ArrayLike,
    discount: float,
    *,
    temperature: float = 0.0,
    tolerance: float = 1e-6,
    max_iter: int = 1000,
    initial: ArrayLike | None = None,
) -> Solution:
    """Evaluate and improve in turn, starting from the policy that is greedy for `initial` values.

    Newton's method on the Bellman equation: few iterations, each with a linear solve (dense
    transitions) or an evaluation by iteration (sparse ones). A positive `temperature` solves the
    soft equation instead.
    """
    move = as_transitions(T)
    gamma = check_discount(discount)
    r = _check_reward(reward, move)
    if not temperature >= 0:
        raise ValueError(f"temperature must not be negative, got {temperature!r}")
    values = _initial_values(initial, move)
    n_iter = 0
    while True:
        q = r + gamma * move.expect(values)
        new = back_up(q, temperature)
        low, high = macqueen_bounds(new - values, gamma)
        residual = 0.5 * (high - low)
        if residual <= tolerance or n_iter == max_iter:
            break
        policy = _policy(q, temperature)
        gain = (policy * r).sum(axis=1) + temperature * _entropy(policy)
        # A policy that is about to change is not worth evaluating to the last digit.
        accuracy = 0.1 * max(tolerance, residual)
        values = evaluate(move.under(policy), gain, gamma, accuracy, new)
        n_iter += 1
    values = new + 0.5 * (low + high)
    q = r + gamma * move.expect(values)
    return Solution(values, q, _policy(q, temperature), residual <= tolerance, n_iter, residual)


def state_visitation(
    T: Any,
    policy: ArrayLike,
    start: ArrayLike,
    discount: float = 1.0,
    *,
    horizon: int | None = None,
    tolerance: float = 1e-10,
) -> Floats:
    """Expected discounted visits ``D(s) = Σ_t γ^t P(s_t = s)``, shape ``(S,)``.

    Parameters
    ----------
    policy : (S, A), or (horizon - 1, S, A) for a policy that depends on time
    start : (S,)
        Distribution of the first state.
    horizon : int, optional
        Number of states of a trajectory (``t < horizon``); None for infinitely many, which needs
        ``discount < 1``. The visits then sum to ``1/(1 − γ)``.
    """
    move = as_transitions(T)
    shape = (move.n_states, move.n_actions)
    first = np.asarray(start, dtype=float)
    if first.shape != (move.n_states,):
        raise ValueError(f"start must have shape ({move.n_states},), got {first.shape}")
    if not (np.all(first >= 0) and abs(first.sum() - 1) <= ROW_TOLERANCE):
        raise ValueError("start must be a distribution: non-negative, sum 1")
    if horizon is None:
        gamma = check_discount(discount)
        return visit_forever(
            move.under(as_policy("policy", policy, shape)), first, gamma, tolerance * (1 - gamma)
        )
    gamma = check_discount(discount, finite=True)
    n_steps = _check_horizon(horizon) - 1
    steps = np.asarray(policy, dtype=float)
    if steps.ndim == 3:
        if len(steps) != n_steps:
            raise ValueError(f"policy has {len(steps)} steps, but {horizon} states need {n_steps}")
        stages = [as_policy("policy", stage, shape) for stage in steps]
    else:
        stages = [as_policy("policy", steps, shape)] * n_steps
    now, total = first, first.copy()
    for stage in stages:
        now = gamma * move.push(now[:, None] * stage)
        total += now
    return total


def greedy_policy(q: ArrayLike, tolerance: float = 0.0) -> Floats:
    """All mass on the best action; shared equally among those within `tolerance` of the best.

    With ``tolerance=0`` a tie goes to the first action.
    """
    q_ = np.asarray(q, dtype=float)
    if tolerance == 0.0:
        return np.asarray(np.eye(q_.shape[-1])[q_.argmax(axis=-1)])
    best = (q_ >= q_.max(axis=-1, keepdims=True) - tolerance).astype(float)
    return np.asarray(best / best.sum(axis=-1, keepdims=True))


def soft_policy(q: ArrayLike, temperature: float = 1.0) -> Floats:
    """``exp(Q/τ)``, normalised; safe for values of any size."""
    q_ = np.asarray(q, dtype=float) / temperature
    weight = np.exp(q_ - q_.max(axis=-1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def _value_iteration(
    T: Any,
    reward: ArrayLike,
    discount: float,
    temperature: float,
    horizon: int | None,
    tolerance: float,
    max_iter: int,
    initial: ArrayLike | None,
) -> Solution:
    move = as_transitions(T)
    gamma = check_discount(discount, finite=horizon is not None)
    r = _check_reward(reward, move)
    values = _initial_values(initial, move)
    if horizon is not None:
        return _backward_induction(move, r, gamma, temperature, _check_horizon(horizon), values)
    n_iter = 0
    while True:
        new = back_up(r + gamma * move.expect(values), temperature)
        low, high = macqueen_bounds(new - values, gamma)
        residual = 0.5 * (high - low)
        n_iter += 1
        if residual <= tolerance or n_iter >= max_iter:
            break
        values = new
    values = new + 0.5 * (low + high)
    q = r + gamma * move.expect(values)
    return Solution(values, q, _policy(q, temperature), residual <= tolerance, n_iter, residual)


def _backward_induction(
    move: Transitions, r: Floats, gamma: float, temperature: float, horizon: int, last: Floats
) -> Solution:
    """The first axis of the result is time; `last` are the values after the final action."""
    q = np.empty((horizon, *r.shape))
    values = np.empty((horizon, len(r)))
    for t in range(horizon - 1, -1, -1):
        q[t] = r + gamma * move.expect(last)
        values[t] = last = back_up(q[t], temperature)
    return Solution(values, q, _policy(q, temperature), True, horizon, 0.0)


def _policy(q: Floats, temperature: float) -> Floats:
    return greedy_policy(q) if temperature == 0.0 else soft_policy(q, temperature)


def _entropy(policy: Floats) -> Floats:
    positive = np.where(policy > 0, policy, 1.0)
    return np.asarray(-(policy * np.log(positive)).sum(axis=-1))


def _check_horizon(horizon: int) -> int:
    if not isinstance(horizon, int | np.integer) or horizon < 1:
        raise ValueError(f"horizon must be a positive integer, got {horizon!r}")
    return int(horizon)


def _check_reward(reward: ArrayLike, move: Transitions) -> Floats:
    r = np.asarray(reward, dtype=float)
    if r.shape == (move.n_states,):
        r = np.repeat(r[:, None], move.n_actions, axis=1)
    if r.shape != (move.n_states, move.n_actions):
        raise ValueError(
            f"reward must have shape ({move.n_states},) or ({move.n_states}, {move.n_actions}), "
            f"got {r.shape}"
        )
    if not np.isfinite(r).all():
        raise ValueError(f"reward is not finite at index {np.argwhere(~np.isfinite(r))[0]}")
    return r


def _initial_values(initial: ArrayLike | None, move: Transitions) -> Floats:
    if initial is None:
        return np.zeros(move.n_states)
    values = np.array(initial, dtype=float)
    if values.shape != (move.n_states,) or not np.isfinite(values).all():
        raise ValueError(f"initial must be finite with shape ({move.n_states},)")
    return values
