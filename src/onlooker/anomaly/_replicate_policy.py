"""Actions of replicates: each replicate has one policy, drawn from what is believed of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np

from onlooker.anomaly._predictive import Predictive, draw_from, slices_of
from onlooker.checks import Array
from onlooker.partitions.base import Strategy
from onlooker.prediction.predictor import Predictor

if TYPE_CHECKING:
    from onlooker.posterior import Posterior


class ReplicatePolicy(Protocol):
    """Whoever acts in the replicates."""

    def act(self, steps: Array, n_replicates: int, rng: np.random.Generator) -> Iterator[Array]:
        """Actions at `steps`, ``(batch, len(steps))`` at a time, `n_replicates` in all."""


class KnownPolicy:
    """The same policy in all replicates."""

    def __init__(self, predictive: Predictive) -> None:
        self._predictive = predictive

    def act(self, steps: Array, n_replicates: int, rng: np.random.Generator) -> Iterator[Array]:
        """Actions at `steps`, ``(batch, len(steps))`` at a time, `n_replicates` in all."""
        for part in slices_of(n_replicates, len(steps)):
            tiled = np.tile(steps, part.stop - part.start)
            yield self._predictive.draw_actions(tiled, rng).reshape(-1, len(steps))


class DrawnPolicies:
    """Another draw of the posterior in each replicate, with controllers ``θ ~ Dir(ξ + α)``.

    Parameters
    ----------
    posterior
        The nominal posterior.
    states
        Where each step starts.
    extrapolate
        As in `Posterior.policy`.
    most
        Draws to use; evenly spread over all chains.
    """

    def __init__(
        self, posterior: Posterior, states: Array, extrapolate: Strategy | None, most: int
    ) -> None:
        n_draws = posterior.n_chains * posterior.n_draws
        spread = np.linspace(0, n_draws - 1, min(most, n_draws)).astype(np.int64)
        # shuffled, so that a part of them is spread over the chains too
        chosen = np.random.default_rng(posterior.schedule.seed).permutation(spread)
        self._predictor = Predictor(
            posterior.problem,
            posterior.prior,
            posterior.draws.pooled()[chosen],
            posterior.schedule.seed,
        )
        self._states, self._node = self._predictor.place(states)
        self._rule = self._predictor.rule(extrapolate)

    def act(self, steps: Array, n_replicates: int, rng: np.random.Generator) -> Iterator[Array]:
        """Actions at `steps`, ``(batch, len(steps))`` at a time, `n_replicates` in all."""
        states, node = self._states[steps], self._node[steps]
        left = n_replicates
        while left > 0:
            for clusters in self._predictor.blocks():
                for part in slices_of(min(left, len(clusters.index)), len(steps)):
                    some = clusters.take(np.arange(part.start, part.stop))
                    rows = self._predictor.draw_rows(some, states, node, self._rule, rng)
                    cumulative = np.cumsum(some.thetas(rng), axis=1)
                    left -= len(rows)
                    yield draw_from(cumulative, rows.ravel(), rng).reshape(rows.shape)
