"""Controllers and fits with the actions summed out: ``p(s_{t+1} | s_t, θ) = Σ_j ℓ[t, j] θ_j``."""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.arrays import Data, Slots

_WIDTH = 4.0  # of a slice, on the logit of a share
_MAX_STEPS = 16  # of widening it to either side


@njit(cache=True, nogil=True, error_model="numpy")
def log_fits(controllers: Array, slots: Slots, data: Data) -> Array:
    """``ln L_ik = Σ_{t at i} ln Σ_j ℓ[t, j] θ_kj``: a row a node, the slots in use in their order.

    Factors are multiplied up to save logarithms.
    """
    n_nodes, n_actions = len(data.first) - 1, data.likelihood.shape[1]
    n_slots = slots.n[0]
    fits = np.zeros((n_nodes, n_slots))
    for i in range(n_nodes):
        for p in range(n_slots):
            theta = controllers[slots.order[p]]
            product = 1.0
            for t in range(data.first[i], data.first[i + 1]):
                total = 0.0
                for j in range(n_actions):
                    total += data.likelihood[data.row[t], j] * theta[j]
                product *= total
                if product < 1e-100:
                    fits[i, p] += np.log(product)
                    product = 1.0
            fits[i, p] += np.log(product)
    return fits


@njit(cache=True, nogil=True, error_model="numpy")
def _log_density(
    x: float,
    pair: float,
    share: float,
    alpha: tuple[float, float],
    mixed: Array,
    difference: Array,
    n: int,
) -> float:
    """``ln p(x) Π_t (m_t + (u(x) - u) (θ_i + θ_j) (ℓ_ti - ℓ_tj))`` for the logit x of a share u.

    `share` is the u that the sums ``m_t`` hold; the prior of u is Beta(*α).
    """
    size = abs(x)
    total = -0.5 * (alpha[0] + alpha[1]) * (size + 2.0 * np.log1p(np.exp(-size)))
    total += 0.5 * (alpha[0] - alpha[1]) * x
    shift = pair * (1.0 / (1.0 + np.exp(-x)) - share)
    product = 1.0
    for t in range(n):
        product *= mixed[t] + shift * difference[t]
        if product < 1e-100:
            if product <= 0.0:
                return -np.inf
            total += np.log(product)
            product = 1.0
    return total + np.log(product)


@njit(cache=True, nogil=True, error_model="numpy")
def _share_anew(
    theta: Array,
    i: int,
    j: int,
    alpha: tuple[float, float],
    mixed: Array,
    difference: Array,
    n: int,
    rng: np.random.Generator,
) -> None:
    """One slice-sampling step (Neal 2003) of how ``θ_i + θ_j`` is shared by the two actions."""
    pair = theta[i] + theta[j]
    if theta[i] <= 0.0 or theta[j] <= 0.0:  # underflow: the logit is out of reach
        return
    x, share = np.log(theta[i]) - np.log(theta[j]), theta[i] / pair
    level = _log_density(x, pair, share, alpha, mixed, difference, n)
    if level == -np.inf:
        return
    level -= rng.standard_exponential()
    low = x - _WIDTH * rng.random()
    high = low + _WIDTH
    steps = int(_MAX_STEPS * rng.random())
    for _ in range(steps):
        if _log_density(low, pair, share, alpha, mixed, difference, n) <= level:
            break
        low -= _WIDTH
    for _ in range(_MAX_STEPS - 1 - steps):
        if _log_density(high, pair, share, alpha, mixed, difference, n) <= level:
            break
        high += _WIDTH
    while True:
        y = low + (high - low) * rng.random()
        if _log_density(y, pair, share, alpha, mixed, difference, n) > level:
            break
        if y == x:  # the slice shrank to where it was cut
            return
        if y < x:
            low = y
        else:
            high = y
    theta[i], theta[j] = pair / (1.0 + np.exp(-y)), pair / (1.0 + np.exp(y))
    shift = pair * (1.0 / (1.0 + np.exp(-y)) - share)
    for t in range(n):
        mixed[t] += shift * difference[t]


@njit(cache=True, nogil=True, error_model="numpy")
def update_controllers(
    controllers: Array,
    slots: Slots,
    members: Array,
    start: Array,
    size: Array,
    alpha: Array,
    data: Data,
    rng: np.random.Generator,
) -> None:
    """Draw controllers from ``p(θ_k | s, z) ∝ Dir(θ_k; α) Π_t Σ_j ℓ[t, j] θ_kj``, step by step.

    Each action in turn shares its probability anew with another one. Where actions are hard to
    tell apart, this goes much farther than drawing controllers and actions by turns. Slot k's nodes
    are ``members[start[k] : start[k] + size[k]]``.
    """
    n_transitions, n_actions = len(data.row), data.likelihood.shape[1]
    mixed, difference = np.empty(n_transitions), np.empty(n_transitions)
    at = np.empty(n_transitions, dtype=np.int64)
    if n_actions == 1:
        return
    for p in range(slots.n[0]):
        k = slots.order[p]
        theta = controllers[k]
        n = 0
        for m in range(start[k], start[k] + size[k]):
            node = members[m]
            for t in range(data.first[node], data.first[node + 1]):
                total = 0.0
                for j in range(n_actions):
                    total += data.likelihood[data.row[t], j] * theta[j]
                at[n], mixed[n] = data.row[t], total
                n += 1
        if n == 0:  # the prior, of which `theta` is a draw already
            continue
        for i in range(n_actions):
            j = int(rng.random() * (n_actions - 1))
            j += j >= i
            for m in range(n):
                difference[m] = data.likelihood[at[m], i] - data.likelihood[at[m], j]
            _share_anew(theta, i, j, (alpha[i], alpha[j]), mixed, difference, n, rng)
