"""The next state under the nominal policy: how surprising it is, and how much so it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from onlooker._validation import Array

ENTRIES = 1 << 21  # numbers in a table at a time
_BLOCK = 1 << 17  # the same of log-likelihoods: what stays in the cache is done twice as fast
FEW = 10  # exceedances below which a Monte Carlo p-value is worth more replicates
GROWTH = 5  # times as many replicates in each further round

Tick = Callable[[int], None]
"""Told how many more steps were simulated."""


class Moments(NamedTuple):
    """What the surprise of every step should be, ``(n,)`` each."""

    mean: Array
    sd: Array
    p_value: Array
    """Probability of a surprise at least as large as the one observed."""


class Outcome(NamedTuple):
    """Steps taken, one value each."""

    surprise: Array
    fit: Array
    """``max_j ln T(s' | s, j)``: how well the best action explains the step."""
    repeats: Array
    """Whether the step ends exactly where it began."""


class Predictive:
    """``q_t(s') = Σ_j p_t(j) T(s' | s_t, j)`` for every step t.

    Parameters
    ----------
    dynamics
        The model of the world.
    states
        Where each of the n steps starts.
    policy
        ``(m, A)``: action distributions.
    index
        ``(n,)``: the row of `policy` that each step has.
    """

    def __init__(self, dynamics: Any, states: Array, policy: Array, index: Array) -> None:
        self.dynamics = dynamics
        self.states = states
        self.policy = policy
        self.index = index
        self.cumulative = np.cumsum(policy, axis=1)
        with np.errstate(divide="ignore"):
            self._log_policy = np.log(policy)

    def __len__(self) -> int:
        return len(self.states)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.policy.shape[1])

    def surprise(self, steps: Array, loglik: Array) -> Array:
        """``-ln q_t(s')`` of `steps`; infinite where nothing that the policy does leads there."""
        joint = self._log_policy[self.index[steps]]
        joint += loglik
        top = joint.max(axis=1)
        top[~np.isfinite(top)] = 0.0
        joint -= top[:, None]
        np.exp(joint, out=joint)
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(joint.sum(axis=1)) - top)

    def simulate(self, steps: Array, actions: Array, rng: np.random.Generator) -> Outcome:
        """Take `actions` at `steps`."""
        surprise, fit = np.empty(len(steps)), np.empty(len(steps))
        repeats = np.empty(len(steps), dtype=bool)
        for part in parts(len(steps), self.n_actions, _BLOCK):
            here = self.states[steps[part]]
            drawn = np.asarray(self.dynamics.sample(here, actions[part], rng))
            loglik = np.asarray(self.dynamics.log_likelihood(here, drawn))
            surprise[part] = self.surprise(steps[part], loglik)
            fit[part] = loglik.max(axis=1)
            repeats[part] = same_state(here, drawn)
        if not np.isfinite(surprise).all():
            where = int(steps[np.argmin(np.isfinite(surprise))])
            raise ValueError(
                f"dynamics.sample drew a next state for step {where} that dynamics.log_likelihood "
                "calls impossible; the two must belong to one model"
            )
        return Outcome(surprise, fit, repeats)

    def draw_actions(self, steps: Array, rng: np.random.Generator) -> Array:
        """An action of the policy for each of `steps`."""
        return draw_from(self.cumulative, self.index[steps], rng)

    def moments(
        self, observed: Array, n_replicates: int, most: int, rng: np.random.Generator, tick: Tick
    ) -> Moments:
        """Mean, spread and tail of the surprise: summed where there is a table, else simulated.

        Simulated steps that few replicates surpass get more of them, `most` in all.
        """
        if hasattr(self.dynamics, "next_state_probabilities"):
            return self._summed(observed)
        total, squares = np.zeros(len(self)), np.zeros(len(self))
        above = np.zeros(len(self), dtype=np.int64)
        for surprise in self._replicates(np.arange(len(self)), n_replicates, rng, tick):
            total += surprise.sum(axis=0)
            squares += (surprise**2).sum(axis=0)
            above += (surprise >= observed).sum(axis=0)
        mean = total / n_replicates
        sd = np.sqrt(np.maximum(squares / n_replicates - mean**2, 0.0))
        tried = np.full(len(self), n_replicates)
        for more in rounds(n_replicates, most):
            rare = np.flatnonzero((above < FEW) & np.isfinite(observed))
            for surprise in self._replicates(rare, more, rng, tick):
                above[rare] += (surprise >= observed[rare]).sum(axis=0)
            tried[rare] += more
        return Moments(mean, sd, (above + 1) / (tried + 1))

    def _replicates(
        self, steps: Array, n_replicates: int, rng: np.random.Generator, tick: Tick
    ) -> Iterator[Array]:
        """Surprises of `steps` simulated so many times, ``(batch, len(steps))`` at a time."""
        if len(steps) == 0:
            return
        for part in parts(n_replicates, len(steps)):
            tiled = np.tile(steps, part.stop - part.start)
            outcome = self.simulate(tiled, self.draw_actions(tiled, rng), rng)
            tick(len(tiled))
            yield outcome.surprise.reshape(-1, len(steps))

    def _summed(self, observed: Array) -> Moments:
        """Exact, over all next states of a finite space."""
        mean, sd, p_value = (np.empty(len(self)) for _ in range(3))
        # Steps that share state and policy share the sums, and stay together when sorted.
        order = np.lexsort([self.index, self.states])
        new = np.ones(len(order), dtype=bool)
        new[1:] = np.diff(self.states[order]) != 0
        new[1:] |= np.diff(self.index[order]) != 0
        for part in parts(len(order), int(self.dynamics.n_states)):
            steps, first = order[part], new[part].copy()
            first[0] = True
            kind = np.cumsum(first) - 1
            some = steps[first]
            q = self.dynamics.next_state_probabilities(
                self.states[some], self.policy[self.index[some]]
            )
            h = -np.log(np.where(q > 0, q, 1.0))
            expected = (q * h).sum(axis=1)
            mean[steps] = expected[kind]
            sd[steps] = np.sqrt((q * (h - expected[:, None]) ** 2).sum(axis=1))[kind]
            # Rounding must not decide between next states that are equally likely.
            as_rare = h[kind] >= observed[steps, None] - 1e-9
            p_value[steps] = (q[kind] * as_rare).sum(axis=1)
        return Moments(mean, sd, np.minimum(p_value, 1.0))


