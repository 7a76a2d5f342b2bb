"""What is the state? Position alone, or with heading, or with heading and speed; and their scales.

Both are decided by how well left-out trajectories are predicted, under a local predictor that
takes seconds where a fit takes minutes:

    p(s' | s) = Σ_b θ(b) ℓ[s, s', b],    θ ∝ Σ_t exp(-d_t² / d_8²) r_t + b̂

over the 32 nearest states t of other trajectories, d_8 the distance to the eighth of them,
``r_t(b) ∝ b̂_b ℓ[t, b]``, and b̂ the shares of behaviours overall, by EM. Features join the state
only if that predicts better by more than one standard error, by trajectory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlooker import geography
from onlooker.checks import Array
from onlooker.dynamics.base import position_dynamics, unknown_parameters
from onlooker.dynamics.features import Feature, Heading, Speed, with_features
from onlooker.dynamics.geographic import GeographicDynamics
from onlooker.partitions.places import Scaled
from onlooker.repertoire import Actions, Blurs, Turns
from onlooker.repertoire.base import Policies, World

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations

STATES: tuple[tuple[str, ...], ...] = ((), ("heading",), ("heading", "speed"))
"""What may join the position."""
_FOLDS = 5
_MOST, _MOST_LEFT_OUT = 10_000, 2_000  # steps that are neighbours, and of them those predicted
_LEAST = 30  # steps from which on anything can be told
_PIECES = 10  # that trajectories are cut into where they are fewer than folds
_NEIGHBOURS, _EIGHTH = 32, 8
_ROUNDS = 20  # of EM
_FACTORS = (0.25, 0.5, 2.0, 4.0)
_SEARCHES = 3  # through all groups


class Gain(NamedTuple):
    """By how much one prediction is better than another: nats per step, and the error by track."""

    mean: float
    error: float

    @property
    def counts(self) -> bool:
        """Whether it is more than one standard error."""
        return self.mean > self.error

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.error:.3f} nats per step"


class StateChoice(NamedTuple):
    """What the state is, and what that is worth on left-out trajectories."""

    features: list[Feature]
    """What joins the position, with weights in its units."""
    metric: Scaled | None
    """Factors of the coordinates; None: all count alike."""
    gains: dict[tuple[str, ...], Gain]
    """Of what joins the position, over what joined it before; for all that were tried."""
    local: Gain
    """Of local policies over one policy for all states."""

    @property
    def names(self) -> tuple[str, ...]:
        """What joins the position."""
        return STATES[len(self.features)]


def choose_state(
    demos: Demonstrations,
    dynamics: Any,
    names: Sequence[str] | None = None,
    random_state: Any = 0,
) -> StateChoice | None:
    """Choose what joins the position, and all scales, by left-out trajectories.

    None where nothing can be told: in a finite space, where states were not seen or parameters of
    the dynamics are unknown, and with fewer than 30 steps.

    Parameters
    ----------
    demos
        Positions.
    dynamics
        How they move.
    names
        What joins the position: none, ``["heading"]`` or ``["heading", "speed"]``. Its scales are
        chosen nevertheless. None: chosen.
    random_state
        Seed of which trajectories are left out together.
    """
    if names is not None and tuple(names) not in STATES:
        raise ValueError(f"names must be one of {STATES}, got {names!r}")
    if demos.is_discrete or demos.has_unseen or unknown_parameters(dynamics):
        return None
    if demos.n_transitions < _LEAST:
        return None
    folds = _make_folds(demos, np.random.default_rng(random_state))
    chosen = _space(demos, dynamics, (), folds)
    n_position = len(chosen.groups)
    if n_position > 1:
        chosen = chosen.better([chosen, chosen.evened()]).searched(range(1, n_position))
    gains: dict[tuple[str, ...], Gain] = {}
    steps_are_moves = hasattr(position_dynamics(dynamics), "displacements")
    for joined in STATES[1:] if steps_are_moves else ():
        wider = _space(demos, dynamics, joined, folds).after(chosen)
        wider = wider.searched(range(n_position, len(wider.groups)))
        gains[joined] = folds.gain(wider.score, chosen.score)
        if not (gains[joined].counts if names is None else len(joined) <= len(names)):
            break  # the gain is known nevertheless
        chosen = wider
    local = folds.gain(chosen.score, chosen.overall)
    return StateChoice(chosen.features(n_position), chosen.metric(n_position), gains, local)


# -- what is left out ------------------------------------------------------------------------------


class _Folds(NamedTuple):
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
        number = np.unique(track, return_inverse=True)[1]
        n, size = number.max() + 1, np.bincount(number)
        total = np.bincount(number, score - other)
        mean = total.sum() / size.sum()
        apart = np.square(total - mean * size).sum() * n / max(n - 1, 1)
        return Gain(float(mean), math.sqrt(apart) / size.sum() if n > 1 else math.inf)


def _make_folds(demos: Demonstrations, rng: np.random.Generator) -> _Folds:
    """Whole trajectories are left out; few are cut into pieces, which are."""
    track = np.unique(demos.names, return_inverse=True)[1][demos.trajectory_of()]
    if track.max() + 1 < _FOLDS:
        size = -(-len(track) // _PIECES)
        index = np.concatenate([np.arange(n - 1) for n in demos.lengths])
        track = np.unique(demos.trajectory_of() * len(track) + index // size, return_inverse=True)[
            1
        ]
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
    return _Folds(kept, track, [(train, test) for train, test in pairs if len(train) and len(test)])


# -- what is predicted -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Space:
    """Groups of numbers that make a state, each with a scale, and the local predictor in it."""

    names: tuple[str, ...]
    groups: list[Array]
    """``(n, k)`` each: coordinates one by one, or a place on the Earth as one, then features."""
    units: Array
    """Of each group, by which it is divided."""
    scales: Array
    """Of each group, by which it is then multiplied."""
    shares: _Shares
    folds: _Folds

    @cached_property
    def score(self) -> Array:
        """Log predictive density of all predicted steps, fold after fold."""
        places = np.hstack(
            [
                group * (scale / unit)
                for group, scale, unit in zip(self.groups, self.scales, self.units, strict=True)
            ]
        )
        parts = [
            self.shares.predicted(k, _near(places[train], places[test]))
            for k, (train, test) in enumerate(self.folds.pairs)
        ]
        return np.concatenate(parts)

    @property
    def overall(self) -> Array:
        """The same by one policy for all states."""
        return np.concatenate(
            [self.shares.predicted(k, None) for k in range(len(self.folds.pairs))]
        )

    def better(self, spaces: Iterable[_Space]) -> _Space:
        """The best of these, if it is better than this by more than one standard error."""
        best = max(spaces, key=lambda space: float(space.score.mean()))
        return best if self.folds.gain(best.score, self.score).counts else self

    def searched(self, groups: Iterable[int]) -> _Space:
        """Scales changed group by group, as long as that pays."""
        best = self
        for _ in range(_SEARCHES):
            before = best
            for k in groups:
                factors = np.ones((len(_FACTORS), len(best.scales)))
                factors[:, k] = _FACTORS
                best = best.better([replace(best, scales=best.scales * row) for row in factors])
            if best is before:
                break
        return best

    def evened(self) -> _Space:
        """Every group with unit variance."""
        spread = np.array([math.sqrt(group.var(axis=0).sum()) for group in self.groups])
        return replace(self, scales=self.units / np.where(spread > 0, spread, self.units))

    def after(self, other: _Space) -> _Space:
        """With what `other` found of the groups that it has."""
        scales = self.scales.copy()
        scales[: len(other.scales)] = other.scales
        return replace(self, scales=scales)

    def features(self, n_position: int) -> list[Feature]:
        """What joins the position, with weights in its units."""
        per_unit = self._per_unit(n_position)
        kinds = {"heading": Heading, "speed": Speed}
        weights = zip(self.names, per_unit[n_position:], strict=True)
        return [kinds[name](float(f"{weight:.4g}")) for name, weight in weights]

    def metric(self, n_position: int) -> Scaled | None:
        """Factors of the coordinates, and 1 for all features."""
        factors = self._per_unit(n_position)[:n_position]
        if (factors == 1).all():
            return None
        n_rest = sum(group.shape[1] for group in self.groups[n_position:])
        return Scaled((*(float(f"{factor:.4g}") for factor in factors), *[1.0] * n_rest))

    def _per_unit(self, n_position: int) -> Array:
        """Scales if the coordinate that counts most is in its own units."""
        scale = self.scales / self.units
        return np.asarray(scale / scale[:n_position].max())


def _space(demos: Demonstrations, dynamics: Any, names: tuple[str, ...], folds: _Folds) -> _Space:
    """Positions and features of the steps that are kept, and likelihoods of these."""
    before, after = demos.transitions()
    moves = np.linalg.norm(dynamics.displacements(before, after), axis=1) if names else np.ones(1)
    typical = float(np.median(moves[moves > 0])) if moves.any() else 1.0
    features: list[Feature] = [Heading(1.0), Speed(1.0)][: len(names)]
    states, moving = with_features(demos, features, dynamics) if names else (demos, dynamics)
    before, after = (part[folds.kept] for part in states.transitions())
    n = demos.n_dims
    position = before[:, :n]
    if isinstance(dynamics, GeographicDynamics):
        groups = [geography.in_space(position)]
    else:
        groups = list(position.T[:, :, None])
    spread = math.sqrt(sum(group.var(axis=0).sum() for group in groups) / n) or 1.0
    units = [spread] * len(groups)
    if names:
        groups.append(before[:, n : 2 * n])
        units.append(1.0)
    if len(names) > 1:
        groups.append(before[:, 2 * n :])
        units.append(typical)
    loglik = moving.log_likelihood(before, after)
    world = World(moving, states)
    parts = [part for kind in (Actions(), Blurs(), Turns()) for part in kind.build(world)]
    by_behaviour = Policies(parts, moving.n_actions).log_likelihood(before, loglik)
    sizes = [part.block.n for part in parts]
    base = np.repeat([1 / (len(parts) * size) for size in sizes], sizes)
    shares = _Shares(by_behaviour, loglik.max(axis=1), base, folds.pairs)
    return _Space(names, groups, np.array(units), np.ones(len(groups)), shares, folds)


class _Shares:
    """The shares of behaviours in steps, and what follows for steps that were left out."""

    def __init__(
        self, loglik: Array, shift: Array, base: Array, pairs: list[tuple[Array, Array]]
    ) -> None:
        likelihood = np.exp(loglik - shift[:, None])
        self._folds = []
        for train, test in pairs:
            known = likelihood[train]
            overall = base
            for _ in range(_ROUNDS):
                overall = _shares(known, overall).mean(axis=0)
            own = _shares(known, overall).astype(np.float32)
            self._folds.append((own, overall, likelihood[test], shift[test]))

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


def _near(places: Array, others: Array) -> Any:
    """``exp(-d² / d_8²)`` of the nearest `places` of each of the `others`, as a sparse matrix."""
    from scipy.sparse import csr_array
    from scipy.spatial import cKDTree

    k = min(_NEIGHBOURS, len(places))
    distance, index = cKDTree(places).query(others, k=[*range(1, k + 1)])
    eighth = distance[:, min(_EIGHTH, k) - 1, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(distance == 0, 0.0, distance / eighth)
    first = np.arange(len(others) + 1) * k
    weights = np.exp(-(apart**2)).ravel()
    return csr_array((weights, index.ravel(), first), shape=(len(others), len(places)))
