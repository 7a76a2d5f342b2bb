"""What is to be run, and one chain on its way through it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker.checks import positive_integer
from onlooker.gibbs.state import State
from onlooker.hyper import Prior, check_hyper
from onlooker.inference.chain import Chain
from onlooker.inference.draws import Draws
from onlooker.partitions.base import PartitionPrior
from onlooker.partitions.partition import PartitionSampler
from onlooker.problem.problem import Problem

_MOST_ALPHA = 1e9


@dataclass(frozen=True)
class Plan:
    """Everything that decides which draws come out, and nothing else."""

    problem: Problem
    prior: PartitionPrior
    concentration: float | Prior
    collapsed: bool
    draws: int
    tune: int
    thin: int
    chains: int
    seed: int
    """Entropy of the `numpy.random.SeedSequence` whose children are the chains' streams."""

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise TypeError(
                f"problem must be a Problem, got {type(self.problem).__name__}; "
                "make one by Problem.from_demonstrations(demos, dynamics)"
            )
        if not isinstance(self.prior, PartitionPrior):
            raise TypeError(
                f"prior must be a partition prior such as DistanceDependent(), got {self.prior!r}"
            )
        check_hyper("concentration", self.concentration)
        if not isinstance(self.concentration, Prior) and self.concentration > _MOST_ALPHA:
            raise ValueError(
                f"concentration must be at most {_MOST_ALPHA:g}, got {self.concentration}: counts "
                "would drown in rounding"
            )
        positive_integer("draws", self.draws)
        positive_integer("tune", self.tune, minimum=0)
        positive_integer("thin", self.thin)
        positive_integer("chains", self.chains)
        if self.prior.collapsed_only and not self.collapsed:
            raise ValueError(
                f"{type(self.prior).__name__} has no ordinary Gibbs sampler: its controllers are "
                "always integrated out; use collapsed=True"
            )

    @property
    def n_sweeps(self) -> int:
        """Sweeps of one chain."""
        return self.tune + self.draws * self.thin

    def rng(self, chain: int) -> np.random.Generator:
        """The stream of a chain: what ``SeedSequence(seed).spawn(chains)[chain]`` gives."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(chain,)))

    def start(self, chain: int, sampler: PartitionSampler, state: State | None = None) -> Chain:
        """A chain at its beginning, or where `state` left it."""
        return Chain(
            self.problem,
            sampler,
            alpha=self.concentration,
            collapsed=self.collapsed,
            rng=self.rng(chain),
            state=state,
        )


def seed_of(random_state: Any) -> int:
    """One integer that stands for a seed, a generator or nothing."""
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    return positive_integer("random_state", random_state, minimum=0)


class Runner:
    """One chain on its way: sweeps, keeps draws, and knows how far it is.

    Parameters
    ----------
    index
        Number of the chain.
    plan
        What is to be run.
    sampler
        The sampler of the partition, shared by all chains.
    state, sweeps
        Where a stored chain stopped; without a state the chain starts at its beginning.
    """

    def __init__(
        self,
        index: int,
        plan: Plan,
        sampler: PartitionSampler,
        state: State | None = None,
        sweeps: int = 0,
    ) -> None:
        self.index = index
        self.plan = plan
        self.sweeps = sweeps
        self.first = self.kept
        self.error: BaseException | None = None
        self._sampler = sampler
        self._state = state
        self._chain: Chain | None = None
        self._draws: Draws | None = None

    @property
    def kept(self) -> int:
        """Draws kept so far, those of earlier runs included."""
        return max(0, self.sweeps - self.plan.tune) // self.plan.thin

    @property
    def done(self) -> bool:
        """Whether all sweeps are made."""
        return self.sweeps >= self.plan.n_sweeps

    @property
    def started(self) -> bool:
        """Whether there is a chain yet."""
        return self._chain is not None

    @property
    def chain(self) -> Chain:
        """The chain; made when first needed, so that starts run in parallel too."""
        if self._chain is None:
            self._chain = self.plan.start(self.index, self._sampler, self._state)
            self._state = None
        return self._chain

    @property
    def draws(self) -> Draws:
        """What was drawn since `first`."""
        return self._buffer[: self.kept - self.first]

    @property
    def _buffer(self) -> Draws:
        if self._draws is None:
            self._draws = Draws.empty(self.plan.draws - self.first, self.chain)
        return self._draws

    @property
    def n_controllers(self) -> int | None:
        """Clusters in use, for the progress line."""
        return None if self._chain is None else self._chain.n_controllers

    def sweep(self) -> None:
        """One sweep; keep a draw if it is time for one."""
        chain, before = self.chain, self.kept
        chain.sweep()
        if self.sweeps + 1 > self.plan.tune:
            after = (self.sweeps + 1 - self.plan.tune) // self.plan.thin
            if after > before:
                self._buffer.put(before - self.first, chain)
        self.sweeps += 1  # last: `draws` must never show a draw that is not there yet

    def absorb(self, block: Draws, state: State, sweeps: int) -> None:
        """Take over what the same chain did elsewhere."""
        self._chain, self._state = None, state  # made anew: what goes with the state is, too
        self._buffer.paste(self.kept - self.first, block)
        self.sweeps = sweeps

    def advance(self, seconds: float = np.inf, sweeps: int | None = None) -> None:
        """Go on until all is done, or for about so long, or for so many sweeps."""
        last = self.plan.n_sweeps if sweeps is None else self.sweeps + sweeps
        last = min(last, self.plan.n_sweeps)
        deadline = time.monotonic() + seconds
        while self.sweeps < last:
            self.sweep()
            if time.monotonic() >= deadline:
                return

    def compile(self) -> None:
        """Make sure that every kernel a chain calls is compiled; draws nothing."""
        Draws.empty(1, self.chain).put(0, self.chain)
