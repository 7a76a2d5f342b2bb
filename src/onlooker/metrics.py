"""Distances between distributions over actions and over next states.

All functions compare the last axes of two stacks of distributions and broadcast over the leading
axes, as NumPy does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from onlooker.blocks import slices_of

__all__ = ["circular_emd", "planar_emd"]

Floats = NDArray[np.float64]

_MASS_TOLERANCE = 1e-6
# Blocks of about this many entries stay in the cache: twice as fast as one pass over 10⁶ rows.
_BLOCK_ENTRIES = 1 << 16


def circular_emd(p: ArrayLike, q: ArrayLike, circumference: float = 2 * np.pi) -> Any:
    r"""Earth mover's distance between histograms on a circle.

    The bins are equally spaced; the ground distance is the shorter way round. With
    :math:`F = \mathrm{cumsum}(p - q)` and ``n`` bins the distance is

    .. math:: \frac{L}{n} \min_c \sum_i |F_i - c| = \frac{L}{n} \sum_i |F_i - \mathrm{median}(F)|.

    Parameters
    ----------
    p, q : array_like, shape (..., n)
        Distributions; the leading axes broadcast.
    circumference : float
        Length ``L`` of the circle. The default gives radians.

    Returns
    -------
    ndarray of shape (...) or float
    """
    if not circumference > 0 or not np.isfinite(circumference):
        raise ValueError(f"circumference must be positive and finite, got {circumference!r}")
    p_, q_ = _pair(p, q)
    n = p_.shape[-1]
    shape = np.broadcast_shapes(p_.shape, q_.shape)
    p_ = np.broadcast_to(p_, shape).reshape(-1, n)
    q_ = np.broadcast_to(q_, shape).reshape(-1, n)
    total = np.empty(len(p_))
    for rows in slices_of(len(p_), n, _BLOCK_ENTRIES):
        flow = p_[rows] - q_[rows]
        np.cumsum(flow, axis=-1, out=flow)
        # Σ|F − median| is the sum of the upper half less the sum of the lower half.
        flow.partition(n // 2, axis=-1)
        total[rows] = flow[:, (n + 1) // 2 :].sum(axis=-1) - flow[:, : n // 2].sum(axis=-1)
    total *= circumference / n
    return total.reshape(shape[:-1])[()]


def planar_emd(p: Any, q: Any, points: ArrayLike, tolerance: float = 1e-12) -> Any:
    """Exact earth mover's distance between distributions over points, Euclidean ground distance.

    Mass that both distributions hold at the same point stays there (the ground distance is a
    metric), so only the positive and the negative part of ``p - q`` are matched.

    Parameters
    ----------
    p, q : array_like or scipy.sparse matrix, shape (S,) or (n, S)
        Distributions over the points, one per row; a single row is compared with every row of the
        other. Sparse matrices are never made dense.
    points : array_like, shape (S, d) or (S,)
        Where the mass lies.
    tolerance : float
        Differences up to this size are ignored, which trims the support. The error is below
        ``S · tolerance ·`` (diameter of the points).

    Returns
    -------
    ndarray of shape (n,), or float for two one-dimensional inputs

    Notes
    -----
    Needs POT: ``pip install onlooker[eval]``.
    """
    emd2 = _emd2()
    points_ = np.asarray(points, dtype=float)
    if points_.ndim == 1:
        points_ = points_[:, None]
    if points_.ndim != 2 or not np.isfinite(points_).all():
        raise ValueError("points must be a finite (S, d) array, one point per row")
    if not tolerance >= 0:
        raise ValueError(f"tolerance must not be negative, got {tolerance!r}")
    scalar = not sparse.issparse(p) and not sparse.issparse(q) and np.ndim(p) == np.ndim(q) == 1
    p_, q_ = _sparse_rows(p, "p", len(points_)), _sparse_rows(q, "q", len(points_))
    if p_.shape[0] != q_.shape[0] and 1 not in (p_.shape[0], q_.shape[0]):
        raise ValueError(f"p has {p_.shape[0]} rows but q has {q_.shape[0]}: pass equally many")
    n = max(p_.shape[0], q_.shape[0])
    if p_.shape[0] < n:
        p_ = sparse.csr_array(sparse.vstack([p_] * n))
    if q_.shape[0] < n:
        q_ = sparse.csr_array(sparse.vstack([q_] * n))
    difference = sparse.csr_array(p_ - q_)
    out = np.empty(n)
    for i in range(n):
        entries = slice(difference.indptr[i], difference.indptr[i + 1])
        out[i] = _match(
            difference.data[entries], points_[difference.indices[entries]], tolerance, emd2
        )
    return float(out[0]) if scalar else out


def _match(difference: Floats, points: Floats, tolerance: float, emd2: Any) -> float:
    """Cost of moving the positive part of ``difference`` onto its negative part."""
    surplus, deficit = difference > tolerance, difference < -tolerance
    if not surplus.any() or not deficit.any():
        return 0.0
    source, target = difference[surplus], -difference[deficit]
    # Trimming leaves the two parts unequal by a trace; POT wants them equal.
    mass = 0.5 * (source.sum() + target.sum())
    gap = points[surplus][:, None, :] - points[deficit][None, :, :]
    cost = np.sqrt(np.einsum("ijk,ijk->ij", gap, gap))
    value = emd2(source / source.sum(), target / target.sum(), cost, numItermax=10_000_000)
    return float(mass * value)


def _emd2() -> Any:
    try:
        from ot import emd2
    except ImportError as error:
        raise ImportError("planar_emd needs POT: pip install onlooker[eval]") from error
    return emd2


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[Floats, Floats]:
    p_, q_ = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    for name, array in (("p", p_), ("q", q_)):
        if array.ndim == 0 or array.shape[-1] == 0:
            raise ValueError(f"{name} must hold distributions along its last axis")
        _check_mass(array.sum(axis=-1), array.min(axis=-1), name)
    if p_.shape[-1] != q_.shape[-1]:
        raise ValueError(f"p has {p_.shape[-1]} bins but q has {q_.shape[-1]}")
    return p_, q_


def _sparse_rows(x: Any, name: str, n_points: int) -> sparse.csr_array:
    if not sparse.issparse(x):
        x = np.atleast_2d(np.asarray(x, dtype=float))
        if x.ndim != 2:
            raise ValueError(f"{name} must be (S,) or (n, S), got {x.ndim} axes")
    rows = sparse.csr_array(x)
    if rows.shape[0] == 0 or rows.shape[1] != n_points:
        raise ValueError(f"{name} has shape {rows.shape} but there are {n_points} points")
    # A row of a sparse matrix without stored entries has minimum 0, as a dense one.
    _check_mass(rows.sum(axis=1), rows.min(axis=1).toarray().ravel(), name)
    return rows


def _check_mass(total: Floats, lowest: Floats, name: str) -> None:
    # Written so that NaN fails as well.
    good = (np.abs(total - 1.0) <= _MASS_TOLERANCE) & (lowest >= 0)
    if not np.all(good):
        index = tuple(int(i) for i in np.argwhere(~np.atleast_1d(good))[0])
        raise ValueError(
            f"{name}{list(index)} is not a distribution (sum {np.atleast_1d(total)[index]:.6g}, "
            f"smallest entry {np.atleast_1d(lowest)[index]:.6g}): pass non-negative entries that "
            "sum to 1"
        )
