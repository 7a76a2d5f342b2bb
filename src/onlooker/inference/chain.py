"""One Markov chain: a list of updates, and the state that they draw in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.actions import draw_from_likelihood
from onlooker.gibbs.arrays import Counts, Slots, count, make_tables, smallest_int
from onlooker.gibbs.slices import scattered_start_of
from onlooker.gibbs.state import Nothing, State
from onlooker.gibbs.update import Info
from onlooker.inference.draws import relabel
from onlooker.inference.target import Target
from onlooker.inference.updates import controllers_given_counts
from onlooker.partitions.base import Bound
from onlooker.problem.nodes import Owners

_NONE = np.zeros(0, dtype=np.int32)


class Chain:
    """A chain at one of its states.

    Parameters
    ----------
    target
        The posterior that is sampled.
    bound
        The prior, bound to the problem that this chain sees.
    index
        Number of the chain: those of a spatial prior start far apart.
    rng
        The chain's own generator.
    state
        Where to go on from; without it the chain starts as the prior likes to, with actions drawn
        from their likelihoods.
    """

    def __init__(
        self,
        target: Target,
        bound: Bound[Any],
        *,
        index: int = 0,
        rng: np.random.Generator | None = None,
        state: State[Any] | None = None,
    ) -> None:
        self.target = target
        self.bound = bound
        self.updates = target.updates(bound)
        self.info: dict[str, float] = {}
        """What the updates of the last sweep reported, as ``"update.name"``."""
        if state is None:
            self._start(index, np.random.default_rng() if rng is None else rng)
        else:
            self.state = state
            self._prepare()

    def _start(self, index: int, rng: np.random.Generator) -> None:
        """Hyper-parameters and unseen states, then actions, then the partition."""
        data, problem = self.bound.layout.data, self.bound.layout.problem
        self.state = state = State(
            rng,
            actions=np.empty(len(data.order), dtype=np.int32),
            labels=_NONE,
            counts=Counts(_NONE, _NONE, _NONE, _NONE),
            slots=Slots(_NONE, _NONE, _NONE),
            hyper={"alpha": self.target.start_alpha},
            partition=Nothing(),
        )
        for update in self.updates:
            update.begin(state)
        if self.bound.scattered and index > 0:
            for name in state.hyper:
                state.hyper[name] = scattered_start_of(self.target.hyper()[name], rng)
        self._prepare()
        draw_from_likelihood(state.actions, state.data, rng)
        state.labels, state.slots, state.partition, hyper = self.bound.start(rng, index)
        state.hyper |= hyper
        n_slots = len(state.slots.order)
        state.counts = count(
            state.actions, state.labels, state.data.first, problem.n_behaviours, n_slots
        )
        if state.controllers is not None:
            state.controllers = controllers_given_counts(state)

    def _prepare(self) -> None:
        state, problem = self.state, self.bound.layout.problem
        state.data = self.bound.layout.data
        state.tables = make_tables(
            state.hyper["alpha"],
            problem.n_behaviours,
            problem.n_transitions,
            problem.base_measure(state.masses),
        )
        for update in self.updates:
            update.prepare(state)

    def sweep(self) -> dict[str, Info]:
        """Every update once."""
        infos = {update.name: update(self.state) for update in self.updates}
        self.info = {
            f"{name}.{key}": value for name, info in infos.items() for key, value in info.items()
        }
        self._infos = infos
        return infos

    def adapt(self) -> None:
        """Let every update learn from the last sweep: during tuning only."""
        for update in self.updates:
            update.adapt(self.state, self._infos[update.name])

    # -- what a state says ----------------------------------------------------------------------

    @property
    def actions(self) -> Array:
        """The latent actions or behaviours, in the order of the problem's transitions."""
        return self.state.data.unsorted(self.state.actions)

    @property
    def labels(self) -> Array:
        """Each node's cluster, in the order of the problem's nodes."""
        return self.bound.layout.of_nodes(self.state.labels)

    @property
    def n_controllers(self) -> int:
        """Clusters in use."""
        return self.state.n_used

    def policy(self) -> Array:
        """``(N, A)``: the nodes' policies by this one state.

        ``(ξ_z + α) / (ξ_z· + Aα)`` if controllers are integrated out, else ``θ_z``.
        """
        state = self.state
        if state.controllers is not None:
            return np.asarray(state.controllers[self.labels])
        tables = state.tables
        cluster = state.counts.cluster[self.labels] + tables.alpha * tables.share
        return np.asarray(cluster / cluster.sum(axis=1, keepdims=True))

    def draw(self) -> dict[str, Array]:
        """What is kept of this state, in the problem's order, in the narrowest integers.

        Clusters are numbered by first appearance.
        """
        state, problem = self.state, self.bound.layout.problem
        labels, kept = self.labels, self.bound.kept(state)
        if problem.owners is not None:
            labels, kept = problem.owners.spread(labels), _spread(kept, problem.owners)
            problem = problem.owners.whole
        labels = relabel(labels, np.empty(len(state.counts.size), dtype=np.int32))
        return {
            "labels": labels.astype(smallest_int(problem.n_nodes)),
            problem.drawn: self.actions.astype(smallest_int(problem.n_behaviours)),
            "log_joint": np.asarray(self.log_joint()),
            **{f"hyper.{name}": np.asarray(value) for name, value in state.hyper.items()},
            **kept,
            **{name: kept for update in self.updates for name, kept in update.kept(state).items()},
            **{f"info.{name}": np.asarray(value) for name, value in self.info.items()},
        }

    def log_joint(self) -> float:
        """``ln p(s, a, z)`` with the controllers integrated out; no label or order enters it."""
        state = self.state
        used = state.counts.size > 0
        log_dm = (
            state.tables.action[state.tables.kind, state.counts.cluster[used]].sum()
            - state.tables.total[state.counts.total[used]].sum()
        )
        return float(
            state.data.log_likelihood(state.actions)
            + log_dm
            + self.bound.log_prior(state)
            + sum(update.log_density(state) for update in self.updates)
        )


def _spread(kept: dict[str, Array], owners: Owners) -> dict[str, Array]:
    """What a prior keeps of the landmarks, for every state; regions are numbered anew."""
    n = len(owners.owner)
    spread = {}
    for name, values in kept.items():
        if name == "links":
            spread[name] = owners.links(values)
        else:
            spread[name] = relabel(owners.spread(values), np.empty(n, dtype=np.int32))
        spread[name] = spread[name].astype(smallest_int(n))
    return spread
