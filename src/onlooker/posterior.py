"""Draws, and what they say: policies, partitions, predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np

from onlooker.checks import Array, one_of, positive_integer, read_only, require_memory
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics.base import unknown_parameters
from onlooker.inference.draws import Draws
from onlooker.partitions.base import Strategy
from onlooker.prediction.forecast import Forecast
from onlooker.prediction.predictor import PolicyInterval, Predictor

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from onlooker.consensus import ConsensusResult
    from onlooker.consensus.stability import Stability
    from onlooker.dynamics.base import Dynamics
    from onlooker.inference.runner import End, Schedule
    from onlooker.inference.target import Target
    from onlooker.partitions.base import PartitionPrior
    from onlooker.problem.problem import Problem

__all__ = ["PolicyInterval", "Posterior"]


class Posterior:
    """Draws from the posterior over actions, partitions and hyper-parameters.

    Made by `onlooker.sample` and `Posterior.load`.

    Attributes
    ----------
    target
        The problem, the prior and the concentration whose posterior this is.
    schedule
        How many draws of how many chains, from which seed.
    labels : (chain, draw, node) int array
        Clusters, in each draw numbered by first appearance: labels mean nothing across draws.
    actions : (chain, draw, transition) int array
        Latent actions, in the order of the problem's transitions.
    kinds : (chain, draw, kind) array, or None
        Masses of the kinds of behaviours, in the order of ``problem.kinds``.
    links : (chain, draw, node) int array, or None
        The links of the distance-dependent prior.
    imputed : (chain, draw, unseen) int or (chain, draw, unseen, dimension) array, or None
        States that were not seen, in the order of ``problem.incomplete.hidden``.
    log_joint : (chain, draw) array
        ``ln p(s, a, z)``, controllers integrated out.
    hyper : mapping of (chain, draw) arrays
        Draws of hyper-parameters, constant where fixed.
    chain_ids : list of int
        Numbers of the chains; one that failed is missing.
    draws : Draws
        All these arrays by name.
    """

    def __init__(
        self, target: Target, schedule: Schedule, draws: Draws, chain_ids: Sequence[int]
    ) -> None:
        self.target = target
        self.schedule = schedule
        self.draws = Draws({name: read_only(values) for name, values in draws.arrays.items()})
        self.chain_ids = list(chain_ids)
        self._consensus: dict[tuple[str, str], ConsensusResult] = {}

    @property
    def labels(self) -> Array:
        """``(chain, draw, node)``: clusters."""
        return self.draws.labels

    @cached_property
    def actions(self) -> Array:
        """``(chain, draw, transition)``: latent actions.

        With a repertoire, drawn given the behaviours (which are ``draws.behaviours``), ``p(a | b,
        s, s') ∝ π_b(a | s) T(s' | s, a)``.
        """
        if self.problem.policies is None:
            return self.draws.actions
        return read_only(self._drawn_actions())

    def _drawn_actions(self) -> Array:
        problem, behaviours = self.problem, self.draws.behaviours
        dynamics: Any = self.problem.dynamics
        if dynamics is None or problem.next_states is None:
            raise ValueError("actions need the dynamics, which are not there; give dynamics=")
        assert problem.policies is not None
        states = problem.start_states
        loglik = dynamics.log_likelihood(states, problem.next_states)
        return np.array(
            [
                problem.policies.actions_given(
                    states, drawn, loglik, np.random.default_rng([self.schedule.seed, chain])
                )
                for chain, drawn in zip(self.chain_ids, behaviours, strict=True)
            ]
        )

    @property
    def kinds(self) -> Array | None:
        """``(chain, draw, kind)``: how much of what is done is of each of ``problem.kinds``."""
        return self.draws.kinds

    @property
    def regions(self) -> Array | None:
        """``(chain, draw, node)``: the region of every node, where clusters are made of regions."""
        return self.draws.regions

    @property
    def n_regions(self) -> Array | None:
        """``(chain, draw)``: number of regions."""
        return None if self.regions is None else self.regions.max(axis=-1).astype(np.int64) + 1

    @property
    def links(self) -> Array | None:
        """``(chain, draw, node)``: links of the distance-dependent prior."""
        return self.draws.links

    @property
    def imputed(self) -> Array | None:
        """``(chain, draw, unseen, ...)``: states that were not seen."""
        return self.draws.imputed

    @property
    def log_joint(self) -> Array:
        """``(chain, draw)``: ``ln p(s, a, z)``."""
        return self.draws.log_joint

    @cached_property
    def hyper(self) -> Mapping[str, Array]:
        """``(chain, draw)`` each: hyper-parameters."""
        return MappingProxyType(self.draws.hyper)

    def thin(self, step: int) -> Self:
        """Every `step`-th draw of each chain."""
        every = slice(None, None, positive_integer("step", step))
        return self._with(self.draws.take(draws=every), self.chain_ids)

    def chain(self, index: int) -> Self:
        """One chain alone, counted from 0."""
        return self._with(self.draws.take(chains=[index]), [self.chain_ids[index]])

    def _with(self, draws: Draws, chain_ids: Sequence[int]) -> Self:
        n_chains, n_draws = draws.labels.shape[:2]
        schedule = replace(self.schedule, draws=n_draws, chains=n_chains)
        return type(self)(self.target, schedule, draws, chain_ids)

    @property
    def info(self) -> Mapping[str, Array]:
        """``(chain, draw)`` each: what updates of the sampler reported, such as acceptance."""
        return MappingProxyType(self.draws.info)

    @property
    def ended(self) -> End:
        """What ended sampling: ``"draws"``, all that were asked for; with ``draws="auto"``
        ``"converged"`` or ``"time"``; ``"auto"`` if it goes on, or was stopped."""
        return self.schedule.end

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.target.problem

    @property
    def prior(self) -> PartitionPrior[Any]:
        """The prior over partitions."""
        return self.target.prior

    @property
    def mean_dynamics(self) -> Dynamics | None:
        """The problem's dynamics, with unknown parameters at their posterior means."""
        dynamics: Any = self.problem.dynamics
        names = unknown_parameters(dynamics)
        if not names:
            return dynamics  # type: ignore[no-any-return]
        made: Dynamics = dynamics.at({name: float(self.hyper[name].mean()) for name in names})
        return made

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.labels)

    @property
    def n_draws(self) -> int:
        """Draws of each chain."""
        return self.labels.shape[1]

    @cached_property
    def n_controllers(self) -> Array:
        """``(chain, draw)``: clusters in use."""
        return self.labels.max(axis=2).astype(np.int64) + 1

    def __repr__(self) -> str:
        return (
            f"Posterior({self.n_chains} chains of {self.n_draws} draws, "
            f"{type(self.prior).__name__}, {self.problem!r})"
        )

    # -- policies -------------------------------------------------------------------------------

    @cached_property
    def predictor(self) -> Predictor:
        """Answers about any state, draw by draw too."""
        chains = np.repeat(self.chain_ids, self.n_draws)
        return self._predictor_of(self.draws.pooled(), chains)

    def _predictor_of(self, draws: Draws, chains: Array | None = None) -> Predictor:
        return Predictor(self.problem, self.prior, draws, self.schedule.seed, chains=chains)

    @overload
    def policy(
        self,
        states: Any = None,
        *,
        extrapolate: Strategy | None = None,
        interval: None = None,
        n_neighbors: int | None = None,
    ) -> Array: ...
    @overload
    def policy(
        self,
        states: Any = None,
        *,
        extrapolate: Strategy | None = None,
        interval: float,
        n_neighbors: int | None = None,
    ) -> PolicyInterval: ...

    def policy(
        self,
        states: Any = None,
        *,
        extrapolate: Strategy | None = None,
        interval: float | None = None,
        n_neighbors: int | None = None,
    ) -> Array | PolicyInterval:
        """The predictive action distribution, ``(n, A)``.

        A node has the policy of its cluster, ``(ξ_z + α) / (ξ_z· + Aα)``, averaged over the draws.
        Controllers that were drawn (``collapsed=False``) are integrated out here too: the same
        mean with less noise.

        Parameters
        ----------
        states
            ``(n,)`` integers or ``(n, d)`` floats; None: the nodes.
        extrapolate
            What to do about a state that is no node. ``"average"`` (default): mix all clusters by
            their weights, a new one included. ``"map"``: take the policy of its one most likely
            cluster in each draw, as the paper does. ``"local"``: mix by the decaying part of the
            similarity alone. Intervals of the last two are too narrow, the more so the farther a
            state is from all nodes.
        interval
            Probability of a credible interval, e.g. 0.9; it covers the uncertainty of the
            partition, of the actions and of the controllers given both.
        n_neighbors
            Weights come from the nearest so many nodes only; by default as the prior says.

        Returns
        -------
        ndarray or PolicyInterval
            The mean, or ``(mean, low, high)`` if `interval` is given.
        """
        return self._asked("actions", states, extrapolate, interval, n_neighbors)

    def _asked(
        self,
        of: Literal["actions", "behaviours"],
        states: Any,
        extrapolate: Strategy | None,
        interval: float | None,
        n_neighbors: int | None,
    ) -> Array | PolicyInterval:
        predictor = self.predictor
        rule = predictor.rule(extrapolate, n_neighbors)
        if states is None:
            queries, node = self.problem.states, np.arange(self.problem.n_nodes)
        else:
            queries, node = predictor.place(states)
        mean = (predictor.mean if of == "actions" else predictor.behaviours)(queries, node, rule)
        if interval is None:
            return mean
        if not 0 < interval < 1:
            raise ValueError(f"interval must be between 0 and 1, got {interval!r}; 0.9 is usual")
        tail = (1 - interval) / 2
        low, high = predictor.quantiles(queries, node, rule, (tail, 1 - tail), of)
        return PolicyInterval(mean, low, high)

    @overload
    def behaviours(
        self,
        states: Any = None,
        *,
        extrapolate: Strategy | None = None,
        interval: None = None,
        n_neighbors: int | None = None,
    ) -> Array: ...
    @overload
    def behaviours(
        self,
        states: Any = None,
        *,
        extrapolate: Strategy | None = None,
        interval: float,
        n_neighbors: int | None = None,
    ) -> PolicyInterval: ...

    def behaviours(
        self,
        states: Any = None,
        *,
        extrapolate: Strategy | None = None,
        interval: float | None = None,
        n_neighbors: int | None = None,
    ) -> Array | PolicyInterval:
        """What is done in terms of ``problem.behaviours``, ``(n, B)``; arguments as of `policy`."""
        return self._asked("behaviours", states, extrapolate, interval, n_neighbors)

    def controllers(self) -> pd.DataFrame:
        """One row a controller of the consensus partition, the largest first.

        How many states it has and its share of the transitions; how certain its states belong
        together; what it does in words; and the probability of its leading behaviour with a 90 %
        interval.
        """
        from onlooker.prediction.controllers import controllers

        return controllers(self)

    # -- what happens next ----------------------------------------------------------------------
    # Where the dynamics has unknown parameters, each draw's policy acts under its own dynamics, and
    # predictions are averages over up to `forecast.MAX_DYNAMICS` draws, evenly spaced.

    def next_state(self, states: Any, *, dynamics: Dynamics | None = None, **how: Any) -> Array:
        """Probabilities of the next state in a finite space, ``Σ_j T(s' | s, j) p(j | s)``, (n, S).

        In a continuous space, see `next_state_log_density` and `next_state_samples`. Further
        arguments go to `policy`.
        """
        return Forecast(self, dynamics, how).next_state(states)

    def next_state_log_density(
        self, states: Any, next_states: Any, *, dynamics: Dynamics | None = None, **how: Any
    ) -> Array:
        """``ln Σ_j T(s' | s, j) p(j | s, data)`` of each pair, ``(n,)``."""
        return Forecast(self, dynamics, how).log_density(states, next_states)

    def next_state_samples(
        self,
        states: Any,
        n_samples: int = 1,
        random_state: Any = None,
        *,
        dynamics: Dynamics | None = None,
        **how: Any,
    ) -> Array:
        """Draws of the next state, ``(n_samples, n)`` integers or ``(n_samples, n, d)`` floats."""
        n_samples = positive_integer("n_samples", n_samples)
        rng = np.random.default_rng(random_state)
        return Forecast(self, dynamics, how).samples(states, n_samples, rng)

    def log_predictive(
        self, demos: Demonstrations, *, dynamics: Dynamics | None = None, **how: Any
    ) -> Array:
        """Log predictive density of every transition of `demos`, pooled; higher is better.

        Further arguments go to `policy`.
        """
        states, next_states = Demonstrations(demos).transitions()
        return self.next_state_log_density(states, next_states, dynamics=dynamics, **how)

    def rollout(
        self,
        start_states: Any,
        length: int,
        random_state: Any = None,
        *,
        dynamics: Dynamics | None = None,
        **how: Any,
    ) -> Demonstrations:
        """Imitate: simulate the predictive policy for `length` states from each start state.

        Where the dynamics has unknown parameters, each trajectory moves by those of one draw.
        Further arguments go to `policy`.
        """
        rng = np.random.default_rng(random_state)
        return Forecast(self, dynamics, how).rollout(start_states, length, rng)

    # -- partitions -----------------------------------------------------------------------------

    def co_clustering(self) -> Array:
        """``(N, N)``: the probability that two nodes share a cluster."""
        from onlooker.consensus import co_clustering

        n = self.problem.n_nodes
        require_memory(16 * n**2, f"a table of all pairs of {n:,} nodes", "use partition()")
        return co_clustering(self.labels)

    def consensus(
        self,
        loss: Literal["vi", "binder"] = "vi",
        of: Literal["controllers", "regions"] = "controllers",
    ) -> ConsensusResult:
        """The consensus partition, with how certain it is; computed once.

        Two nodes are together that share a controller or, `of` regions, that lie in one region.
        """
        from onlooker.consensus import consensus

        one_of("of", of, ("controllers", "regions"))
        labels = self.labels if of == "controllers" else self.regions
        if labels is None:
            raise ValueError(
                f"{type(self.prior).__name__} has no regions beside its controllers; "
                "use of='controllers', or sample with Regions()"
            )
        if (loss, of) not in self._consensus:
            self._consensus[loss, of] = consensus(labels, loss, random_state=0)
        return self._consensus[loss, of]

    def use_consensus(self, result: ConsensusResult) -> None:
        """Take a consensus that was computed before, or from fewer of the draws."""
        self._consensus[result.loss, "controllers"] = result

    def partition(
        self,
        loss: Literal["vi", "binder"] = "vi",
        of: Literal["controllers", "regions"] = "controllers",
    ) -> Array:
        """``(N,)``: consensus clusters of the nodes, largest first: controllers, or regions."""
        return self.consensus(loss, of).labels

    def assign(
        self,
        states: Any,
        loss: Literal["vi", "binder"] = "vi",
        *,
        n_neighbors: int | None = None,
    ) -> Array:
        """``(n,)``: the consensus cluster of any state; -1 if one of its own is more likely.

        A node has its own cluster; any other state the most likely one by the prior's weights,
        with hyper-parameters at their posterior means.
        """
        labels = self.partition(loss)
        queries, node = self.predictor.place(states)
        assigned = labels[node]
        other = node < 0
        if other.any():
            means = {f"hyper.{k}": np.array([values.mean()]) for k, values in self.hyper.items()}
            drawn = {self.problem.drawn: self.draws.behaviours[0, :1]}
            if self.kinds is not None:
                drawn["kinds"] = self.kinds.mean(axis=(0, 1))[None]
            single = {"labels": labels[None], **drawn, **means}
            rule = self.predictor.rule("map", n_neighbors)
            predictor = self._predictor_of(Draws(single))
            likely = predictor.clusters_at(queries[other], node[other], rule)[0]
            assigned[other] = np.where(likely > labels.max(), -1, likely)
        return assigned

    # -- diagnostics, in and out ----------------------------------------------------------------

    def summary(self) -> pd.DataFrame:
        """Mean, spread, Monte Carlo error, sample sizes and R-hat of label-free scalars."""
        return self._summary.copy()

    @cached_property
    def _summary(self) -> pd.DataFrame:
        from onlooker.diagnostics import summary

        return summary(self)

    @cached_property
    def stability(self) -> Stability | None:
        """How far halves of chains with landmarks of their own agree; None for other chains."""
        from onlooker.consensus.stability import stability
        from onlooker.diagnostics import own_landmarks

        return stability(self) if own_landmarks(self) else None

    def to_datatree(self) -> xr.DataTree:
        """An ``xarray.DataTree`` in the ArviZ schema (needs the extra ``arviz``).

        ArviZ before 1.0 reads it through ``arviz.InferenceData.from_datatree``.
        """
        from onlooker.diagnostics import to_datatree

        return to_datatree(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one NumPy archive, under exactly the name given."""
        from onlooker.runs.loading import save_run

        save_run(path, self.target, self.schedule, self.draws, self.chain_ids)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        prior: PartitionPrior[Any] | None = None,
        dynamics: Dynamics | None = None,
    ) -> Self:
        """Read a file that `save` wrote, or the store of a run, be it finished or going on.

        Parameters
        ----------
        path
            File, or directory of a store. Of an unfinished run, the draws that all its chains
            have.
        prior, dynamics
            To be given where they hold code of your own, which is not stored.
        """
        from onlooker.runs.loading import load_run

        return cls(*load_run(path, prior, dynamics))
