"""The next state under the nominal policy: how surprising it is, and how much so it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from onlooker.blocks import slices_of
from onlooker.checks import Array

ENTRIES = 1 << 21  # steps of replicates at a time
_BLOCK = 1 << 17  # log-likelihoods at a time: what stays in the cache is done twice as fast
MIN_EXCEEDANCES = 10  # exceedances below which a Monte Carlo p-value is worth more replicates
GROWTH = 5  # times as many replicates in each further round

Tick = Callable[[int], None]
"""Told how many more steps were simulated."""


class Surprise(NamedTuple):
    """The surprise of steps, ``-ln q(s') = action_surprise + noise_surprise``, in its two parts."""

    action_surprise: Array
    """``-ln q(s') / q_0(s')``, with q_0 the predictive of a policy that takes all actions alike:
    what tells this policy from any other, free of units."""
    noise_surprise: Array
    """``-ln q_0(s')``: how badly the step fits what actions do, whichever."""

    @property
    def total(self) -> Array:
        """``-ln q(s')``."""
        return self.action_surprise + self.noise_surprise


class SimulatedSteps(NamedTuple):
    """Steps taken."""

    surprise: Surprise
    repeats: Array
    """Whether each step ends exactly where it began."""

    def reshape(self, *shape: int) -> SimulatedSteps:
        """The same as tables."""
        parts = (values.reshape(shape) for values in self.surprise)
        return SimulatedSteps(Surprise(*parts), self.repeats.reshape(shape))


class MeanAndSd(NamedTuple):
    """Mean and standard deviation of something about every step."""

    mean: Array
    sd: Array


class Moments(NamedTuple):
    """What the surprise of every step should be."""

    total: MeanAndSd
    action_surprise: MeanAndSd
    noise_surprise: MeanAndSd
    p_value: Array
    """Probability of a total surprise at least as large as the one observed."""


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

    def __len__(self) -> int:
        return len(self.states)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.policy.shape[1])

    def surprise(self, steps: Array, loglik: Array) -> Surprise:
        """Of next states with these log-likelihoods; infinite where nothing leads there."""
        top = loglik.max(axis=1)
        top[~np.isfinite(top)] = 0.0
        likelihood = loglik - top[:, None]
        np.exp(likelihood, out=likelihood)
        with np.errstate(divide="ignore"):
            noise_surprise = -np.log(likelihood.mean(axis=1))
            total = -np.log(np.einsum("na,na->n", likelihood, self.policy[self.index[steps]]))
        action_surprise = np.full(len(steps), np.inf)
        np.subtract(total, noise_surprise, out=action_surprise, where=np.isfinite(total))
        return Surprise(action_surprise, noise_surprise - top)

    def simulate(self, steps: Array, actions: Array, rng: np.random.Generator) -> SimulatedSteps:
        """Take `actions` at `steps`."""
        surprise = Surprise(np.empty(len(steps)), np.empty(len(steps)))
        repeats = np.empty(len(steps), dtype=bool)
        for part in slices_of(len(steps), self.n_actions, _BLOCK):
            here = self.states[steps[part]]
            drawn = np.asarray(self.dynamics.sample(here, actions[part], rng))
            loglik = np.asarray(self.dynamics.log_likelihood(here, drawn))
            surprise.action_surprise[part], surprise.noise_surprise[part] = self.surprise(
                steps[part], loglik
            )
            repeats[part] = same_state(here, drawn)
        possible = np.isfinite(surprise.action_surprise)
        if not possible.all():
            where = int(steps[np.argmin(possible)])
            raise ValueError(
                f"dynamics.sample drew a next state for step {where} that dynamics.log_likelihood "
                "calls impossible; the two must belong to one model"
            )
        return SimulatedSteps(surprise, repeats)

    def draw_actions(self, steps: Array, rng: np.random.Generator) -> Array:
        """An action of the policy for each of `steps`."""
        return draw_from(self.cumulative, self.index[steps], rng)

    def moments(
        self,
        observed: Array,
        n_replicates: int,
        most: int,
        rng: np.random.Generator,
        tick: Tick = lambda n: None,
    ) -> Moments:
        """Mean, spread and tail of the surprise: summed where there is a table, else simulated.

        Simulated steps that few replicates surpass get more of them, `most` in all.
        """
        if hasattr(self.dynamics, "next_state_probabilities"):
            return self._summed(observed)
        sums, squares = np.zeros((3, len(self))), np.zeros((3, len(self)))
        above = np.zeros(len(self), dtype=np.int64)
        for surprise in self._replicates(np.arange(len(self)), n_replicates, rng, tick):
            for row, values in enumerate((surprise.total, *surprise)):
                sums[row] += values.sum(axis=0)
                squares[row] += (values**2).sum(axis=0)
            above += (surprise.total >= observed).sum(axis=0)
        sums /= n_replicates
        sd = np.sqrt(np.maximum(squares / n_replicates - sums**2, 0.0))
        tried = np.full(len(self), n_replicates)
        for more in replicate_rounds(n_replicates, most):
            rare = np.flatnonzero((above < MIN_EXCEEDANCES) & np.isfinite(observed))
            for surprise in self._replicates(rare, more, rng, tick):
                above[rare] += (surprise.total >= observed[rare]).sum(axis=0)
            tried[rare] += more
        total, action_surprise, noise_surprise = (
            MeanAndSd(*pair) for pair in zip(sums, sd, strict=True)
        )
        return Moments(total, action_surprise, noise_surprise, (above + 1) / (tried + 1))

    def _replicates(
        self, steps: Array, n_replicates: int, rng: np.random.Generator, tick: Tick
    ) -> Iterator[Surprise]:
        """Surprises of `steps` simulated so many times, ``(batch, len(steps))`` at a time."""
        if len(steps) == 0:
            return
        for part in slices_of(n_replicates, len(steps)):
            tiled = np.tile(steps, part.stop - part.start)
            outcome = self.simulate(tiled, self.draw_actions(tiled, rng), rng)
            tick(len(tiled))
            yield outcome.reshape(-1, len(steps)).surprise

    def _summed(self, observed: Array) -> Moments:
        """Exact, over all next states of a finite space."""
        means, sds = np.empty((3, len(self))), np.empty((3, len(self)))
        p_value = np.empty(len(self))
        # Steps that share state and policy share the sums, and stay together when sorted.
        order = np.lexsort([self.index, self.states])
        new = np.ones(len(order), dtype=bool)
        new[1:] = np.diff(self.states[order]) != 0
        new[1:] |= np.diff(self.index[order]) != 0
        for part in slices_of(len(order), int(self.dynamics.n_states)):
            steps, first = order[part], new[part].copy()
            first[0] = True
            kind = np.cumsum(first) - 1
            q, surprise = self._table(steps[first])
            for row, values in enumerate((surprise.total, *surprise)):
                mean = (q * values).sum(axis=1)
                means[row, steps] = mean[kind]
                sds[row, steps] = np.sqrt((q * (values - mean[:, None]) ** 2).sum(axis=1))[kind]
            # Rounding must not decide between next states that are equally likely.
            as_rare = surprise.total[kind] >= observed[steps, None] - 1e-9
            p_value[steps] = (q[kind] * as_rare).sum(axis=1)
        total, action_surprise, noise_surprise = (
            MeanAndSd(*pair) for pair in zip(means, sds, strict=True)
        )
        return Moments(total, action_surprise, noise_surprise, np.minimum(p_value, 1.0))

    def _table(self, steps: Array) -> tuple[Array, Surprise]:
        """``q`` of all next states, ``(len(steps), S)``, and their surprise (0 where q is)."""
        mix = self.dynamics.next_state_probabilities
        states, policy = self.states[steps], self.policy[self.index[steps]]
        q, any_ = mix(states, policy), mix(states, np.full_like(policy, 1 / self.n_actions))
        reached = (q > 0) & (any_ > 0)  # the least numbers may underflow in one of them
        total = -np.log(np.where(reached, q, 1.0))
        noise_surprise = -np.log(np.where(reached, any_, 1.0))
        return q, Surprise(total - noise_surprise, noise_surprise)


def draw_from(cumulative: Array, rows: Array, rng: np.random.Generator) -> Array:
    """An action for each of `rows` of a table of cumulative probabilities."""
    from onlooker.dynamics.rollout import draw_actions

    actions = np.empty(len(rows), dtype=np.int64)
    for part in slices_of(len(rows), cumulative.shape[1], _BLOCK):
        actions[part] = draw_actions(cumulative[rows[part]], rng)
    return actions


def replicate_rounds(n_replicates: int, most: int) -> Iterator[int]:
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
