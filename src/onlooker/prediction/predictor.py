"""The policy at any state: which clusters it may join in each draw, and what they do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from onlooker.blocks import slices_of
from onlooker.checks import Array, positive_integer, read_only
from onlooker.demonstrations import as_states, distinct_states
from onlooker.inference.draws import Draws
from onlooker.partitions.base import Drawn, PartitionPrior, Strategy, Weights, check_strategy
from onlooker.prediction import kernels
from onlooker.prediction.kernels import Neighbours, Visits
from onlooker.prediction.neighbours import NeighbourSearch, no_neighbours, smooth
from onlooker.problem import Problem

_ENTRIES = 1 << 23  # numbers held at a time
_THETAS = 1 << 25  # of controllers that are held rather than drawn again
_MIN_VALUES = 1000  # controllers drawn at least for an interval


class PolicyInterval(NamedTuple):
    """A policy with its credible interval, ``(n, A)`` each."""

    mean: Array
    low: Array
    high: Array


class Rule(NamedTuple):
    """How states that are no nodes are treated."""

    strategy: Strategy
    n_neighbors: int | None


@dataclass
class Clusters:
    """The clusters of some draws; `onlooker.prediction.kernels` tells the layout."""

    index: Array
    """Which draws these are."""
    labels: Array
    first: Array
    counts: Array
    size: Array
    n_regions: Array
    share: Array
    """The base measure of each draw times the number of behaviours."""
    hyper: dict[str, Array]

    @cached_property
    def policy(self) -> Array:
        """``(ξ + α share) / (ξ· + Bα)`` of every cluster, over behaviours."""
        policy = np.empty(self.counts.shape)
        kernels.normalise(self.counts, self.first, self.hyper["alpha"], self.share, policy)
        return policy

    @cached_property
    def square(self) -> Array:
        """``E[θ_j²]`` of every cluster, ``θ ~ Dir(ξ + α)``."""
        return _second_moment(self.counts, self.alpha)

    @cached_property
    def alpha(self) -> Array:
        """α for every cluster."""
        return np.repeat(self.hyper["alpha"], np.diff(self.first))

    def thetas(self, rng: np.random.Generator) -> Array:
        """``θ ~ Dir(ξ + α share)`` of every cluster, over behaviours."""
        theta = np.empty(self.counts.shape)
        kernels.draw_thetas(self.counts, self.first, self.hyper["alpha"], self.share, theta, rng)
        return theta

    def take(self, chosen: Array) -> Clusters:
        """Some of these draws."""
        n_rows = np.diff(self.first)[chosen]
        first = np.concatenate([[0], np.cumsum(n_rows)])
        rows = np.repeat(self.first[:-1][chosen] - first[:-1], n_rows) + np.arange(first[-1])
        hyper = {name: values[chosen] for name, values in self.hyper.items()}
        return Clusters(
            self.index[chosen],
            self.labels[chosen],
            first,
            self.counts[rows],
            self.size[rows],
            self.n_regions[rows],
            self.share[chosen],
            hyper,
        )


class Predictor:
    """Policies of any states, by each of some draws or in the mean of all.

    Parameters
    ----------
    problem, prior
        As in the posterior.
    draws
        Of all chains, pooled.
    seed
        Of the controllers that intervals are made of.
    keep_counts
        Hold the counts of all draws in memory, however many: for frequent queries.
    chains
        The chain of each draw, by whose landmarks it predicts; None: all nodes count.
    """

    def __init__(
        self,
        problem: Problem,
        prior: PartitionPrior[Any],
        draws: Draws,
        seed: int,
        *,
        keep_counts: bool = False,
        chains: Array | None = None,
    ) -> None:
        self.problem = problem
        self.prior = prior
        self.draws = draws
        self.seed = seed
        self.keep_counts = keep_counts
        self.chains = chains if problem.landmarks is not None else None
        self._searches: dict[int, NeighbourSearch] = {}
        self._visited: dict[int, tuple[Array, Array]] = {}
        self._kept: list[Clusters] = []
        self._found: tuple[Any, ...] = (None,)  # the last neighbours, with what was asked for

    def search(self, chain: int) -> NeighbourSearch:
        """Neighbours among the nodes of a chain."""
        if chain not in self._searches:
            problem = self.problem
            if self.chains is not None:
                problem = problem.for_chain(chain, self.prior.geometry)
            geometry, reach = self.prior.geometry(problem), self.prior.reach
            assert geometry is not None
            assert reach is not None
            landmarks = None if problem.owners is None else problem.owners.nodes
            self._searches[chain] = NeighbourSearch(geometry, reach.continuation, landmarks)
        return self._searches[chain]

    def sightings(self, clusters: Clusters) -> tuple[Array, Array]:
        """The chain and the scale of each draw: those that share both share neighbours."""
        n, reach = len(clusters.index), self.prior.reach
        chains = np.zeros(n, dtype=np.int64) if self.chains is None else self.chains[clusters.index]
        if "scale" in clusters.hyper:
            return chains, clusters.hyper["scale"]
        return chains, np.full(n, 0.0 if reach is None else reach.decay.known_scale)

    # -- what is asked --------------------------------------------------------------------------

    def place(self, states: Any) -> tuple[Array, Array]:
        """Query states, and the node that each of them is (-1: none)."""
        queries, nodes = as_states(states), self.problem.states
        if queries.shape[1:] != nodes.shape[1:]:
            raise ValueError(
                f"states must be like the nodes' states, {_kind(nodes)}, got {_kind(queries)}; "
                "a single state needs brackets of its own: [state]"
            )
        if len(queries) == 0:
            return queries, np.empty(0, dtype=np.int64)
        n_states = getattr(self.problem.dynamics, "n_states", None)
        if queries.ndim == 1 and n_states is not None and queries.max() >= n_states:
            at = int(np.argmax(queries >= n_states))
            raise ValueError(
                f"states[{at}] is {queries[at]}; the world has {n_states} states, 0 to "
                f"{n_states - 1}"
            )
        index = distinct_states(np.concatenate([nodes, queries]))[1][len(nodes) :]
        return queries, np.where(index < len(nodes), index, -1)

    def rule(self, extrapolate: Strategy | None = None, n_neighbors: int | None = None) -> Rule:
        """How policies are continued to states that are no nodes; None: as the prior says."""
        strategy = check_strategy(self.prior, extrapolate)
        reach = self.prior.reach
        if n_neighbors is None:
            n_neighbors = None if reach is None else reach.n_neighbors
        elif reach is None:
            raise ValueError(f"n_neighbors means nothing to {type(self.prior).__name__}")
        else:
            n_neighbors = positive_integer("n_neighbors", n_neighbors)
        return Rule(strategy, n_neighbors)

    # -- draws, block by block ------------------------------------------------------------------

    def blocks(self) -> Iterator[Clusters]:
        """All draws, as many at a time as memory should hold."""
        if self._kept:
            yield from self._kept
            return
        rows = self._rows(self.draws.labels)
        cost = np.maximum(rows * self.problem.n_behaviours, self.problem.n_nodes)
        block = np.cumsum(cost) // _ENTRIES
        kept, keep = [], self.keep_counts or block[0] == block[-1]
        for number in np.unique(block):
            chosen = np.flatnonzero(block == number)
            clusters = self._count(chosen, rows[chosen])
            if keep:
                kept.append(clusters)
            yield clusters
        self._kept = kept

    @staticmethod
    def _rows(labels: Array) -> Array:
        """Clusters of each draw, a new one included."""
        return labels.max(axis=1).astype(np.int64) + 2

    @cached_property
    def starts(self) -> Array | None:
        """``(B, M)``: the node where each transition starts in each draw, where not all are known.

        Unseen positions in real space are nodes of their own, so there the starts are known.
        """
        incomplete, imputed = self.problem.incomplete, self.draws.imputed
        if imputed is None or incomplete is None or imputed.ndim > 2:
            return None
        path = np.tile(incomplete.observed.astype(imputed.dtype), (len(imputed), 1))
        path[:, incomplete.hidden] = imputed
        return path[:, incomplete.starts]

    def _count(self, chosen: Array, rows: Array) -> Clusters:
        first = np.concatenate([[0], np.cumsum(rows)])
        counts = np.zeros((first[-1], self.problem.n_behaviours), dtype=np.int32)
        size = np.zeros(first[-1], dtype=np.int64)
        labels = self.draws.labels[chosen].astype(np.int32)
        actions = self.draws.behaviours[chosen].astype(np.int32)
        node_of = np.array(self.problem.node_of)  # kernels are compiled for writable arrays
        if self.starts is None:
            kernels.count_clusters(labels, actions, node_of, first, counts, size)
        else:
            for b, draw in enumerate(chosen):
                one = slice(b, b + 1)
                node_of = self.starts[draw].astype(np.int64)
                kernels.count_clusters(
                    labels[one], actions[one], node_of, first[b : b + 2], counts, size
                )
        hyper = {name: values[chosen] for name, values in self.draws.hyper.items()}
        return Clusters(
            chosen,
            labels,
            first,
            counts,
            size,
            self._count_regions(chosen, labels, first),
            self._shares(chosen),
            hyper,
        )

    def _shares(self, chosen: Array) -> Array:
        """The base measure of some draws, times the number of behaviours."""
        kinds, problem = self.draws.kinds, self.problem
        if kinds is not None:
            sizes = np.bincount(problem.kind_of)
            return np.asarray(problem.n_behaviours * (kinds[chosen] / sizes)[:, problem.kind_of])
        base = problem.base_measure()
        share = np.ones(problem.n_behaviours) if base is None else base.share[base.kind]
        return np.tile(share, (len(chosen), 1))

    def _count_regions(self, chosen: Array, labels: Array, first: Array) -> Array:
        """``m_k``: regions of every cluster; 0 where draws have none."""
        regions = self.draws.regions
        if regions is None:
            return np.zeros(first[-1], dtype=np.int64)
        regions = regions[chosen]
        largest = np.maximum.accumulate(regions, axis=1)
        new = np.ones(regions.shape, dtype=bool)  # regions are numbered by first appearance
        new[:, 1:] = regions[:, 1:] > largest[:, :-1]
        return np.bincount((first[:-1, None] + labels)[new], minlength=first[-1])

    def _placed(
        self, clusters: Clusters, states: Array, rule: Rule
    ) -> Iterator[tuple[Clusters, Neighbours, Weights]]:
        """Neighbours of `states` and weights of clusters, for draws that share a length scale."""
        reach = self.prior.reach
        if reach is None:
            yield clusters, no_neighbours(len(states)), self._weights(clusters, rule)
            return
        chains, scales = self.sightings(clusters)
        for chain, scale in sorted({*zip(chains.tolist(), scales.tolist(), strict=True)})[::-1]:
            # from wide to narrow: what the widest reaches serves all
            same = np.flatnonzero((scales == scale) & (chains == chain))
            group = clusters if len(same) == len(scales) else clusters.take(same)
            found = (replace(reach.decay, scale=scale), rule.n_neighbors, reach.tolerance)
            kept = self._found  # one look: another thread may replace it
            if kept[0] is not states or kept[1] != (chain, *found):
                near = self.search(chain).find(states, *found)
                kept = self._found = (states, (chain, *found), near)
            yield group, kept[2], self._weights(group, rule)

    def _weights(self, clusters: Clusters, rule: Rule) -> Weights:
        drawn = Drawn(
            clusters.first,
            clusters.size,
            clusters.n_regions,
            partial(self.hyper_of, clusters),
            rule.n_neighbors,
        )
        return self.prior.weights(drawn, rule.strategy)

    def hyper_of(self, clusters: Clusters, name: str) -> Array:
        """Draws of a hyper-parameter, or what it is fixed to."""
        if name in clusters.hyper:
            return clusters.hyper[name]
        return np.full(len(clusters.index), float(self.prior.hyper()[name]))  # type: ignore[arg-type]

    # -- mean -----------------------------------------------------------------------------------

    @cached_property
    def shrinkage(self) -> float | None:
        """κ of the prior's continuation; None where a node has its controller's policy.

        So it also is where draws differ in which transitions start at a node.
        """
        reach = self.prior.reach
        return None if reach is None or self.starts is not None else reach.continuation.shrinkage

    def _add_nodes(self, clusters: Clusters, out: Array) -> None:
        """Sum the nodes' policies over some draws into `out` ``(N, B)``."""
        if self.shrinkage is None:
            kernels.add_policies(clusters.labels, clusters.first, clusters.policy, out)
            return
        chains = self.sightings(clusters)[0]
        for chain in np.unique(chains):
            some = clusters.take(np.flatnonzero(chains == chain))
            each, visits = np.zeros(out.shape), self._visits(some)
            draws = (some.labels, some.first, some.policy)
            kernels.add_own_policies(*draws, visits, self.shrinkage, each)
            out += each if self.chains is None else each[self.standing(chain)]

    def standing(self, chain: int) -> Array:
        """``(N,)``: the node that stands for each in a chain; itself, if there are no landmarks."""
        if self.chains is None:
            return np.arange(self.problem.n_nodes)
        owners = self.problem.for_chain(chain, self.prior.geometry).owners
        assert owners is not None
        return np.asarray(owners.nodes[owners.owner])

    def own_counts(self, clusters: Clusters) -> Any:
        """``(N, B)``, sparse: ``φ`` of every node that stands for itself, in a single draw."""
        from scipy.sparse import csr_array

        visits = self._visits(clusters)
        done = visits.behaviours[0, visits.transition]
        shape = (self.problem.n_nodes, self.problem.n_behaviours)
        counts = csr_array((np.ones(len(done)), done, visits.indptr.copy()), shape=shape)
        counts.sum_duplicates()
        return counts

    def _visits(self, clusters: Clusters) -> Visits:
        """The transitions at each node, for draws of one chain."""
        chain = int(self.sightings(clusters)[0][0])
        if chain not in self._visited:
            start = self.standing(chain)[self.problem.node_of]
            counts = np.bincount(start, minlength=self.problem.n_nodes)
            indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            self._visited[chain] = indptr, np.argsort(start, kind="stable").astype(np.int64)
        behaviours = self.draws.behaviours[clusters.index].astype(np.int32)
        return Visits(*self._visited[chain], behaviours)

    @cached_property
    def at_nodes(self) -> Array:
        """``(N, B)``: the posterior mean behaviours at the nodes."""
        total = np.zeros((self.problem.n_nodes, self.problem.n_behaviours))
        for clusters in self.blocks():
            self._add_nodes(clusters, total)
        return read_only(total / len(self.draws))

    def mean(self, states: Array, node: Array, rule: Rule) -> Array:
        """``(n, A)``: the posterior mean policy at `states`, as `place` gives them."""
        return self.problem.to_actions(states, self.behaviours(states, node, rule))

    def behaviours(self, states: Array, node: Array, rule: Rule) -> Array:
        """``(n, B)``: the same over behaviours."""
        mean = np.empty((len(states), self.problem.n_behaviours))
        known = node >= 0
        mean[known] = self.at_nodes[node[known]]
        if not known.all():
            mean[~known] = self._elsewhere(states[~known], rule)
        return mean

    def _elsewhere(self, states: Array, rule: Rule) -> Array:
        out = np.zeros((len(states), self.problem.n_behaviours))
        if self.prior.reach is None and len(states) > 1:  # all such states are alike
            out[:] = self._elsewhere(states[:1], rule)
            return out
        for part in self._parts(len(states)):
            for clusters in self.blocks():
                for group, near, weights in self._placed(clusters, states[part], rule):
                    self._add(group, near, weights, rule.strategy, out[part])
        return out / len(self.draws)

    def each(
        self,
        states: Any,
        draws: Array,
        *,
        extrapolate: Strategy | None = None,
        n_neighbors: int | None = None,
    ) -> Iterator[Array]:
        """The policy at `states` by each one of `draws`, ``(n, A)``."""
        rule = self.rule(extrapolate, n_neighbors)
        states, node = self.place(states)
        known = node >= 0
        others = states[~known]
        rows = self._rows(self.draws.labels[draws])
        for draw, n_rows in zip(draws, rows, strict=True):
            clusters = self._count(np.array([draw]), np.array([n_rows]))
            policy = np.zeros((len(states), self.problem.n_behaviours))
            if self.shrinkage is None:
                policy[known] = clusters.policy[clusters.labels[0, node[known]]]
            elif known.any():
                nodes = np.zeros((self.problem.n_nodes, self.problem.n_behaviours))
                self._add_nodes(clusters, nodes)
                policy[known] = nodes[node[known]]
            if len(others):
                part = np.zeros((len(others), self.problem.n_behaviours))
                for group, near, weights in self._placed(clusters, others, rule):
                    self._add(group, near, weights, rule.strategy, part)
                policy[~known] = part
            yield self.problem.to_actions(states, policy)

    def _add(
        self, group: Clusters, near: Neighbours, weights: Weights, strategy: Strategy, out: Array
    ) -> None:
        draws = (group.labels, group.first)
        if strategy == "map":
            chosen = np.empty((len(group.labels), len(out)), dtype=np.int32)
            kernels.likely_clusters(*draws, near, weights, chosen)
            kernels.add_policies(chosen, group.first, group.policy, out)
        elif strategy == "average":
            kappa = self.shrinkage
            if kappa is None:
                kernels.add_mixtures(*draws, group.policy, near, weights, out)
            else:
                own = (self._visits(group), kappa)
                kernels.add_own_mixtures(*draws, group.policy, near, weights, *own, out)
        else:  # the weights are the same in every draw, so each node may be averaged first
            nodes = np.zeros((self.problem.n_nodes, self.problem.n_behaviours))
            self._add_nodes(group, nodes)
            out += smooth(near, nodes)

    # -- clusters and spread ---------------------------------------------------------------------

    def quantiles(
        self,
        states: Array,
        node: Array,
        rule: Rule,
        levels: tuple[float, float],
        of: Literal["actions", "behaviours"] = "actions",
    ) -> tuple[Array, Array]:
        """Quantiles of the policy at `states`, whose nodes are `node` (-1: none), ``(n, A)`` each.

        A draw stands for ``θ ~ Dir(ξ_z + α)``, not for its mean: the uncertainty that is left
        when the counts are known belongs to it. Where clusters are mixed, ``z`` is drawn too.
        """
        repeats = -(-_MIN_VALUES // len(self.draws))
        n_values = repeats * len(self.draws)
        problem = self.problem
        width = problem.n_actions if of == "actions" else problem.n_behaviours
        low = np.empty((len(states), width))
        high = np.empty_like(low)
        parts = list(self._parts(len(states), n_values * width))
        size = repeats * int(self._rows(self.draws.labels).sum()) * problem.n_behaviours
        few = size <= _THETAS
        held: dict[int, list[Array]] = {}
        for part in parts:
            values = np.empty((n_values, part.stop - part.start, width))
            for number, clusters in enumerate(self.blocks()):
                # two streams: controllers do not depend on which states are asked for
                for_rows = np.random.default_rng([self.seed, number, 1])
                drawn: Iterable[Array] = held.get(number) or self._thetas(clusters, number, repeats)
                if few and number not in held:  # together: policies are worked out once for all
                    drawn = held[number] = [np.concatenate(list(drawn))]
                place = 0
                for thetas in drawn:
                    times = len(thetas) // len(clusters.policy)
                    rows = [
                        self.draw_rows(clusters, states[part], node[part], rule, for_rows)
                        + repeat * len(clusters.policy)
                        for repeat in range(times)
                    ]
                    chosen = np.concatenate(rows)
                    first = np.arange(place, place + times)[:, None] * len(self.draws)
                    values[(first + clusters.index).ravel()] = (
                        problem.chosen_actions(states[part], thetas, chosen)
                        if of == "actions"
                        else thetas[chosen]
                    )
                    place += times
            low[part], high[part] = np.quantile(values, levels, axis=0, overwrite_input=True)
        return low, high

    def _thetas(self, clusters: Clusters, number: int, repeats: int) -> Iterator[Array]:
        """Controllers of a block, drawn some times over."""
        rng = np.random.default_rng([self.seed, number, 0])
        for _ in range(repeats):
            yield clusters.thetas(rng)

    def clusters_at(self, states: Array, node: Array, rule: Rule) -> Array:
        """``(B, n)``: the cluster of each state in each draw; beyond the last one: a new one."""
        out = np.empty((len(self.draws), len(states)), dtype=np.int32)
        for part in self._parts(len(states)):
            for number, clusters in enumerate(self.blocks()):
                rng = np.random.default_rng([self.seed, number, 1])
                rows = self.draw_rows(clusters, states[part], node[part], rule, rng)
                out[clusters.index, part] = rows - clusters.first[:-1, None]
        return out

    def draw_rows(
        self, clusters: Clusters, states: Array, node: Array, rule: Rule, rng: np.random.Generator
    ) -> Array:
        """``(B, n)``: the row of a cluster of each state in each draw: likeliest, or drawn."""
        chosen = np.empty((len(clusters.index), len(states)), dtype=np.int32)
        other = node < 0
        chosen[:, ~other] = clusters.labels[:, node[~other]]
        if other.any():
            for group, near, weights in self._placed(clusters, states[other], rule):
                draws = (group.labels, group.first)
                picked = np.empty((len(group.labels), len(near.nearest)), dtype=np.int32)
                if rule.strategy == "map":
                    kernels.likely_clusters(*draws, near, weights, picked)
                else:
                    uniforms = rng.random(picked.shape)
                    kernels.draw_clusters(*draws, near, weights, uniforms, picked)
                rows = np.searchsorted(clusters.index, group.index)
                chosen[np.ix_(rows, np.flatnonzero(other))] = picked
        return clusters.first[:-1, None] + chosen

    def draw_own_rows(
        self,
        clusters: Clusters,
        draw: Array,
        states: Array,
        node: Array,
        rule: Rule,
        uniforms: Array,
    ) -> Array:
        """``(n,)``: the row of a cluster of each state in a draw of its own.

        Where clusters are drawn, a state's `uniforms` decide: those who keep theirs keep their
        cluster for as long as its weight allows.
        """
        chosen = np.empty(len(states), dtype=np.int32)
        known = node >= 0
        chosen[known] = clusters.labels[draw[known], node[known]]
        reach, weights = self.prior.reach, self._weights(clusters, rule)
        chains, scales = (values[draw] for values in self.sightings(clusters))
        asked = zip(chains[~known].tolist(), scales[~known].tolist(), strict=True)
        for chain, scale in sorted({*asked}):
            mine = np.flatnonzero(~known & (scales == scale) & (chains == chain))
            near = no_neighbours(len(mine))
            if reach is not None:
                found = (replace(reach.decay, scale=scale), rule.n_neighbors, reach.tolerance)
                near = self.search(chain).find(states[mine], *found)
            picked = np.empty(len(mine), dtype=np.int32)
            kernels.draw_own_clusters(
                clusters.labels, clusters.first, near, weights, draw[mine], uniforms[mine],
                rule.strategy == "map", picked,
            )  # fmt: skip
            chosen[mine] = picked
        return clusters.first[draw] + chosen

    def _parts(self, n: int, cost: int = 0) -> Iterator[slice]:
        """Slices of `n` states that need no more numbers at a time than memory should hold."""
        return slices_of(n, max(cost, self.problem.n_nodes, len(self.draws)), _ENTRIES)


def _kind(states: Array) -> str:
    return "integers" if states.ndim == 1 else f"vectors of dimension {states.shape[1]}"


def _second_moment(counts: Array, alpha: Array) -> Array:
    """``E[θ_j²]`` for ``θ ~ Dir(ξ + α)``."""
    total = counts.sum(axis=1) + counts.shape[1] * alpha
    mean = (counts + alpha[:, None]) / total[:, None]
    return np.asarray(mean**2 + mean * (1 - mean) / (total + 1)[:, None])
