"""How long to sample, and one chain on its way through it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from onlooker.checks import Setting, positive_integer, require_memory
from onlooker.gibbs.arrays import smallest_int
from onlooker.gibbs.state import State
from onlooker.inference.chain import Chain
from onlooker.inference.draws import Draws
from onlooker.inference.target import Binder, Target
from onlooker.partitions.base import Bound

End = Literal["draws", "auto", "converged", "time"]
"""What ends sampling: a number of draws; or, if it is to go on until the chains have converged
(``"auto"``: it has not ended yet), that they have, or a budget of time."""

LEAST_DRAWS = 10
"""Of each chain, before a budget of time may end sampling."""


@dataclass(frozen=True)
class Schedule:
    """How many draws of how many chains, from which seed."""

    draws: int
    tune: int = 0
    """Sweeps to discard before."""
    chains: int = 1
    thin: int = 1
    """Sweeps from one kept draw to the next."""
    seed: int = 0
    """Entropy of the `numpy.random.SeedSequence` whose children are the chains' streams."""
    end: End = "draws"
    """What ends sampling, or has ended it."""

    def __post_init__(self) -> None:
        positive_integer("draws", self.draws)
        positive_integer("tune", self.tune, minimum=0)
        positive_integer("thin", self.thin)
        positive_integer("chains", self.chains)

    @property
    def n_sweeps(self) -> int:
        """Sweeps of one chain."""
        return self.tune + self.draws * self.thin

    def kept(self, sweeps: int) -> int:
        """Draws that so many sweeps of a chain make."""
        return max(0, sweeps - self.tune) // self.thin

    def rng(self, chain: int) -> np.random.Generator:
        """The stream of a chain: what ``SeedSequence(seed).spawn(chains)[chain]`` gives."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(chain,)))


_SCALARS = 256  # bytes of the numbers that are kept of a draw
_CHAIN, _PER_NODE = 10_000, 80  # bytes of a chain with the leanest prior, and of each node in it


def require_room(target: Target, schedule: Schedule) -> None:
    """Refuse more than fits into memory: chains, and draws, which these keep and are stacked."""
    problem, chains = target.problem, schedule.chains
    n, unseen = problem.n_nodes, problem.incomplete
    fewer_chains = "choose fewer ", Setting("chains")
    require_memory(chains * (_CHAIN + _PER_NODE * n), f"{chains:,} chains", *fewer_chains)
    per_node = smallest_int(n).itemsize * (1 + len(target.prior.kept))
    each = n * per_node + problem.n_transitions * smallest_int(problem.n_actions).itemsize
    each += _SCALARS + (0 if unseen is None else 8 * unseen.observed.size)
    require_memory(
        2 * chains * schedule.draws * each,
        f"{schedule.draws:,} draws of {chains:,} chains, {each:,} bytes each,",
        "choose fewer ",
        Setting("draws"),
        "; to keep every k-th sweep only, choose ",
        Setting("thin"),
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


class Sink(Protocol):
    """Where draws go while sampling goes on; a store on disk is one."""

    def stored(self, chain: int, bound: Bound[Any]) -> tuple[Draws | None, State[Any] | None, int]:
        """What it holds of a chain: its draws, and the state after so many sweeps."""

    def offer(self, runner: Runner, force: bool) -> None:
        """Take what a chain has drawn, if it is time to."""


class Runner:
    """One chain on its way: sweeps, keeps draws, and knows how far it is.

    Parameters
    ----------
    index
        Number of the chain.
    schedule
        How long it runs; may be extended on the way.
    bind
        Makes the bound prior of a chain.
    state, sweeps
        Where a stored chain stopped; without a state the chain starts at its beginning.
    """

    def __init__(
        self,
        index: int,
        schedule: Schedule,
        bind: Binder,
        state: State[Any] | None = None,
        sweeps: int = 0,
    ) -> None:
        self.index = index
        self.schedule = schedule
        self.sweeps = sweeps
        self.first = self.kept
        self.error: BaseException | None = None
        self.at_rest = threading.RLock()  # whoever has it knows that no sweep is under way
        self._bind = bind
        self._state = state
        self._chain: Chain | None = None
        self._buffer: Draws | None = None

    @property
    def kept(self) -> int:
        """Draws kept so far, those of earlier runs included."""
        return self.schedule.kept(self.sweeps)

    @property
    def done(self) -> bool:
        """Whether all sweeps are made."""
        return self.sweeps >= self.schedule.n_sweeps

    @property
    def started(self) -> bool:
        """Whether there is a chain yet."""
        return self._chain is not None

    @property
    def chain(self) -> Chain:
        """The chain; made when first needed, so that starts run in parallel too."""
        if self._chain is None:
            rng, bound = self.schedule.rng(self.index), self._bind(self.index)
            self._chain = Chain(
                self._bind.target, bound, index=self.index, rng=rng, state=self._state
            )
            self._state = None
        return self._chain

    @property
    def draws(self) -> Draws:
        """What was drawn since `first`."""
        if self._buffer is None:
            return Draws.empty(0, self.chain.draw())
        return self._buffer[: self.kept - self.first]

    @property
    def n_controllers(self) -> int | None:
        """Clusters in use, for the progress line."""
        return None if self._chain is None else self._chain.n_controllers

    def sweep(self) -> None:
        """One sweep; keep a draw if it is time for one."""
        chain, before = self.chain, self.kept
        chain.sweep()
        if self.sweeps < self.schedule.tune:
            chain.adapt()
        if self.schedule.kept(self.sweeps + 1) > before:
            self._room_for(draw := chain.draw()).put(before - self.first, draw)
        self.sweeps += 1  # last: `draws` must never show a draw that is not there yet

    def _room_for(self, draw: dict[str, Any]) -> Draws:
        room = self.schedule.draws - self.first
        if self._buffer is None:
            self._buffer = Draws.empty(room, draw)
        elif len(self._buffer) < room:  # the schedule was extended
            grown = Draws.empty(room, draw)
            grown.paste(0, self.draws)
            self._buffer = grown
        return self._buffer

    def absorb(self, block: Draws, state: State[Any], sweeps: int) -> None:
        """Take over what the same chain did elsewhere."""
        self._chain, self._state = None, state  # made anew: what goes with the state is, too
        if len(block):
            one = {name: values[0] for name, values in block.arrays.items()}
            self._room_for(one).paste(self.kept - self.first, block)
        self.sweeps = sweeps

    def advance(self, seconds: float = np.inf, sweeps: int | None = None) -> None:
        """Go on until all is done, or for about so long, or for so many sweeps."""
        last = self.schedule.n_sweeps if sweeps is None else self.sweeps + sweeps
        last = min(last, self.schedule.n_sweeps)
        deadline = time.monotonic() + seconds
        with self.at_rest:
            while self.sweeps < last:
                self.sweep()
                if time.monotonic() >= deadline:
                    return

    def compile(self) -> None:
        """Make sure that every kernel a chain calls is compiled; draws nothing."""
        self.chain.draw()


def out_of_time(runners: list[Runner], deadline: float) -> bool:
    """Whether the deadline has passed and every chain has at least a few draws."""
    alive = (runner for runner in runners if runner.error is None)
    return time.monotonic() >= deadline and all(one.kept >= LEAST_DRAWS for one in alive)


def progress_of(runners: list[Runner]) -> tuple[int, str]:
    """Sweeps done by all chains, and what to say of them."""
    done = sum(min(runner.sweeps, runner.schedule.n_sweeps) for runner in runners)
    counts = [n for runner in runners if (n := runner.n_controllers) is not None]
    if not counts:
        return done, ""
    low, high = min(counts), max(counts)
    plural = "" if high == 1 else "s"
    return done, f"{low} controller{plural}" if low == high else f"{low} to {high} controllers"
