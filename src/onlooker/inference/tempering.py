"""Parallel tempering: hotter chains, to which the data say less, lend the cold one their moves.

Rung r targets the posterior with its likelihoods ``ℓ[t, j]`` raised to the power ``τ_r``. After a
sweep of every rung, neighbours may swap their states, which is accepted with probability
``min(1, exp((τ_r - τ_s)(E_s - E_r)))``, ``E = Σ_t ln ℓ[t, a_t]``: the product of all targets is
left invariant, and the rung with ``τ = 1`` draws from the posterior itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlooker.checks import Array, finite_array, positive_integer
from onlooker.gibbs.state import Data, State
from onlooker.inference.chain import Chain
from onlooker.partitions.partition import PartitionSampler
from onlooker.problem.problem import Problem

_MOST_RUNGS = 1000


def check_tempering(value: Any) -> tuple[float, ...] | int | None:
    """A number of rungs, or powers from 1 downwards; None for no tempering."""
    if value is None:
        return None
    if isinstance(value, Sequence | np.ndarray):
        powers = finite_array("tempering", value, ndim=1)
        if len(powers) < 2 or powers[0] != 1 or (np.diff(powers) >= 0).any() or powers[-1] < 0:
            raise ValueError(
                "tempering must be a number of rungs, or powers that fall from 1, such as "
                f"[1, 0.8, 0.6]; got {value!r}"
            )
        return tuple(float(power) for power in powers)
    n_rungs = positive_integer("tempering", value, minimum=2)
    if n_rungs > _MOST_RUNGS:
        raise ValueError(f"tempering must be at most {_MOST_RUNGS} rungs, got {n_rungs}")
    return n_rungs


def ladder(problem: Problem, tempering: tuple[float, ...] | int) -> tuple[float, ...]:
    """The powers of all rungs; a number of rungs is spaced so that swaps are often accepted.

    Two rungs that are ``1/sd(E)`` apart swap often. The variance of ``E`` is taken to be what it
    is without any policy, when each action follows its likelihood.
    """
    if not isinstance(tempering, int):
        return tempering
    weight = problem.layout.likelihood / problem.layout.likelihood.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        log = np.where(weight > 0, np.log(weight), 0.0)
    mean = (weight * log).sum(axis=1, keepdims=True)
    deviation = math.sqrt(float((weight * (log - mean) ** 2).sum()))
    step = 1.0 / max(deviation, 1.0)
    return tuple(math.exp(-rung * step) for rung in range(tempering))


class TemperedChain(Chain):
    """A chain at ``τ = 1`` with hotter ones beside it; the parameters are those of `Chain`.

    The hotter chains' states are kept in ``state.hotter``, so that a stored chain goes on with
    them.
    """

    def __init__(
        self, problem: Problem, partition: PartitionSampler, *, powers: Sequence[float],
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(problem, partition, **options)
        self.powers = powers
        stored: list[State | None] = list(self.state.hotter)
        states = stored or [None] * (len(powers) - 1)
        self._rungs = []
        for power, state in zip(powers[1:], states, strict=True):
            rng = self.state.rng.spawn(1)[0] if state is None else None
            rung = Chain(problem, partition, **(options | {"rng": rng, "state": state}))
            rung.data = Data(self.data.first, self.data.likelihood**power)
            self._rungs.append(rung)
        self._remember()

    def _remember(self) -> None:
        self.state.hotter = [rung.state for rung in self._rungs]

    def sweep(self) -> None:
        """A sweep of every rung, then swaps between neighbours."""
        super().sweep()
        for rung in self._rungs:
            rung.sweep()
        chains: list[Chain] = [self, *self._rungs]
        rng = self.state.rng
        energy = [self._energy(chain) for chain in chains]
        for lower in range(int(rng.random() < 0.5), len(chains) - 1, 2):
            upper = lower + 1
            gain = (self.powers[lower] - self.powers[upper]) * (energy[upper] - energy[lower])
            if math.log1p(-rng.random()) < gain:
                _swap(chains[lower], chains[upper])
        self._remember()

    def _energy(self, chain: Chain) -> float:
        """``Σ_t ln ℓ[t, a_t]`` at ``τ = 1``, up to a constant that all rungs share."""
        chosen: Array = np.take_along_axis(
            self.data.likelihood, chain.state.actions[:, None], axis=1
        )
        return float(np.log(chosen).sum())


def _swap(first: Chain, second: Chain) -> None:
    """Exchange all but the random streams."""
    first.state.hotter, second.state.hotter = [], []
    first.state, second.state = second.state, first.state
    first.state.rng, second.state.rng = second.state.rng, first.state.rng
    first.tables, second.tables = second.tables, first.tables
