"""A loaded run, ready to be asked: names of clusters at once, costly findings one by one."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from onlooker.checks import Array
from onlooker.explorer.matching import Names, aligned
from onlooker.explorer.space import (
    Space,
    action_moves,
    expected_moves,
    graph_layout,
    space_of,
    transition_edges,
)
from onlooker.posterior import Posterior
from onlooker.prediction import kernels

if TYPE_CHECKING:
    import pandas as pd

    from onlooker.anomaly import AnomalyScores
    from onlooker.consensus import ConsensusResult, CredibleBall

_PROVISIONAL = 100  # draws of a run that still grows from which its consensus is sought
_MOST_SCORED = 200_000  # steps whose trajectories are simulated
_MOST_CONTROLLERS = 60  # that are described one by one
_EPOCHS = itertools.count(1)
LEVEL = 0.9  # probability of credible intervals


@dataclass(frozen=True)
class Reference:
    """A partition of the nodes, and a number that no other reference has."""

    labels: Array
    epoch: int

    @classmethod
    def of(cls, labels: Array) -> Reference:
        """With the next number."""
        return cls(np.asarray(labels, dtype=np.int64), next(_EPOCHS))

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max()) + 1


@dataclass(frozen=True)
class Controller:
    """One cluster of the reference partition, and what is done there."""

    number: int
    n_nodes: int
    n_transitions: int
    certainty: float
    mean: Array
    low: Array
    high: Array


@dataclass
class Study:
    """A posterior with what a page needs to know of it.

    Attributes
    ----------
    posterior, space
        The draws, and where their nodes lie.
    reference
        The partition that names and colours all others.
    header
        The store's own description of the run.
    notes
        What a reader should be told about the data, such as a damaged part.
    growing
        Whether the run still samples: then a provisional consensus must do.
    """

    posterior: Posterior
    space: Space
    reference: Reference
    header: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    growing: bool = False
    consensus: ConsensusResult | None = None
    ball: CredibleBall | None = None
    summary: pd.DataFrame | None = None
    anomaly: AnomalyScores | None = None
    graph: Array | None = None
    complete: bool = False
    """Whether all costly findings are there."""
    _named: tuple[Reference, Names] | None = None
    _naming: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        header: dict[str, Any],
        *,
        notes: list[str] | None = None,
        growing: bool = False,
        before: Study | None = None,
    ) -> Study:
        """What can be known at once; `before` is the same run with fewer draws."""
        posterior.predictor.keep_counts = True  # a question must not count them anew
        # the last draw stands for all until the consensus is found
        same = before is not None and before.header.get("fingerprint") == header.get("fingerprint")
        labels = before.reference.labels if before and same else posterior.labels[0, -1]
        reference = Reference.of(labels)
        return cls(posterior, space_of(posterior), reference, header, notes or [], growing)

    # -- costly findings, in the order in which a reader wants them ------------------------------

    def refine(self) -> Iterator[None]:
        """Find the rest; each step ends with something new to show."""
        self.policy  # noqa: B018
        self.spread  # noqa: B018
        yield
        self.likely_actions  # noqa: B018
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.summary = self.posterior.summary()
        if self.space.kind == "abstract":
            self.graph = graph_layout(self.posterior.problem.n_nodes, self.edges)
        yield
        self._find_consensus()
        self.controllers  # noqa: B018
        yield
        self._score_trajectories()
        self.complete = True
        yield

    def _find_consensus(self) -> None:
        from onlooker.consensus import consensus, credible_ball

        if self.growing:
            step = max(1, len(self.labels) // _PROVISIONAL)
            self.consensus = consensus(self.labels[::step], restarts=4, random_state=0)
        else:
            self.consensus = self.posterior.consensus()
        self.ball = credible_ball(self.consensus.labels, self.posterior.labels)
        reference = self.consensus.labels
        if self.growing:  # colours must not jump while someone watches
            reference = aligned(reference, self.reference.labels)
        self.reference = Reference.of(reference)

    def _score_trajectories(self) -> None:
        """How odd each trajectory is among simulations of itself, where that can be known."""
        problem = self.posterior.problem
        paths, small = problem.paths, problem.n_transitions <= _MOST_SCORED
        if paths is None or problem.dynamics is None or self.growing or not small:
            return
        from onlooker.anomaly import score

        demos = np.split(problem.states[paths.nodes], paths.offsets[1:-1])
        self.anomaly = score(self.posterior, demos, random_state=0, progress=False)

    # -- findings -------------------------------------------------------------------------------

    @property
    def labels(self) -> Array:
        """``(B, N)``: labels of all draws, chain after chain."""
        return np.asarray(self.posterior.labels.reshape(-1, self.posterior.problem.n_nodes))

    def names(self, reference: Reference | None = None) -> Names:
        """Clusters of all draws, named after the reference (one that was taken before, if given).

        Several threads may ask while the consensus replaces the reference.
        """
        reference = reference or self.reference
        with self._naming:
            if self._named is None or self._named[0] is not reference:
                self._named = reference, Names.of(self.labels, reference.labels)
            return self._named[1]

    @cached_property
    def policy(self) -> Array:
        """``(N, A)``: the mean policy at the nodes."""
        return self.posterior.policy()

    @cached_property
    def spread(self) -> Array:
        """``(N,)``: how uncertain the policy at a node is, ``√Σ_j var(θ_j)``.

        The variance is that of ``θ ~ Dir(ξ_z + α)`` over draws of partition, actions and
        controllers.
        """
        second = np.zeros_like(self.policy)
        for clusters in self.posterior.predictor.blocks():
            kernels.add_policies(clusters.labels, clusters.first, clusters.square, second)
        variance = np.maximum(second / len(self.labels) - self.policy**2, 0.0)
        return np.asarray(np.sqrt(variance.sum(axis=1)))

    @cached_property
    def moves(self) -> Array | None:
        """``(A, d)``: where actions lead."""
        return action_moves(self.posterior.problem, self.space)

    @cached_property
    def node_moves(self) -> Array | None:
        """``(N, d)``: the mean move at the nodes."""
        return expected_moves(self.posterior.problem, self.space, self.policy)

    @cached_property
    def surprise(self) -> Array:
        """``(M,)``: ``-ln Σ_j T(s' | s, j) p(j | s, data)`` of every transition that was seen."""
        problem = self.posterior.problem
        weights = problem.loglik + np.log(self.policy)[problem.node_of]
        return np.asarray(-logsumexp(weights, axis=1))

    @cached_property
    def likely_actions(self) -> tuple[Array, Array]:
        """The action drawn most often for each transition, and in what share of draws."""
        drawn = self.posterior.actions.reshape(-1, self.posterior.problem.n_transitions)
        likely = np.zeros(drawn.shape[1], dtype=np.int64)
        most = np.zeros(drawn.shape[1], dtype=np.int64)
        for action in range(self.posterior.problem.n_actions):
            count = np.count_nonzero(drawn == action, axis=0)
            likely[count > most] = action
            most = np.maximum(most, count)
        return likely, most / len(drawn)

    @cached_property
    def edges(self) -> Array:
        """Transitions between nodes that were seen."""
        return transition_edges(self.posterior)

    @cached_property
    def controllers(self) -> list[Controller]:
        """The clusters of the consensus, largest first, with their policies."""
        reference = self.reference.labels
        sizes = np.bincount(reference, minlength=self.reference.n_clusters)
        chosen = np.argsort(-sizes, kind="stable")[:_MOST_CONTROLLERS]
        values = self._controller_draws(chosen, sizes)
        tail = (1 - LEVEL) / 2
        low, high = np.quantile(values, [tail, 1 - tail], axis=0)
        visits = np.bincount(
            reference[self.posterior.problem.node_of], minlength=self.reference.n_clusters
        )
        assert self.consensus is not None
        certainty = self.consensus.membership
        return [
            Controller(
                int(c),
                int(sizes[c]),
                int(visits[c]),
                float(certainty[reference == c].mean()),
                self.policy[reference == c].mean(axis=0),
                low[row],
                high[row],
            )
            for row, c in enumerate(chosen)
        ]

    def _controller_draws(self, chosen: Array, sizes: Array) -> Array:
        """``(B, len(chosen), A)``: a controller of each draw, averaged over a cluster's nodes."""
        reference = self.reference.labels
        rank = np.full(self.reference.n_clusters, -1)
        rank[chosen] = np.arange(len(chosen))
        inside = np.flatnonzero(rank[reference] >= 0)
        at = rank[reference[inside]]
        n_actions = self.posterior.problem.n_actions
        values = np.empty((len(self.labels), len(chosen), n_actions))
        rng = np.random.default_rng(self.posterior.plan.seed)
        for clusters in self.posterior.predictor.blocks():
            theta = clusters.thetas(rng)
            for row, b in enumerate(clusters.index):
                rows = theta[clusters.first[row] : clusters.first[row + 1]]
                width = len(rows)
                pairs = at * width + clusters.labels[row, inside]
                shared = np.bincount(pairs, minlength=len(chosen) * width)
                values[b] = shared.reshape(len(chosen), width) @ rows
        return values / sizes[chosen][None, :, None]
