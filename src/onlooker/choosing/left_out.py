"""Trajectories that are left out, and how well they are predicted from the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.dynamics.base import unknown_parameters

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations

_FOLDS = 5
_MOST, _MOST_LEFT_OUT = 10_000, 2_000  # steps that are neighbours, and of them those predicted
_PIECES = 10  # that trajectories are cut into where they are fewer than folds
_ROUNDS = 20  # of EM
_LEAST = 30  # steps from which on anything can be told
_FAR = 1e100  # coordinates beyond have no square


class Gain(NamedTuple):
    """By how much one prediction is better than another: nats per step, and the error by track."""

    mean: float
    error: float

    @property
    def counts(self) -> bool:
        """Whether it is more than one standard error."""
        return self.mean > self.error

    @property
    def clearly(self) -> bool:
        """Whether it is more than two."""
        return self.mean > 2 * self.error

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.error:.3f} nats per step"


class Folds(NamedTuple):
    """Steps, and which of them are predicted from which others."""

    kept: Array
    """``(n,)``: the transitions that are looked at."""
    track: Array
    """``(n,)``: the trajectory of each, or the piece of one."""
    pairs: list[tuple[Array, Array]]
    """For each fold, the steps (of those kept) to learn from and to predict."""

    def gain(self, score: Array, other: Array) -> Gain:
        """Of one score of all predicted steps over another."""
        track = np.concatenate([self.track[test] for _, test in self.pairs])
        return gain_by_track(track, score - other)


def gain_by_track(track: Array, gained: Array) -> Gain:
    """The mean of what each step gained, and its error if trajectories are independent."""
    number = np.unique(track, return_inverse=True)[1]
    n, size = int(number.max()) + 1, np.bincount(number)
    total = np.bincount(number, gained)
    mean = total.sum() / size.sum()
    apart = np.square(total - mean * size).sum() * n / max(n - 1, 1)
    return Gain(float(mean), float(np.sqrt(apart) / size.sum()) if n > 1 else np.inf)


def track_of(demos: Demonstrations) -> Array:
    """What each step is left out with: its trajectory, or a piece of it where they are few."""
    track = np.unique(demos.names, return_inverse=True)[1][demos.trajectory_of()]
    if track.max() + 1 >= _FOLDS:
        return np.asarray(track)
    size = -(-len(track) // _PIECES)
    index = np.concatenate([np.arange(n - 1) for n in demos.lengths])
    piece = demos.trajectory_of() * len(track) + index // size
    return np.asarray(np.unique(piece, return_inverse=True)[1])


def known_folds(demos: Demonstrations, dynamics: Any, random_state: Any) -> Folds | None:
    """Folds of positions that were seen and steps that can be; None: nothing can be told."""
    if demos.is_discrete or demos.has_unseen or unknown_parameters(dynamics):
        return None
    if demos.n_transitions < _LEAST or np.abs(demos.states).max() > _FAR:
        return None
    folds = make_folds(demos, np.random.default_rng(random_state))
    before, after = (part[folds.kept] for part in demos.transitions())
    possible = dynamics.log_likelihood(before, after).max(axis=1) > -np.inf
    return folds if possible.all() and len(folds.pairs) > 1 else None


def make_folds(demos: Demonstrations, rng: np.random.Generator) -> Folds:
    """Whole trajectories are left out; few are cut into pieces, which are."""
    track = track_of(demos)
    kept = np.arange(len(track))
    if len(kept) > _MOST:
        kept = np.sort(rng.choice(kept, _MOST, replace=False))
    track = track[kept]
    fold = (rng.permutation(track.max() + 1) % _FOLDS)[track]
    tested = np.zeros(len(track), dtype=bool)
    tested[rng.permutation(len(track))[:_MOST_LEFT_OUT]] = True
    pairs = [
        (np.flatnonzero(fold != k), np.flatnonzero((fold == k) & tested)) for k in range(_FOLDS)
    ]
    return Folds(kept, track, [(train, test) for train, test in pairs if len(train) and len(test)])


class Shares:
    """The shares of behaviours in steps, and what follows for steps that were left out."""

    def __init__(
        self, loglik: Array, shift: Array, base: Array, pairs: list[tuple[Array, Array]]
    ) -> None:
        likelihood = np.exp(loglik - shift[:, None])
        self._folds = []
        for train, test in pairs:
            known = likelihood[train]
            overall = base
            for _ in range(_ROUNDS):  # with one step more, as the base has it: none is impossible
                overall = (_shares(known, overall).sum(axis=0) + base) / (len(train) + 1)
            own = _shares(known, overall).astype(np.float32)
            self._folds.append((own, overall, likelihood[test], shift[test]))

    @property
    def overall(self) -> Array:
        """Log density of all steps left out, fold after fold, by one policy for all states."""
        return np.concatenate([self.predicted(k, None) for k in range(len(self._folds))])

    def predicted(self, fold: int, near: Any) -> Array:
        """Log density of the steps left out, with the weights of those known; None: by no place."""
        own, overall, likelihood, shift = self._folds[fold]
        if near is None:
            return np.asarray(np.log(likelihood @ overall) + shift)
        weights = near @ own + overall
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(np.log(np.einsum("nb,nb->n", weights, likelihood)) + shift)


def _shares(likelihood: Array, shares: Array) -> Array:
    joint = likelihood * shares
    joint /= joint.sum(axis=1, keepdims=True)
    return joint
