"""Actions proposed from tracks."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from onlooker.checks import (
    Array,
    finite_array,
    one_of,
    positive_integer,
    positive_number,
    require_memory,
)

_MAX_STEPS = 4_000  # steps that speeds and noise are estimated from
_MIN_STAYING = 0.01
_BETWEEN = 3.0  # sigma from a step between two directions to either of them
_MIN_NOISE = 0.05  # of the step's length
_JITTER = 0.05  # of the median step: shorter ones are no speed
_ABSURD = 1e6  # times the median step
_ROUNDS, _SETTLED = 200, 1e-4  # nats a step


class Proposal(NamedTuple):
    """Actions: slowest first, within a speed by direction, a stay last."""

    steps: Array
    sigma: float | Array


def propose(
    moves: Array,
    n_directions: int,
    n_speeds: int,
    *,
    stay: Any,
    noise: str,
    scale: Any,
    sigma: float | None,
) -> Proposal:
    """Directions × speeds for steps `moves`; see `DisplacementDynamics.from_demonstrations`."""
    if moves.ndim != 2 or moves.shape[1] > 3:
        kind = "integer states" if moves.ndim == 1 else f"states of dimension {moves.shape[1]}"
        raise ValueError(
            f"directions can be proposed in 1 to 3 dimensions, not for {kind}; "
            "give the actions yourself, as steps with their noise"
        )
    n_directions = positive_integer("n_directions", n_directions)
    n_speeds = positive_integer("n_speeds", n_speeds)
    _refuse_many(8 * n_directions * (6 * n_directions + len(moves) * n_speeds), n_directions)
    one_of("stay", stay, (True, False, "auto"))
    one_of("noise", noise, ("estimate", "resolution"))
    if sigma is not None:
        sigma = positive_number("sigma", sigma)
    if not moves.any():
        raise ValueError(
            "every step of the demonstrations stands still, so they tell no direction or speed; "
            "give the actions yourself, as steps with their noise"
        )
    unit = _unit(scale, moves)
    steps, typical = _typical_steps(moves / unit)
    units = directions(n_directions, moves.shape[1])
    given = None if sigma is None else sigma / typical
    rings = (fit_mixture if noise == "estimate" else fit_medians)(
        steps, units, n_speeds, stay, given
    )
    unit = unit * typical
    still = np.zeros((int(rings.stays), moves.shape[1]))
    proposed = np.vstack([*(length * units for length in rings.lengths), still]) * unit
    spread = np.repeat(rings.sigma, [len(units)] * len(rings.lengths) + [int(rings.stays)])
    if scale is not None:
        return Proposal(proposed, spread[:, None] * unit)
    return Proposal(proposed, spread * typical if sigma is None else sigma)


def _typical_steps(steps: Array) -> tuple[Array, float]:
    """As many steps as are needed, evenly from all tracks, in units of the typical one.

    Steps so long that their squares would drown all others are left out.
    """
    size = np.abs(steps).max(axis=1)
    typical = float(np.median(size[size > 0]))
    steps = steps[size <= _ABSURD * typical] / typical
    few = steps[:: -(-len(steps) // _MAX_STEPS)]
    return (few if few.any() else steps), typical


def _unit(scale: Any, moves: Array) -> Array:
    """A length in each dimension that counts the same."""
    n_dims = moves.shape[1]
    if scale is None:
        return np.ones(n_dims)
    if isinstance(scale, str):
        if scale != "spread":
            raise ValueError(f"scale must be None, 'spread' or {n_dims} numbers, got {scale!r}")
        return np.array([_typical(moves[:, dim]) for dim in range(n_dims)])
    unit = finite_array("scale", scale, ndim=1)
    if unit.shape != (n_dims,) or (unit <= 0).any():
        raise ValueError(f"scale must be {n_dims} numbers above 0, got {unit.tolist()}")
    return unit


def _typical(moves: Array) -> float:
    """The median is blind to outliers; standing still says nothing."""
    moving = np.abs(moves[moves != 0])
    return float(np.median(moving)) if len(moving) else 1.0


def _refuse_many(n_bytes: int, n_directions: int) -> None:
    """Refuse actions whose tables do not fit into memory."""
    require_memory(
        n_bytes, f"the actions of {n_directions:,} directions", "choose fewer directions or speeds"
    )


def directions(n_directions: int, n_dims: int) -> Array:
    """Unit vectors: both ways on a line, even on the circle, nearly even on the sphere."""
    _refuse_many(64 * n_directions, n_directions)
    if n_dims == 1:
        return np.array([[1.0], [-1.0]])
    if n_dims == 2:
        angles = 2 * np.pi * np.arange(n_directions) / n_directions
        return np.column_stack([np.cos(angles), np.sin(angles)])
    place: Array = np.arange(n_directions) + 0.5  # the spiral of Fibonacci
    height = 1 - 2 * place / n_directions
    angles = math.pi * (3 - math.sqrt(5)) * place
    level = np.sqrt(1 - height**2)
    return np.column_stack([level * np.cos(angles), level * np.sin(angles), height])


def _gap(units: Array) -> float:
    """The typical distance of neighbouring directions, 0 on a line."""
    if units.shape[1] == 1 or len(units) == 1:
        return 0.0
    apart = np.linalg.norm(units[:, None] - units[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return float(np.median(apart.min(axis=1)))


class SpeedRings(NamedTuple):
    """Actions of each length around where one stands."""

    lengths: Array
    sigma: Array
    """Of each length, and of staying."""
    stays: bool


def fit_medians(
    steps: Array, units: Array, n_speeds: int, stay: Any, sigma: float | None
) -> SpeedRings:
    """Lengths by k-medians on their logs, noise by how far steps are from the nearest action."""
    from scipy.stats import chi2

    lengths = np.linalg.norm(steps, axis=1)
    moving = lengths[lengths > _JITTER * np.median(lengths[lengths > 0])]
    centres = np.exp(_k_medians(np.log(moving), n_speeds))
    along = np.maximum((steps @ units.T).max(axis=1), 0.0)  # of the nearest direction
    apart = (lengths**2)[:, None] - 2 * np.outer(along, centres) + centres**2
    stays = bool(stay)
    if stay == "auto":
        stays = bool(np.mean(lengths**2 < apart.min(axis=1)) >= _MIN_STAYING)
    still = lengths**2 if stays else np.full(len(lengths), np.inf)
    apart = np.maximum(np.column_stack([apart, still]), 0.0)
    ring, near = apart.argmin(axis=1), apart.min(axis=1)
    spread = np.zeros(len(centres) + 1)
    for k in np.unique(ring):  # the median is blind to outliers
        spread[k] = math.sqrt(np.median(near[ring == k]) / chi2.ppf(0.5, steps.shape[1]))
    bound = np.append(_min_noise(units) * centres, _MIN_NOISE * centres[0])
    spread = np.maximum(spread, bound) if sigma is None else np.full(len(bound), sigma)
    return SpeedRings(centres, spread, stays)


def _k_medians(values: Array, n: int) -> Array:
    """Centres of at most `n` groups of numbers, in order, by Lloyd's iteration from quantiles."""
    centres = np.unique(np.quantile(values, (np.arange(n) + 0.5) / n))
    for _ in range(_ROUNDS):
        group = np.abs(values[:, None] - centres).argmin(axis=1)
        moved = np.array([np.median(values[group == k]) for k in np.unique(group)])
        if len(moved) == len(centres) and np.allclose(moved, centres, rtol=0, atol=1e-6):
            break
        centres = moved
    apart = np.diff(centres, prepend=-np.inf)
    return centres[apart > math.log1p(_MIN_NOISE)]  # nearer than the noise: one and the same


