"""Partitions to find a consensus of, and the losses it may have."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from onlooker.consensus.draws import Unique, check_draws, check_labels
from onlooker.consensus.losses import LossOf, losses

Ints = NDArray[np.int64]
LOSSES = ["vi", "binder"]

draw_sets = st.tuples(st.integers(1, 12), st.integers(1, 9)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 4))
)


def expected_loss(loss: str, labels: NDArray[np.int64], draws: Ints) -> float:
    """The mean over the draws of the loss of one partition."""
    return LossOf(loss, Unique(check_draws(draws)))(np.asarray(labels))[0]  # type: ignore[arg-type]


def distance(loss: str, one: Ints, other: Ints) -> float:
    """The loss of one partition against another."""
    return losses(loss, check_labels(one, "one"), Unique(check_draws(other[None])))[0]  # type: ignore[arg-type]


def restaurant_draws(n_draws: int, n: int, concentration: float, seed: int) -> Ints:
    """Independent draws from a Chinese restaurant: the hardest case, with nothing in common."""
    rng = np.random.default_rng(seed)
    out = np.zeros((n_draws, n), dtype=np.int64)
    for row in out:
        for i in range(1, n):
            counts = np.bincount(row[:i]).astype(float)
            weights = np.append(counts, concentration)
            row[i] = rng.choice(weights.size, p=weights / weights.sum())
    return out


def noisy_draws(n_draws: int, n: int, k: int, noise: float, seed: int) -> tuple[Ints, Ints]:
    """A true partition, and draws that misplace a share of the nodes at random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    draws = np.tile(truth, (n_draws, 1))
    wrong = rng.random(draws.shape) < noise
    draws[wrong] = rng.integers(0, k, wrong.sum())
    return truth, draws
