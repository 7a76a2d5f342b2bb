"""Whole tracks by the nominal policy, and where a track stands among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from onlooker.anomaly import _kernels
from onlooker.anomaly._changes import SLACK
from onlooker.anomaly._predictive import ENTRIES, Predictive, Tick, draw_from, same_state
from onlooker.checks import Array, require_memory
from onlooker.demonstrations import Demonstrations, distinct_states
from onlooker.partitions.base import Strategy
from onlooker.prediction.predictor import Predictor

if TYPE_CHECKING:
    from onlooker.dynamics.base import Dynamics
    from onlooker.posterior import Posterior

MIN_SD = 0.1  # nats; where the surprise is all but certain, rounding must not raise alarms
N_INNER = 10  # simulations of each step of a replicate, by which its surprise is standardised


class NominalPolicy(Protocol):
    """What is believed of the policy: its mean, and who acts in a replicate."""

    def mean(self, states: Array) -> Array:
        """``(n, A)``: the mean policy."""

    def start(self, n_replicates: int, n_tracks: int, rng: np.random.Generator) -> None:
        """Draw what each track of each replicate keeps to its end."""

    def act(self, states: Array, replicate: Array, track: Array, rng: np.random.Generator) -> Array:
        """Actions at `states`, each of a track of a replicate."""


class KnownPolicy:
    """The same policy in all replicates; `mean` is a function of states."""

    def __init__(self, mean: Callable[[Array], Array]) -> None:
        self.mean = mean

    def start(self, n_replicates: int, n_tracks: int, rng: np.random.Generator) -> None:
        """Nothing to draw."""

    def act(self, states: Array, replicate: Array, track: Array, rng: np.random.Generator) -> Array:
        """Actions at `states`."""
        distinct, index = distinct_states(states)
        return draw_from(np.cumsum(self.mean(distinct), axis=1), index, rng)


class DrawnPolicies:
    """Replicate r acts by draw r of the posterior, with controllers ``θ ~ Dir(ξ + α)``.

    A state that is no node takes one of the draw's controllers, or a fresh one, by the prior's
    weights. One uniform number per track decides which, so a track that leaves what was seen
    stays with its controller rather than drawing another at each step.

    Parameters
    ----------
    posterior
        The nominal posterior.
    extrapolate
        As in `Posterior.policy`.
    n_replicates
        Draws to use, evenly spread over all chains; some repeat if there are fewer.
    """

    def __init__(
        self, posterior: Posterior, extrapolate: Strategy | None, n_replicates: int
    ) -> None:
        n_draws = posterior.n_chains * posterior.n_draws
        kept = sum(values.nbytes for values in posterior.draws.arrays.values())
        require_room(n_replicates, kept // n_draws)
        chosen = np.linspace(0, n_draws - 1, n_replicates).round().astype(np.int64)
        self._predictor = Predictor(
            posterior.problem,
            posterior.prior,
            posterior.draws.pooled()[chosen],
            posterior.schedule.seed,
            chains=np.repeat(posterior.chain_ids, posterior.n_draws)[chosen],
        )
        self._rule = self._predictor.rule(extrapolate)

    def mean(self, states: Array) -> Array:
        """``(n, A)``: the mean policy by these draws."""
        return self._predictor.mean(*self._predictor.place(states), self._rule)

    def start(self, n_replicates: int, n_tracks: int, rng: np.random.Generator) -> None:
        """Draw controllers, and what decides where none was seen."""
        self._uniforms = rng.random((n_replicates, n_tracks))
        self._thetas = [np.cumsum(c.thetas(rng), axis=1) for c in self._predictor.blocks()]

    def act(self, states: Array, replicate: Array, track: Array, rng: np.random.Generator) -> Array:
        """Actions at `states`."""
        queries, node = self._predictor.place(states)
        uniforms = self._uniforms[replicate, track]
        actions = np.empty(len(states), dtype=np.int64)
        for clusters, thetas in zip(self._predictor.blocks(), self._thetas, strict=True):
            low, high = clusters.index[0], clusters.index[-1]  # blocks are runs of draws
            mine = np.flatnonzero((replicate >= low) & (replicate <= high))
            if len(mine):
                rows = self._predictor.draw_own_rows(
                    clusters, replicate[mine] - low, queries[mine], node[mine], self._rule,
                    uniforms[mine],
                )  # fmt: skip
                actions[mine] = draw_from(thetas, rows, rng)
        policies = self._predictor.problem.policies
        if policies is not None:  # so far they are behaviours
            actions = policies.actions_given(queries, actions[None], None, rng)[0]
        return actions


class Steps(NamedTuple):
    """Steps of replicates, ``(R, n)`` each: what `_kernels.statistics` takes."""

    action_excess: Array
    noise_excess: Array
    action_sd: Array
    noise_sd: Array
    repeats: Array

    def statistics(self, offsets: Array, max_step_score: float) -> Array:
        """``(R, trajectories, 4)``."""
        out = np.empty((len(self.repeats), len(offsets) - 1, 4))
        _kernels.statistics(*self, offsets, max_step_score, SLACK, out)
        return np.round(out, 9)  # equal histories are ties, whatever the rounding


def model_p_values(
    policy: NominalPolicy,
    dynamics: Dynamics,
    demos: Demonstrations,
    n_replicates: int,
    max_step_score: float,
    rng: np.random.Generator,
    tick: Tick,
) -> Array:
    """``(trajectories, 6)``: p-values of `rank`, among simulations of whole tracks.

    Each replicate starts where the track does, and makes as many steps. The track itself is
    judged exactly as they are: by the same mean policy, with as many inner simulations.
    """
    n_steps = demos.lengths - 1
    out = np.empty((len(demos), 6))
    chunk = np.cumsum(n_steps * (n_replicates + 1)) // ENTRIES
    for number in np.unique(chunk):
        which = np.flatnonzero(chunk == number)
        offsets = np.concatenate([[0], np.cumsum(n_steps[which])])
        steps = _simulate(policy, dynamics, demos[which], n_replicates, offsets, rng, tick)
        found = oddities(steps.statistics(offsets, max_step_score))
        out[which] = rank(found[0], found[1:])
    return out


def require_room(n_replicates: int, n_bytes: int) -> None:
    """Refuse more replicates than fit into memory, if each takes so many bytes."""
    require_memory(n_replicates * n_bytes, f"{n_replicates:,} replicates", "choose fewer of them")


def _simulate(
    policy: NominalPolicy,
    dynamics: Dynamics,
    demos: Demonstrations,
    n_replicates: int,
    offsets: Array,
    rng: np.random.Generator,
    tick: Tick,
) -> Steps:
    """The tracks themselves, and `n_replicates` of them from the same start."""
    n_steps = np.diff(offsets)
    policy.start(n_replicates, len(demos), rng)
    steps = Steps(*(np.empty((n_replicates + 1, offsets[-1])) for _ in range(5)))
    here = np.concatenate([demos.states[demos.offsets[:-1]]] * n_replicates)
    for t in range(int(n_steps.max())):
        left = np.flatnonzero(n_steps > t)
        rows = np.repeat(np.arange(n_replicates), len(left))
        track = np.tile(left, n_replicates)
        at = demos.offsets[left] + t
        places = rows * len(demos) + track
        actions = policy.act(here[places], rows, track, rng)
        drawn = np.asarray(dynamics.sample(here[places], actions, rng))
        before = np.concatenate([demos.states[at], here[places]])
        after = np.concatenate([demos.states[at + 1], drawn])
        here[places] = drawn
        column = (np.concatenate([np.zeros_like(left), rows + 1]), offsets[np.r_[left, track]] + t)
        for values, found in zip(
            steps, _one_step(policy, dynamics, before, after, rng), strict=True
        ):
            values[column] = found
        tick(len(places))
    return steps


def _one_step(
    policy: NominalPolicy, dynamics: Dynamics, before: Array, after: Array, rng: np.random.Generator
) -> Steps:
    distinct, index = distinct_states(before)
    predictive = Predictive(dynamics, before, policy.mean(distinct), index)
    surprise = predictive.surprise(
        np.arange(len(before)), np.asarray(dynamics.log_likelihood(before, after))
    )
    moments = predictive.moments(surprise.total, N_INNER, N_INNER, rng)
    return Steps(
        surprise.action_surprise - moments.action_surprise.mean,
        surprise.noise_surprise - moments.noise_surprise.mean,
        np.maximum(moments.action_surprise.sd, MIN_SD),
        np.maximum(moments.noise_surprise.sd, MIN_SD),
        same_state(before, after),
    )


def oddities(statistics: Array) -> Array:
    """``(..., 5)``: larger is odder, in the order of `result.P_VALUES`."""
    score, noise, change, stop = np.moveaxis(statistics, -1, 0)
    return np.stack([score, -noise, noise, change, stop], axis=-1)


def rank(observed: Array, pool: Array) -> Array:
    """P-values ``(k, 6)`` of tracks among others: of each oddity, and of all together.

    Takes oddities ``(k, 5)`` and those of others ``(R, k, 5)``. The smallest of a track's five
    ranks is itself ranked among the smallest of each other track, so it needs no correction. Many
    are first in one of five; among those that tie, the one that stands out by more standard
    deviations is the odder. All tracks are treated alike, the one that is judged included; equal
    ones tie, so oddities must be free of rounding errors.
    """
    from scipy.stats import rankdata

    together = np.concatenate([observed[None], pool])
    n = len(together)
    beyond = n + 1 - rankdata(together, method="min", axis=0)  # itself included
    smallest = beyond.min(axis=-1)
    finite = np.clip(together, -1e9, 1e9)  # impossible steps are infinitely odd
    mean, sd = finite.mean(axis=0), finite.std(axis=0)
    standing_out = ((finite - mean) / np.maximum(sd, 1e-9)).max(axis=-1)
    as_odd = smallest < smallest[0]
    as_odd |= (smallest == smallest[0]) & (standing_out >= standing_out[0])
    return np.column_stack([beyond[0] / n, as_odd.mean(axis=0)])