def _min_noise(units: Array) -> float:
    """Noise, as a share of the step, that any action has at least."""
    to_the_middle = 2 * math.sin(math.asin(min(_gap(units) / 2, 1.0)) / 2)
    return max(to_the_middle / _BETWEEN, _MIN_NOISE)


def fit_mixture(
    steps: Array, units: Array, n_speeds: int, stay: Any, sigma: float | None
) -> SpeedRings:
    """Lengths and noise of greatest likelihood; their number by BIC, and a stay if that pays."""
    lengths = np.linalg.norm(steps, axis=1)
    moving = lengths[lengths > 0]
    fits = []
    for n in range(1, n_speeds + 1):
        start = np.unique(np.quantile(moving, (np.arange(n) + 0.5) / n))
        if len(start) < n:
            break
        fit = _Mixture(steps, units, start, bool(stay), sigma).run()
        if stay == "auto" and fit.rest[0] < _MIN_STAYING:
            fit = _Mixture(steps, units, start, False, sigma).run()
        fits.append(fit)
    best = min(fits, key=_Mixture.bic)
    order = np.argsort(best.lengths)
    return SpeedRings(best.lengths[order], best.sigma[[*order, -1]], best.stays)


class _Mixture:
    """Maximum likelihood by EM: Gaussians of one width around ``length · direction``, each length.

    With responsibilities ``γ`` of the actions of a ring, its length is the mean projection
    ``Σ γ x·u / Σ γ`` and its noise ``σ² = Σ γ |x - length u|² / (d Σ γ)``, with a lower bound.
    Steps that no ring explains go to a flat part as wide as the longest step.
    """

    def __init__(
        self, steps: Array, units: Array, start: Array, stays: bool, sigma: float | None
    ) -> None:
        self.n_steps, self.n_dims = steps.shape
        self.stays, self.fixed, self.min_noise = stays, sigma, _min_noise(units)
        self.total = -np.inf  # log-likelihood
        self.squared, self.along = (steps**2).sum(axis=1), steps @ units.T
        reach = 0.5 * math.log(self.squared.max())
        self.flat = gammaln(self.n_dims / 2 + 1) - self.n_dims * (0.5 * math.log(math.pi) + reach)
        self.lengths = start.copy()
        self.sigma = np.append(0.3 * start, 0.3 * start[0])  # the last is for staying
        if sigma is not None:
            self.sigma[:] = sigma
        near = np.mean(self.squared < (0.5 * start[0]) ** 2)  # parked tracks must not feed a ring
        self.rest = np.array([np.clip(near, 0.01, 0.9) if stays else 0.0, 0.01])
        """Weights of staying and of outliers."""
        n_actions = len(start) * len(units)
        self.weights = np.full((len(start), len(units)), (1 - self.rest.sum()) / n_actions)

    def run(self) -> _Mixture:
        """Climb until a round gains next to nothing."""
        for _ in range(_ROUNDS):
            total, share = self._expect()
            gain, self.total = total - self.total, total
            if gain < _SETTLED * self.n_steps:
                break
            self._maximise(share)
        return self

    def bic(self) -> float:
        """Of weights, lengths and noise, and the weight and noise of staying."""
        n_free = self.weights.size + (1 + (self.fixed is None)) * (len(self.lengths) + self.stays)
        return n_free * math.log(self.n_steps) - 2 * self.total

    def _expect(self) -> tuple[float, Array]:
        """The log-likelihood, and the share of each action in each step."""
        n_rings, n_units = self.weights.shape
        log = np.empty((self.n_steps, n_rings * n_units + 2))
        with np.errstate(divide="ignore", over="ignore"):
            for k, length in enumerate(self.lengths):
                ring = slice(k * n_units, (k + 1) * n_units)
                apart = self.squared[:, None] - 2 * length * self.along + length**2
                log[:, ring] = self._normal(apart, self.sigma[k]) + np.log(self.weights[k])
            log[:, -2] = self._normal(self.squared, self.sigma[-1]) + np.log(self.rest[0])
            log[:, -1] = self.flat + np.log(self.rest[1])
        top = log.max(axis=1, keepdims=True)
        share = np.exp(np.subtract(log, top, out=log), out=log)
        total = share.sum(axis=1, keepdims=True)
        share /= total
        return float((np.log(total) + top).sum()), share

    def _normal(self, apart: Array, sigma: float) -> Array:
        """Log density of a round Gaussian at a squared distance."""
        return -0.5 * apart / sigma**2 - self.n_dims * (
            math.log(sigma) + 0.5 * math.log(2 * math.pi)
        )

    def _maximise(self, share: Array) -> None:
        """Weights, lengths and noise given the shares."""
        mass = share.sum(axis=0)
        self.weights = mass[:-2].reshape(self.weights.shape) / self.n_steps
        self.rest = mass[-2:] / self.n_steps
        n_own = self.weights.sum(axis=1) * self.n_steps
        spread = np.zeros(len(n_own))
        for k in np.flatnonzero(n_own > 1e-9):
            own = share[:, :-2].reshape(self.n_steps, *self.weights.shape)[:, k]
            self.lengths[k] = max((own * self.along).sum() / n_own[k], 1e-9 * self.lengths[k])
            spread[k] = max(self.squared @ own.sum(axis=1) - self.lengths[k] ** 2 * n_own[k], 0.0)
        if self.fixed is not None:
            return
        spread = np.sqrt(spread / np.maximum(self.n_dims * n_own, 1e-9))
        self.sigma[:-1] = np.maximum(spread, self.min_noise * self.lengths)
        if self.rest[0] > 0:
            staying = math.sqrt(share[:, -2] @ self.squared / (self.n_dims * mass[-2]))
            slowest = self.lengths.min()
            self.sigma[-1] = np.clip(staying, _MIN_NOISE * slowest, 0.5 * slowest)
