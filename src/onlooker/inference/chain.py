"""One Markov chain: a sweep draws every unknown once, given all the others."""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.actions import collapsed_actions, draw_from_likelihood, ordinary_actions
from onlooker.gibbs.dirichlet import draw_controllers
from onlooker.gibbs.slices import log_dm, slice_sample_log, start_of
from onlooker.gibbs.state import Data, State, Tables, count, make_tables
from onlooker.hyper import Prior
from onlooker.inference.imputation import make_imputer
from onlooker.inference.parameters import ParameterSampler
from onlooker.partitions.indicators import Scheme
from onlooker.partitions.partition import PartitionSampler
from onlooker.problem.problem import Problem

_NO_CONTROLLERS = np.zeros((0, 0))


class Chain:
    """A chain at one of its states.

    Parameters
    ----------
    problem
        Nodes, transitions and likelihoods.
    partition
        The sampler of the partition.
    alpha
        Concentration of the controllers' Dirichlet prior: a number fixes it, a prior infers it.
    collapsed
        Integrate the controllers out rather than draw them.
    rng
        The chain's own generator.
    state
        Where to go on from; without it the chain starts as the prior likes to, with actions drawn
        from their likelihoods.
    """

    def __init__(
        self,
        problem: Problem,
        partition: PartitionSampler,
        *,
        alpha: float | Prior,
        collapsed: bool,
        rng: np.random.Generator | None = None,
        state: State | None = None,
    ) -> None:
        self.problem = problem
        self.partition = partition
        self.concentration = alpha
        self.collapsed = collapsed
        self.layout = partition.layout
        self.data = Data(self.layout.first, self.layout.likelihood)
        self.parameters: ParameterSampler | None = None
        self.imputer = make_imputer(problem)
        moving = problem.incomplete is not None and problem.states.ndim == 2
        if problem.parameters or moving:
            self.parameters = ParameterSampler(problem, self.layout)
            self.data = Data(self.layout.first, self.parameters.likelihood)
        if state is None:
            self.state = self._start(rng)
            self.tables = self._make_tables()
            if not self.collapsed:
                self.state.arrays["controllers"] = np.empty(self.state.counts.cluster.shape)
                self.draw_controllers()
        else:
            self.state = state
            if self.imputer is not None:
                self.imputer.restore(self, state)
            if self.parameters is not None:
                self.parameters.set(state.hyper)
            self.tables = self._make_tables()

    def _start(self, rng: np.random.Generator | None) -> State:
        rng = np.random.default_rng() if rng is None else rng
        hyper = {"alpha": start_of(self.concentration)}
        if self.parameters is not None:
            hyper |= self.parameters.start()
        more: dict[str, Array] = {}
        if self.imputer is not None:
            more, unseen = self.imputer.start(self)
            hyper |= unseen
        if self.parameters is not None:
            self.parameters.set(hyper)
        actions = np.empty(self.problem.n_transitions, dtype=np.int32)
        draw_from_likelihood(actions, self.data.likelihood, rng)
        labels, arrays, own = self.partition.start(rng)
        n_slots = len(arrays.get("slots", range(self.partition.n_slots)))
        counts = count(actions, labels, self.data.first, self.problem.n_actions, n_slots)
        return State(rng, actions, labels, counts, hyper | own, arrays | more)

    @property
    def alpha(self) -> float:
        """Concentration of the controllers at this state."""
        return self.state.hyper["alpha"]

    def _make_tables(self) -> Tables:
        return make_tables(self.alpha, self.problem.n_actions, self.problem.n_transitions)

    def _draw_alpha(self, prior: Prior) -> None:
        """``p(α | a, z) ∝ p(α) Π_k DM(ξ_k)``: the controllers, if drawn, are drawn next."""
        counts, rng = self.state.counts, self.state.rng

        def log_density(alpha: float) -> float:
            return log_dm(alpha, counts.cluster, counts.total) + prior.logpdf(alpha)

        self.state.hyper["alpha"] = slice_sample_log(log_density, self.alpha, rng)
        self.tables = self._make_tables()

    def _scheme(self) -> Scheme:
        controllers = log_controllers = _NO_CONTROLLERS
        if not self.collapsed:
            controllers = self.state.arrays["controllers"]
            with np.errstate(divide="ignore"):
                log_controllers = np.log(controllers)
        return Scheme(
            self.tables,
            not self.collapsed,
            controllers,
            log_controllers,
        )

    def sweep(self) -> None:
        """Draw the unseen, actions, dynamics, controllers, partition and hyper-parameters once."""
        state = self.state
        if self.imputer is not None:
            self.imputer.update(self)
        if self.collapsed:
            collapsed_actions(
                state.actions,
                state.labels,
                state.counts,
                self.data,
                self.tables,
                state.rng,
            )
        else:
            ordinary_actions(
                state.actions,
                state.labels,
                state.counts,
                self.data,
                state.arrays["controllers"],
                state.rng,
            )
        if self.parameters is not None:
            self.parameters.update(state)
        if isinstance(self.concentration, Prior):
            self._draw_alpha(self.concentration)
        if not self.collapsed:
            self.draw_controllers()
        self.partition.update(state, self.data, self._scheme())

    def draw_controllers(self) -> None:
        """Draw the controller of every slot, given actions and partition."""
        self.state.arrays["controllers"][:] = self.controllers_given_counts()

    def controllers_given_counts(self) -> Array:
        """``θ_k ~ Dir(ξ_k + α)`` of every slot."""
        controllers = np.empty(self.state.counts.cluster.shape)
        draw_controllers(controllers, self.state.counts.cluster, self.tables, self.state.rng)
        return controllers

    # -- what a state says ----------------------------------------------------------------------

    @property
    def actions(self) -> Array:
        """The latent actions, in the order of the problem's transitions."""
        actions = np.empty_like(self.state.actions)
        actions[self.layout.order] = self.state.actions
        return actions

    @property
    def labels(self) -> Array:
        """Each node's cluster, in the order of the problem's nodes."""
        labels = np.empty_like(self.state.labels)
        labels[self.layout.nodes] = self.state.labels
        return labels

    @property
    def links(self) -> Array | None:
        """The ddCRP's links between the problem's nodes; None for other priors."""
        if "forest.link" not in self.state.arrays:
            return None
        link = self.state.arrays["forest.link"]
        links = np.empty_like(link)
        links[self.layout.nodes] = self.layout.nodes[link]
        return links

    @property
    def imputed(self) -> Array | None:
        """The states that were not seen; None if all were."""
        if self.imputer is None:
            return None
        imputed = self.imputer.imputed(self.state)
        return imputed if len(imputed) else None

    @property
    def n_controllers(self) -> int:
        """Clusters in use."""
        return int(np.count_nonzero(self.state.counts.size))

    def policy(self) -> Array:
        """``(N, A)``: the nodes' policies by this one state.

        ``(ξ_z + α) / (ξ_z· + Aα)`` if controllers are integrated out, else ``θ_z``.
        """
        state = self.state
        if not self.collapsed:
            return np.asarray(state.arrays["controllers"][self.labels])
        cluster = state.counts.cluster[self.labels] + self.alpha
        return np.asarray(cluster / cluster.sum(axis=1, keepdims=True))

    def log_joint(self) -> float:
        """``ln p(s, a, z)`` with the controllers integrated out; no label or order enters it."""
        state = self.state
        if self.imputer is not None:
            loglik = self.imputer.log_likelihood(self)
        elif self.parameters is None:
            loglik = np.take_along_axis(self.problem.loglik, self.actions[:, None], axis=1).sum()
        else:
            loglik = self.parameters.log_likelihood(state)
        used = state.counts.size > 0
        log_dm = (
            self.tables.action[state.counts.cluster[used]].sum()
            - self.tables.total[state.counts.total[used]].sum()
        )
        return float(loglik + log_dm + self.partition.log_prior(state))
