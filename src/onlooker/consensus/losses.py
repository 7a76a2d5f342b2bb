"""Losses between partitions, and their means over draws."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.checks import one_of
from onlooker.consensus.draws import Floats, Ints32, Unique, canonical_rows, check_labels
from onlooker.consensus.pair_kernels import overlaps

Loss = Literal["vi", "binder"]

TOLERANCE = 1e-12  # losses closer than this are the same up to rounding


def variation_of_information(first: ArrayLike, second: ArrayLike) -> float:
    """Variation of information of two partitions in bits: H(first | second) + H(second | first)."""
    one = check_labels(first, "first")
    other = Unique(check_labels(second, "second", one.size)[None, :])
    return float(losses("vi", one, other)[0])


def check_loss(loss: str) -> None:
    """Refuse a loss that is not known."""
    one_of("loss", loss, ("vi", "binder"))


def terms(loss: Loss, n: int) -> Floats:
    """f(0), ..., f(n) of the loss (see `onlooker.consensus.kernels`)."""
    number = np.arange(n + 1, dtype=float)
    if loss == "binder":
        return (number / n) ** 2
    return number * np.log2(np.maximum(number, 1.0)) / n


def losses(loss: Loss, labels: Ints32, unique: Unique) -> Floats:
    """Loss of a canonical partition against each distinct draw."""
    f = terms(loss, labels.size)
    own = f[np.bincount(labels)].sum()
    theirs = np.add.reduceat(f[np.diff(unique.index.start)], unique.index.offset[:-1])
    values: Floats = np.maximum(theirs + own - 2.0 * overlaps(labels, unique.index, f), 0.0)
    values[values < TOLERANCE] = 0.0
    return values


class LossOf:
    """Labels -> (expected loss, canonical labels)."""

    def __init__(self, loss: Loss, unique: Unique) -> None:
        self.loss, self.unique = loss, unique

    def __call__(self, labels: NDArray[np.int64]) -> tuple[float, Ints32]:
        row = canonical_rows(labels[None, :], "labels")[0]
        return float(self.unique.index.weights @ losses(self.loss, row, self.unique)), row