def draw_from(cumulative: Array, rows: Array, rng: np.random.Generator) -> Array:
    """An action for each of `rows` of a table of cumulative probabilities."""
    from onlooker.worlds._rollout import draw_actions

    actions = np.empty(len(rows), dtype=np.int64)
    for part in parts(len(rows), cumulative.shape[1], _BLOCK):
        actions[part] = draw_actions(cumulative[rows[part]], rng)
    return actions


def parts(n: int, width: int, entries: int = ENTRIES) -> Iterator[slice]:
    """Slices of n rows of `width` numbers that memory should hold at a time."""
    size = max(1, entries // width)
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))


def rounds(n_replicates: int, most: int) -> Iterator[int]:
    """How many more replicates each further round takes until there are `most`."""
    done = n_replicates
    while done < most:
        more = min(done * GROWTH, most) - done
        yield more
        done += more


def same_state(states: Array, next_states: Array) -> Array:
    """Whether each step ends exactly where it began."""
    same = np.asarray(states == next_states)
    return same if same.ndim == 1 else np.asarray(same.all(axis=1))


def misfit(dynamics: Any, loglik: Array, expected: Array) -> Array:
    """How far each step is from what any action does, in standard deviations.

    By ``dynamics.misfit`` where there is one. Otherwise ``√(2 (−E h − max_j ln T))``, the standard
    deviations that would make a Gaussian step as unlikely compared with a usual one, of expected
    surprise ``E h``. Infinite where every action is impossible.
    """
    if hasattr(dynamics, "misfit"):
        return np.asarray(dynamics.misfit(loglik), dtype=np.float64)
    return np.sqrt(2 * np.maximum(-expected - loglik.max(axis=1), 0.0))
