"""What is the state? Position alone, or with heading, or with heading and speed; and their scales.

Both are decided by how well left-out trajectories are predicted, under a local predictor that
takes seconds where a fit takes minutes:

    p(s' | s) = Σ_b θ(b) ℓ[s, s', b],    θ ∝ Σ_t exp(-d_t² / d_8²) r_t + b̂

over the 32 nearest states t of other trajectories, d_8 the distance to the eighth of them,
``r_t(b) ∝ b̂_b ℓ[t, b]``, and b̂ the shares of behaviours overall, by EM. Features join the state
only if that predicts better by more than one standard error, by trajectory, and if short chains of
the model itself do; so do factors of coordinates.
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
from onlooker.choosing.left_out import Folds, Gain, Shares, known_folds
from onlooker.choosing.trials import N_FITS, Trials, make_trials, shares_of
from onlooker.dynamics.base import position_dynamics
from onlooker.dynamics.features import Feature, Heading, Speed, with_features
from onlooker.dynamics.geographic import GeographicDynamics
from onlooker.partitions import ScaledAxes
from onlooker.progress import make_progress

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations

STATES: tuple[tuple[str, ...], ...] = ((), ("heading",), ("heading", "speed"))
"""What may join the position."""
_NEIGHBOURS, _EIGHTH = 32, 8
_FACTORS = (0.25, 0.5, 2.0, 4.0)
_SEARCHES = 3  # through all groups
_SLOW = 0.1  # quantile of speeds


class StateChoice(NamedTuple):
    """What the state is, and what that is worth on left-out trajectories."""

    features: list[Feature]
    """What joins the position, with weights in its units."""
    metric: ScaledAxes | None
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
    progress: bool = False,
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
    progress
        Whether to show how far it is.
    """
    if names is not None and tuple(names) not in STATES:
        raise ValueError(f"names must be one of {STATES}, got {names!r}")
    folds = known_folds(demos, dynamics, random_state)
    if folds is None:
        return None
    rng = np.random.default_rng(random_state)
    with make_progress(progress, N_FITS, "choosing the state", "fits", brief=True) as shown:
        tracks = _Tracks(demos, dynamics, folds, make_trials(demos, rng, shown))
        choice = _choose(tracks, names)
        shown.update(N_FITS)  # fewer may have been enough
    return choice


def _choose(tracks: _Tracks, names: Sequence[str] | None) -> StateChoice:
    """Add one idea after the other as long as that pays."""
    now = _space(tracks, ())
    n_position = now.n_position
    if n_position > 1:
        scaled = now.better([now.evened()]).searched(range(1, n_position))
        if scaled.gain_over(now).counts:
            now = scaled
    gains: dict[tuple[str, ...], Gain] = {}
    steps_are_moves = hasattr(position_dynamics(tracks.dynamics), "displacements")
    for joined in STATES[1:] if steps_are_moves else ():
        wider = _space(tracks, joined).after(now)
        wider = wider.searched(range(n_position, len(wider.groups)))
        gains[joined] = wider.gain_over(now)
        if not (gains[joined].counts if names is None else len(joined) <= len(names)):
            break  # the gain is known nevertheless
        now = wider
    local = tracks.folds.gain(now.score, now.overall)
    return StateChoice(now.features, now.metric, gains, local)


# -- what is predicted -----------------------------------------------------------------------------


class _Tracks(NamedTuple):
    """What was seen, and what of it is left out."""

    demos: Demonstrations
    dynamics: Any
    folds: Folds
    trials: Trials


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
    slow: float
    """The unit of the logarithm of speed."""
    shares: Shares
    tracks: _Tracks

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
            for k, (train, test) in enumerate(self.tracks.folds.pairs)
        ]
        return np.concatenate(parts)

    @cached_property
    def overall(self) -> Array:
        """The same by one policy for all states."""
        return self.shares.overall

    @property
    def best(self) -> Array:
        """By place or by one policy for all, whichever is better."""
        return self.score if self.score.mean() > self.overall.mean() else self.overall

    @cached_property
    def tried(self) -> Array:
        """Log predictive density by short chains."""
        return self.tracks.trials.score(*self._states, self.metric)

    @property
    def _states(self) -> tuple[Demonstrations, Any]:
        demos, dynamics = self.tracks.demos, self.tracks.dynamics
        return with_features(demos, self.features, dynamics) if self.features else (demos, dynamics)

    def gain_over(self, other: _Space) -> Gain:
        """By the local predictor; by short chains too, if that says that it is better.

        It says so too easily of a state that tells regions apart by other means than their place.
        """
        gain = self.tracks.folds.gain(self.best, other.best)
        return self.tracks.trials.gain(self.tried, other.tried) if gain.counts else gain

    def better(self, spaces: Iterable[_Space]) -> _Space:
        """The best of these, if it is better than this by more than one standard error."""
        best = max(spaces, key=lambda space: float(space.score.mean()))
        return best if self.tracks.folds.gain(best.score, self.score).counts else self

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

    @property
    def n_position(self) -> int:
        """How many groups are the position."""
        return len(self.groups) - len(self.names)

    @property
    def features(self) -> list[Feature]:
        """What joins the position, with weights in its units."""
        weights = [float(f"{weight:.4g}") for weight in self._per_unit[self.n_position :]]
        return _features(weights, self.slow)

    @property
    def metric(self) -> ScaledAxes | None:
        """Factors of the coordinates, and 1 for all features."""
        factors = self._per_unit[: self.n_position]
        if (factors == 1).all():
            return None
        n_rest = sum(group.shape[1] for group in self.groups[self.n_position :])
        return ScaledAxes((*(float(f"{factor:.4g}") for factor in factors), *[1.0] * n_rest))

    @property
    def _per_unit(self) -> Array:
        """Scales if the coordinate that counts most is in its own units."""
        scale = self.scales / self.units
        return np.asarray(scale / scale[: self.n_position].max())


def _space(tracks: _Tracks, names: tuple[str, ...]) -> _Space:
    """Positions and features of the steps that are kept, and likelihoods of these."""
    demos, dynamics, folds, _ = tracks
    before, after = demos.transitions()
    moves = np.linalg.norm(dynamics.displacements(before, after), axis=1) if names else np.ones(1)
    slow = float(f"{np.quantile(moves[moves > 0], _SLOW):.4g}") if moves.any() else 1.0
    features = _features([1.0] * len(names), slow)
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
        units.append(1.0)
    shares = shares_of(states, moving, before, after, folds.pairs)
    return _Space(names, groups, np.array(units), np.ones(len(groups)), slow, shares, tracks)


def _features(weights: Sequence[float], slow: float) -> list[Feature]:
    """Heading and speed, as many as there are weights."""
    features: list[Feature] = [Heading(weight) for weight in weights[:1]]
    return features + [Speed(weight, slow) for weight in weights[1:]]


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
