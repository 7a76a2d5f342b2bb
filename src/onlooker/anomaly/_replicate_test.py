"""Trajectories compared with replicates of them: the same steps from the same states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.anomaly import _kernels
from onlooker.anomaly._changes import SLACK
from onlooker.anomaly._predictive import (
    ENTRIES,
    MIN_EXCEEDANCES,
    Predictive,
    SimulatedSteps,
    Surprise,
    Tick,
    replicate_rounds,
)
from onlooker.anomaly._replicate_policy import ReplicatePolicy
from onlooker.checks import Array

MIN_SD = 0.1  # nats; where the surprise is all but certain, rounding must not raise alarms

COLUMNS = (
    "score", "p_value", "p_too_exact", "p_too_noisy", "p_change", "p_stopped", "p_combined",
    "longest_stop", "n_replicates",
)  # fmt: skip
_COUNTS = ("longest_stop", "n_replicates")


@dataclass(frozen=True)
class ReplicateTest:
    """Ranks trajectories among replicates of them.

    Attributes
    ----------
    predictive, actor
        How replicates move, and who acts in them.
    seen
        The steps that were observed.
    expected, scales
        ``(2, n)``: mean and standard deviation of both parts of every step's surprise.
    first
        Where the steps of each trajectory begin, and where the last ones end.
    max_step_score
        Most that a step may add to the score, in its standard deviations.
    n_replicates, most
        Of each trajectory, and of those that few replicates surpass.
    """

    predictive: Predictive
    actor: ReplicatePolicy
    seen: SimulatedSteps
    expected: Array
    scales: Array
    first: Array
    max_step_score: float
    n_replicates: int
    most: int
    rng: np.random.Generator
    tick: Tick

    def all(self) -> dict[str, Array]:
        """Verdicts on all trajectories, as many at a time as memory should hold."""
        n_steps = np.diff(self.first)
        chunk = np.cumsum(n_steps * self.n_replicates) // ENTRIES
        table = np.empty((len(n_steps), len(COLUMNS)))
        for number in np.unique(chunk):
            which = np.flatnonzero(chunk == number)
            table[which] = self._compare(which)
        columns = dict(zip(COLUMNS, table.T.copy(), strict=True))
        return columns | {name: columns[name].astype(np.int64) for name in _COUNTS}

    def _compare(self, which: Array) -> Array:
        steps, offsets = self._gather(which)
        surprise, repeats = self.seen
        seen = SimulatedSteps(Surprise(*(values[steps] for values in surprise)), repeats[steps])
        seen = seen.reshape(1, len(steps))
        observed = self._statistics(seen, steps, offsets)[0]
        pool = self._replicate(steps, offsets, self.n_replicates)
        out = np.empty((len(which), len(COLUMNS)))
        left = np.arange(len(which))
        for more in [*replicate_rounds(self.n_replicates, self.most), 0]:
            out[left], beyond = rank(observed[left], pool)
            rare = beyond < MIN_EXCEEDANCES
            left = left[rare]
            if more == 0 or len(left) == 0:
                break
            steps, offsets = self._gather(which[left])
            pool = np.concatenate([pool[:, rare], self._replicate(steps, offsets, more)])
        return out

    def _gather(self, which: Array) -> tuple[Array, Array]:
        """The steps of some trajectories, one after the other, and where each begins."""
        lengths = np.diff(self.first)[which]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        steps = np.repeat(self.first[which] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return steps, offsets

    def _replicate(self, steps: Array, offsets: Array, n_replicates: int) -> Array:
        """``(n_replicates, trajectories, 5)``: statistics of simulated trajectories."""
        found = []
        for actions in self.actor.act(steps, n_replicates, self.rng):
            tiled = np.tile(steps, len(actions))
            outcome = self.predictive.simulate(tiled, actions.ravel(), self.rng)
            self.tick(len(tiled))
            found.append(self._statistics(outcome.reshape(*actions.shape), steps, offsets))
        return np.concatenate(found)

    def _statistics(self, outcome: SimulatedSteps, steps: Array, offsets: Array) -> Array:
        action_surprise, noise_surprise = outcome.surprise
        out = np.empty((len(action_surprise), len(offsets) - 1, 5))
        _kernels.statistics(
            action_surprise - self.expected[0, steps],
            noise_surprise - self.expected[1, steps],
            self.scales[:, steps],
            outcome.repeats,
            offsets,
            self.max_step_score,
            SLACK,
            out,
        )
        return np.round(out, 9)  # equal histories are ties, whatever the rounding


def rank(observed: Array, pool: Array) -> tuple[Array, Array]:
    """Where trajectories stand among their replicates; and how few of these are beyond them.

    Takes statistics ``(k, 5)`` and those of replicates ``(R, k, 5)``, gives `COLUMNS`, ``(k, 9)``.
    The smallest of the five p-values is itself ranked among the smallest of each replicate, so it
    needs no correction. Many replicates are first in one of five; among those that tie, the one
    that stands out by more standard deviations is the odder.
    """
    from scipy.stats import rankdata

    together = np.concatenate([observed[None], pool])
    n = len(together)
    beyond = n + 1 - rankdata(together, method="min", axis=0)  # itself included
    smallest = beyond.min(axis=-1)
    mean, sd = pool.mean(axis=0), pool.std(axis=0)
    standing_out = ((together - mean) / np.maximum(sd, 1e-9)).max(axis=-1)
    as_odd = smallest < smallest[0]
    as_odd |= (smallest == smallest[0]) & (standing_out >= standing_out[0])
    score = (observed[:, 0] - mean[:, 0]) / np.maximum(sd[:, 0], MIN_SD)
    columns = [
        score,
        *(beyond[0] / n).T,
        as_odd.mean(axis=0),
        observed[:, 4],
        np.full(len(observed), n - 1),
    ]
    return np.column_stack(columns), smallest[0] - 1
