"""Would other chains find the same? Half of the chains against the other half."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.consensus.search import consensus
from onlooker.prediction.kernels import add_policies

if TYPE_CHECKING:
    from onlooker.posterior import Posterior

MAX_VARIATION = 0.1
"""Mean total variation of policies up to which the halves agree."""
MIN_INDEX = 0.8
"""Adjusted Rand index of partitions above which they agree."""
MEMBERSHIP = 0.5
"""Of states whose place is compared."""
MIN_SHARE = 0.5
"""Of such states among all: a partition that leaves most states open is not to be read."""
_STATES = 2_000  # at most that are looked at


class Stability(NamedTuple):
    """How far the mean policy and the consensus partition depend on which chains were run."""

    variation: float
    """Total variation of the mean policies of two halves of the chains, averaged over states."""
    rand_index: float
    """Adjusted Rand index of their consensus partitions, on states with membership > 50 % in
    both; 0 if hardly any has."""
    share: float
    """Of these states among all."""

    @property
    def policy_agrees(self) -> bool:
        """Whether the halves find the same policy."""
        return self.variation < MAX_VARIATION

    @property
    def partition_agrees(self) -> bool:
        """Whether they find the same partition."""
        return self.rand_index > MIN_INDEX and self.share >= MIN_SHARE

    @property
    def sentence(self) -> str:
        """What was compared, and what may be read."""
        found = (
            "Half of the chains against the other half: mean policies differ by "
            f"{self.variation:.2f} (total variation; below {MAX_VARIATION} is fine), consensus "
            f"partitions have an adjusted Rand index of {self.rand_index:.2f} on the "
            f"{100 * self.share:.0f} % of states with membership > {100 * MEMBERSHIP:.0f} % "
            f"(above {MIN_INDEX}, on at least half of the states, is fine)."
        )
        if not self.policy_agrees:
            return f"{found} Neither is to be relied on: run more chains, or longer ones."
        if not self.partition_agrees:
            return f"{found} The policy can be relied on; the partition is not to be read."
        return f"{found} Both can be relied on."


def stability(posterior: Posterior) -> Stability | None:
    """Compare the even chains with the odd ones; None if there are fewer than two.

    Chains with landmarks of their own have different posteriors, so that R-hat says nothing; that
    two sets of them agree is what can be asked. At most 2,000 states, drawn at random, are looked
    at.
    """
    if posterior.n_chains < 2:
        return None
    n = posterior.problem.n_nodes
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(n, min(n, _STATES), replace=False))
    policies = _policies(posterior, some)
    halves = [consensus(posterior.labels[half::2][:, :, some], random_state=0) for half in (0, 1)]
    sure = np.logical_and(*(half.membership > MEMBERSHIP for half in halves))
    index = 0.0
    if sure.mean() > 0.01:
        index = adjusted_rand_index(halves[0].labels[sure], halves[1].labels[sure])
    variation = 0.5 * np.abs(policies[0::2].mean(axis=0) - policies[1::2].mean(axis=0)).sum(axis=1)
    return Stability(float(variation.mean()), index, float(sure.mean()))


def _policies(posterior: Posterior, some: Array) -> Array:
    """``(chains, n, A)``: the mean policy at some nodes by each chain."""
    problem, n_draws = posterior.problem, posterior.n_draws
    found = np.zeros((posterior.n_chains, len(some), problem.n_behaviours))
    for clusters in posterior.predictor.blocks():
        of_chain = clusters.index // n_draws
        for chain in np.unique(of_chain):
            part = clusters.take(np.flatnonzero(of_chain == chain))
            labels = np.ascontiguousarray(part.labels[:, some])
            add_policies(labels, part.first, part.policy, found[chain])
    return problem.to_actions(problem.states[some], found / n_draws)


def adjusted_rand_index(first: Array, second: Array) -> float:
    """1 for equal partitions, about 0 for unrelated ones (Hubert and Arabie 1985)."""
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1)

    def pairs(counts: Array) -> float:
        return float((counts * (counts - 1) / 2).sum())

    both, rows, columns = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    n = len(first)
    expected = rows * columns / max(n * (n - 1) / 2, 1)
    most = (rows + columns) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)
