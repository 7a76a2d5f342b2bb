"""Short chains on some of the trajectories, and how well they predict the others."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.choosing.left_out import Gain, Shares, gain_by_track, track_of
from onlooker.choosing.lengths import distances, typical_step
from onlooker.demonstrations import Demonstrations
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import Regions
from onlooker.problem import Problem
from onlooker.progress import Progress
from onlooker.repertoire import Actions, Blurs, Turns
from onlooker.repertoire.base import Policies, World
from onlooker.sampling import sample

if TYPE_CHECKING:
    from onlooker.dynamics.base import Dynamics

QUICK = (Actions(), Blurs(), Turns())
"""Kinds of behaviours that need no search for candidates."""
_FOLDS = 3
_STEPS = 2_000  # that are looked at
_PIECE = 200  # steps that long trajectories are cut into
_SWEEPS, _CHAINS = 15, 2  # and as many to tune


N_FITS = 4 * _FOLDS
"""Short fits at most, for four ideas of what the state is."""


class Trials(NamedTuple):
    """Pieces of trajectories, and which of them are left out together."""

    pieces: list[tuple[int, int]]
    """Where each starts and ends among all states."""
    track: Array
    """The trajectory that each is of, or the piece of one where they are few."""
    fold: Array
    """The number of the fold that each is left out in."""
    progress: Progress
    """Advanced by 1 for every short fit."""

    def score(self, demos: Demonstrations, dynamics: Dynamics, metric: Any = None) -> Array:
        """``(n,)``: log predictive density of the steps of all pieces, each left out once."""
        pieces = Demonstrations([demos.states[start:stop] for start, stop in self.pieces])
        space = distances(pieces, dynamics) if metric is None else metric
        prior = Regions.inferred(typical_step(pieces, dynamics, space), metric=space)
        world = World(dynamics, pieces)
        kinds = [kind for kind in QUICK if kind.build(world)]
        piece_of = pieces.trajectory_of()
        out = np.empty(pieces.n_transitions)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for k in np.unique(self.fold):
                left_out = self.fold == k
                problem = Problem.from_demonstrations(pieces[~left_out], dynamics, repertoire=kinds)
                posterior = sample(
                    problem, prior, CONCENTRATION, draws=_SWEEPS, tune=_SWEEPS, chains=_CHAINS,
                    random_state=int(k), progress=False,
                )  # fmt: skip
                out[left_out[piece_of]] = posterior.log_predictive(pieces[left_out])
                self.progress.advance(1)
        return out

    def gain(self, score: Array, other: Array) -> Gain:
        """Of one score over another."""
        lengths = [stop - start - 1 for start, stop in self.pieces]
        return gain_by_track(np.repeat(self.track, lengths), score - other)


def make_trials(
    demos: Demonstrations, rng: np.random.Generator, progress: Progress | None = None
) -> Trials:
    """Some of the trajectories, whole if they are not long."""
    trajectory, track = demos.trajectory_of(), track_of(demos)
    index = np.concatenate([np.arange(n - 1) for n in demos.lengths])
    new = (np.diff(trajectory) > 0) | (np.diff(track) != 0) | (index[1:] % _PIECE == 0)
    first = np.concatenate([[0], np.flatnonzero(new) + 1, [len(track)]])
    order = rng.permutation(len(first) - 1)
    n = int(np.searchsorted(np.cumsum(np.diff(first)[order]), _STEPS)) + 1
    chosen = np.sort(order[:n])
    starts = demos.transition_starts()
    pieces = [(int(starts[first[i]]), int(starts[first[i + 1] - 1]) + 2) for i in chosen]
    of = np.unique(track[first[chosen]], return_inverse=True)[1]
    return Trials(pieces, of, (rng.permutation(of.max() + 1) % _FOLDS)[of], progress or Progress())


def shares_of(
    demos: Demonstrations,
    dynamics: Any,
    before: Array,
    after: Array,
    pairs: list[tuple[Array, Array]],
) -> Shares:
    """Shares of behaviours that need no search, in steps of these tracks."""
    loglik = dynamics.log_likelihood(before, after)
    parts = [part for kind in QUICK for part in kind.build(World(dynamics, demos))]
    by_behaviour = Policies(parts, dynamics.n_actions).log_likelihood(before, loglik)
    sizes = [part.block.n for part in parts]
    base = np.repeat([1 / (len(parts) * size) for size in sizes], sizes)
    return Shares(by_behaviour, loglik.max(axis=1), base, pairs)
