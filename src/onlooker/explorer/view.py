"""A run as a page shows it: names of clusters at once, costly findings one by one."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from onlooker.blocks import slices_of
from onlooker.checks import Array
from onlooker.consensus.search import n_searches
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics.actions import action_names
from onlooker.explorer.matching import Names, aligned
from onlooker.explorer.space import action_moves, expected_moves, space_of
from onlooker.findings.controllers import Controller, controllers, regions
from onlooker.posterior import Posterior
from onlooker.prediction import kernels
from onlooker.progress import Progress

if TYPE_CHECKING:
    from onlooker.anomaly import AnomalyScores
    from onlooker.consensus import ConsensusResult, CredibleBall
    from onlooker.findings.opened import OpenedRun

REFINEMENT = 20 + n_searches()
"""What `RunView.refine` advances a progress by."""
_PROVISIONAL = 100  # draws of a run that still grows from which its consensus is sought
_SPREAD_DRAWS = 100  # draws by which the spread is estimated where there is a repertoire
_MAX_SCORED = 200_000  # steps that are scored
_EPOCHS = itertools.count(1)
_UNSEEN = (
    "Some states were not seen: trajectories are drawn through a first guess of them, and how "
    "surprising each step is has been left out."
)


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


class RunView:
    """A run with what a page needs to know of it.

    Attributes
    ----------
    run, space
        The run, and where its nodes lie.
    reference
        The partition that names and colours all others.
    consensus, ball, anomaly
        Costly findings; None until they are there.
    complete
        Whether all costly findings are there.
    """

    def __init__(self, run: OpenedRun, before: RunView | None = None) -> None:
        """What can be known at once; `before` is the same run with fewer draws."""
        self.run = run
        self.space = space_of(run)
        self.consensus: ConsensusResult | None = None
        self.ball: CredibleBall | None = None
        self.anomaly: AnomalyScores | None = None
        self.complete = False
        run.posterior.predictor.keep_counts = True  # a question must not count them anew
        # the last draw stands for all until the consensus is found
        labels = run.posterior.labels[0, -1]
        if before is not None and before.run.header.get("fingerprint") == run.header.get(
            "fingerprint"
        ):
            labels = before.reference.labels
        self.reference: Reference = Reference.of(labels)
        self._named: tuple[Reference, Names] | None = None
        self._naming = threading.Lock()
        self._failures: list[str] = []

    @property
    def posterior(self) -> Posterior:
        """The draws."""
        return self.run.posterior

    @property
    def notes(self) -> list[str]:
        """What a reader should know about the run."""
        unseen = [_UNSEEN] if self.run.has_unseen else []
        return self.run.remarks + unseen + self._failures

    def fail(self, error: Exception) -> None:
        """Note that findings are missing, and why."""
        self._failures.append(f"Some findings are missing: {type(error).__name__}: {error}.")

    # -- costly findings, in the order in which a reader wants them ------------------------------

    def refine(self, progress: Progress | None = None) -> Iterator[None]:
        """Compute the rest; each step ends with something new to show.

        `progress` is advanced by `REFINEMENT` in all.
        """
        shown = Progress() if progress is None else progress
        shown.update(0, "policy")
        self.policy  # noqa: B018
        self.spread  # noqa: B018
        yield
        shown.advance(5, "diagnostics")
        self.likely_actions  # noqa: B018
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.run.table  # noqa: B018
        yield
        shown.advance(5, "consensus")
        self._compute_consensus(shown)
        shown.update(10 + n_searches(), "controllers")
        self.controllers  # noqa: B018
        yield
        shown.advance(5, "trajectories")
        self._score_trajectories()
        self.complete = True
        shown.advance(5)
        yield

    def _compute_consensus(self, progress: Progress) -> None:
        from onlooker.consensus import consensus, credible_ball

        if self.run.growing:
            step = max(1, len(self.labels) // _PROVISIONAL)
            self.consensus = consensus(self.labels[::step], restarts=4, random_state=0)
        else:
            self.consensus = self.run.load_consensus(progress)
        self.ball = credible_ball(self.consensus.labels, self.posterior.labels)
        reference = self.consensus.labels
        if self.run.growing:  # colours must not jump while someone watches
            reference = aligned(reference, self.reference.labels)
        self.reference = Reference.of(reference)

    def _score_trajectories(self) -> None:
        """How odd each trajectory is among all of the run, where that can be known."""
        problem = self.posterior.problem
        paths, large = problem.paths, problem.n_transitions > _MAX_SCORED
        if paths is None or problem.dynamics is None or self.run.growing or large:
            return
        if self.run.has_unseen:  # the paths go through a first guess
            return
        from onlooker.anomaly import score
        from onlooker.anomaly.explaining import explained

        demos = np.split(problem.states[paths.nodes], paths.offsets[1:-1])
        found = score(self.posterior, demos, simulate=False, random_state=0, progress=False)
        if len(found) > 1:
            found = found.calibrated(found)
        self.anomaly = explained(found, Demonstrations(demos), problem.dynamics, problem.policies)

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
        if self.posterior.problem.policies is not None:
            return self._drawn_spread()
        second = np.zeros_like(self.policy)
        for clusters in self.posterior.predictor.blocks():
            kernels.add_policies(clusters.labels, clusters.first, clusters.square, second)
        variance = np.maximum(second / len(self.labels) - self.policy**2, 0.0)
        return np.asarray(np.sqrt(variance.sum(axis=1)))

    def _drawn_spread(self) -> Array:
        """The same by drawn controllers of some draws, where behaviours stand for actions."""
        problem, rng = self.posterior.problem, np.random.default_rng(self.posterior.schedule.seed)
        step = -(-len(self.labels) // _SPREAD_DRAWS)
        thetas, labels = [], []
        for clusters in self.posterior.predictor.blocks():
            theta = clusters.thetas(rng)
            for row in np.flatnonzero(clusters.index % step == 0):
                thetas.append(theta[clusters.first[row] : clusters.first[row + 1]].copy())
                labels.append(clusters.labels[row])
        out = np.empty(problem.n_nodes)
        for part in slices_of(problem.n_nodes, len(thetas) * problem.n_behaviours):
            weights = np.stack([t[own[part]] for t, own in zip(thetas, labels, strict=True)])
            drawn = problem.to_actions(problem.states[part], weights)
            out[part] = np.sqrt(drawn.var(axis=0).sum(axis=1))
        return out

    @cached_property
    def moves(self) -> Array | None:
        """``(A, d)``: where actions lead."""
        return action_moves(self.posterior.problem, self.space)

    @cached_property
    def node_moves(self) -> Array | None:
        """``(N, d)``: the mean move at the nodes."""
        return expected_moves(self.posterior.problem, self.space, self.policy)

    @cached_property
    def surprise(self) -> Array | None:
        """``(M,)``: ``-ln Σ_b p(s' | s, b) p(b | s, data)`` of every transition.

        None where states are unseen: the likelihoods are those of a first guess.
        """
        if self.run.has_unseen:
            return None
        problem = self.posterior.problem
        weights = problem.loglik + np.log(self.posterior.behaviours())[problem.node_of]
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
    def regions(self) -> list[dict[str, Any]]:
        """What is done in the regions of the consensus, for words."""
        return regions(self.run)

    @cached_property
    def controllers(self) -> list[Controller]:
        """The clusters of the consensus, largest first, with their policies."""
        assert self.consensus is not None
        return controllers(self.run, self.reference.labels, self.consensus.membership)

    @cached_property
    def action_names(self) -> list[str]:
        """What each action is called, with its direction where states of a grid tell it."""
        if self.run.record.names or self.moves is None:
            return self.run.action_names
        problem = self.posterior.problem
        return action_names(problem.dynamics, problem.n_actions, self.moves)
