"""Draws, and what they say: policies, partitions, predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from onlooker._validation import Array, read_only
from onlooker.inference.draws import Draws

if TYPE_CHECKING:
    from onlooker.inference.problem import Problem
    from onlooker.inference.runner import Plan
    from onlooker.partitions.base import PartitionPrior


class Posterior:
    """Draws from the posterior over actions, partitions and hyper-parameters.

    Made by `onlooker.sample` and `Posterior.load`.

    Attributes
    ----------
    problem, prior
        What was inferred, and the prior over partitions.
    labels : (chain, draw, node) int array
        Clusters, in each draw numbered by first appearance: labels mean nothing across draws.
    actions : (chain, draw, transition) int array
        Latent actions, in the order of the problem's transitions.
    links : (chain, draw, node) int array, or None
        The links of the distance-dependent prior.
    log_joint : (chain, draw) array
        ``ln p(s, a, z)``, controllers integrated out.
    hyper : mapping of (chain, draw) arrays
        Draws of hyper-parameters (constant where fixed).
    chain_ids : list of int
        Numbers of the chains; one that died is missing.
    """

    def __init__(self, plan: Plan, draws: Draws, chain_ids: Sequence[int]) -> None:
        self.plan = plan
        self.chain_ids = list(chain_ids)
        self.labels = read_only(draws.labels)
        self.actions = read_only(draws.actions)
        self.links = None if draws.links is None else read_only(draws.links)
        self.log_joint = read_only(draws.log_joint)
        self.hyper: Mapping[str, Array] = MappingProxyType(
            {name: read_only(values) for name, values in draws.hyper.items()}
        )

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.plan.problem

    @property
    def prior(self) -> PartitionPrior:
        """The prior over partitions."""
        return self.plan.prior

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.labels)

    @property
    def n_draws(self) -> int:
        """Draws of each chain."""
        return self.labels.shape[1]

    @property
    def n_controllers(self) -> Array:
        """``(chain, draw)``: clusters in use."""
        return self.labels.max(axis=2).astype(int) + 1

    def __repr__(self) -> str:
        return (
            f"Posterior({self.n_chains} chains of {self.n_draws} draws, "
            f"{type(self.prior).__name__}, {self.problem!r})"
        )

    def policy(self) -> Array:
        """``(N, A)``: predictive action distribution at the nodes, averaged over the draws."""
        import numpy as np

        from onlooker import _prediction_kernels as kernels

        labels = self.labels.reshape(-1, self.problem.n_nodes)
        actions = self.actions.reshape(-1, self.problem.n_transitions)
        alpha = self.hyper["alpha"].ravel()
        out = np.zeros((self.problem.n_nodes, self.problem.n_actions))
        for b in range(len(labels)):
            rows = int(labels[b].max()) + 2
            first = np.array([0, rows])
            counts = np.zeros((rows, self.problem.n_actions), dtype=np.int32)
            size = np.zeros(rows, dtype=np.int32)
            kernels.count_clusters(
                labels[b : b + 1],
                actions[b : b + 1],
                self.problem.node_of,
                first,
                counts,
                size,
            )
            policy = np.empty(counts.shape)
            kernels.normalise(counts, first, alpha[b : b + 1], policy)
            kernels.add_policies(labels[b : b + 1], first, policy, out)
        return out / len(labels)
