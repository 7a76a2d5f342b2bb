"""The distance-dependent Chinese restaurant process, bound to a problem."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.arrays import smallest_int
from onlooker.gibbs.slices import (
    metropolis_from_prior,
    scattered_start_of,
    slice_sample_log,
)
from onlooker.gibbs.state import State
from onlooker.gibbs.update import NO_INFO, Info, Update
from onlooker.hyper import Prior
from onlooker.partitions.base import Bound, Hyper, Start, require_slots
from onlooker.partitions.ddcrp.prior import MAX_REASSIGNED
from onlooker.partitions.links.arrays import Forest
from onlooker.partitions.links.forest import check_forest, make_forest
from onlooker.partitions.links.kernels import (
    Shortcuts,
    log_link_normaliser,
    update_links,
)
from onlooker.partitions.links.scales import log_links
from onlooker.partitions.links.similarities import InferredDecay, Similarities
from onlooker.partitions.links.starts import ALONE, NEAREST, scattered_links
from onlooker.partitions.links.summed import summed_pass
from onlooker.problem import Layout

_TRIES = 4  # of another scale, per sweep
_STRIDES = (1, 2, 4, 8)


def shortcuts_for(n_nodes: int) -> Shortcuts:
    """What pays at this size: in a large problem, far reads miss the processor's caches."""
    if n_nodes <= 10_000:
        return Shortcuts(max_exact=MAX_REASSIGNED, n_candidates=8, max_walk=256)
    return Shortcuts(max_exact=MAX_REASSIGNED, n_candidates=4, max_walk=32)


class BoundLinks(Bound[Forest]):
    """Links between nodes; clusters are the components of their graph.

    Parameters
    ----------
    layout
        Nodes and transitions.
    similarities
        By a known or an inferred decay.
    nu
        Weight of a self-link.
    start, self_link_step
        As in `DistanceDependent`.
    passes
        Passes per sweep in which parts of clusters change sides together with their actions.
    shortcuts
        Exact short cuts; None: what pays at the problem's size.
    """

    def __init__(
        self,
        layout: Layout,
        similarities: Similarities,
        nu: Hyper,
        *,
        start: Literal["scattered", "nearest", "self"] = "scattered",
        self_link_step: Literal["slice", "metropolis"] = "slice",
        passes: int = 0,
        shortcuts: Shortcuts | None = None,
    ) -> None:
        self.layout = layout
        self.similarities = similarities
        self.nu = nu
        self.scattered = start == "scattered"
        self._kind = {"nearest": NEAREST, "self": ALONE}.get(start)
        self.self_link_step = self_link_step
        self.passes = passes
        self.shortcuts = shortcuts or shortcuts_for(layout.n_nodes)

    def start(self, rng: np.random.Generator, chain: int) -> Start[Forest]:
        """Links of the chain's kind, or all chains' the same."""
        kind = chain if self._kind is None else self._kind
        elsewhere = rng if self.scattered and chain > 0 else None
        decay, graph = self.similarities.start(elsewhere)
        forest, labels, slots = make_forest(scattered_links(kind, graph, rng))
        return Start(labels, slots, forest, {"nu": self._start_nu(elsewhere), **decay})

    def _start_nu(self, elsewhere: np.random.Generator | None) -> float:
        """1 as in the paper, where the prior allows it, or drawn."""
        if elsewhere is not None:
            return scattered_start_of(self.nu, elsewhere)
        if not isinstance(self.nu, Prior):
            return float(self.nu)
        return 1.0 if np.isfinite(self.nu.logpdf(1.0)) else self.nu.mean

    def updates(self, collapsed: bool) -> list[Update[Forest]]:
        """Links, parts with their actions, ν, then the decay."""
        similarities = self.similarities
        updates: list[Update[Forest]] = [Links(similarities, self.shortcuts)]
        if self.passes:
            updates.append(SummedLinks(similarities, self.shortcuts, self.passes))
        if isinstance(self.nu, Prior):
            updates.append(SelfLink(similarities, self.nu, self.self_link_step))
        if isinstance(similarities, InferredDecay):
            if similarities.offset_prior is not None:
                updates.append(Offset(similarities, similarities.offset_prior))
            if similarities.scale_prior is not None:
                updates.append(Scale(similarities, similarities.scale_prior))
        return updates

    def log_prior(self, state: State[Forest]) -> float:
        """``ln p(c | ν, decay)``."""
        return self.similarities.log_prior(state)

    def kept(self, state: State[Forest]) -> dict[str, Array]:
        """The links, between the problem's nodes."""
        links = self.layout.nodes[state.partition.link]
        narrow = links.astype(smallest_int(self.layout.n_nodes))
        return {"links": self.layout.of_nodes(narrow)}

    def check(self, state: State[Forest]) -> None:
        """The link graph and its lists agree, and the clusters are its components."""
        require_slots(state, self.layout.n_nodes)
        check_forest(state.partition, state.labels, state.slots, state.counts.size)


class Links(Update[Forest]):
    """Every link given all the others, the controllers integrated out."""

    name = "links"

    def __init__(self, similarities: Similarities, shortcuts: Shortcuts) -> None:
        self.similarities = similarities
        self.shortcuts = shortcuts

    def __call__(self, state: State[Forest]) -> Info:
        """Draw every link."""
        graph, nu = self.similarities.at(state)
        moved = update_links(
            state.labels,
            state.partition,
            state.slots,
            state.counts,
            state.tables,
            graph,
            nu,
            self.shortcuts,
            state.rng,
        )
        return {"moved": moved / len(state.labels)}


class SummedLinks(Update[Forest]):
    """Parts of clusters change sides together with their actions, some times over."""

    name = "summed"

    def __init__(self, similarities: Similarities, shortcuts: Shortcuts, passes: int) -> None:
        self.similarities = similarities
        self.shortcuts = shortcuts
        self.passes = passes

    def __call__(self, state: State[Forest]) -> Info:
        """Draw links between the components there are, and all actions."""
        done = 0
        for _ in range(self.passes):
            done += summed_pass(
                state.labels,
                state.actions,
                state.partition,
                state.slots,
                state.counts,
                state.tables,
                state.data,
                self.similarities.at(state)[0],
                self.shortcuts,
                state.rng,
            )
        return {"done": done / self.passes}


class SelfLink(Update[Forest]):
    """``p(ν | c) ∝ p(ν) ν^(self-links) / Π_i (ν + Σ_{j≠i} f(d_ij))``."""

    name = "nu"

    def __init__(
        self, similarities: Similarities, prior: Prior, step: Literal["slice", "metropolis"]
    ) -> None:
        self.similarities = similarities
        self.prior = prior
        self.step = step

    def __call__(self, state: State[Forest]) -> Info:
        """Draw ν."""
        links, value, rng = state.partition.link, state.hyper["nu"], state.rng
        n_self = int(np.count_nonzero(links == np.arange(len(links))))
        row_sums = self.similarities.row_sums(state)

        def log_likelihood(nu: float) -> float:
            return float(n_self * np.log(nu) - log_link_normaliser(nu, row_sums))

        if self.step == "metropolis":
            state.hyper["nu"] = metropolis_from_prior(log_likelihood, value, self.prior, rng)
            return {"accepted": float(state.hyper["nu"] != value)}
        state.hyper["nu"] = slice_sample_log(
            lambda nu: log_likelihood(nu) + self.prior.logpdf(nu), value, rng
        )
        return NO_INFO


class Offset(Update[Forest]):
    """The similarity that is left at any distance, by slice sampling."""

    name = "offset"

    def __init__(self, similarities: InferredDecay, prior: Prior) -> None:
        self.similarities = similarities
        self.prior = prior

    def __call__(self, state: State[Forest]) -> Info:
        """Draw ε."""
        local, nu = self.similarities.local(state), state.hyper["nu"]
        near = self.similarities.near(state, local)

        def log_density(offset: float) -> float:
            if offset >= 1:
                return -math.inf
            fit = log_links(nu, offset, near, local.sums, local.n_far)
            return float(fit + self.prior.logpdf(offset))

        state.hyper["offset"] = slice_sample_log(log_density, state.hyper["offset"], state.rng)
        return NO_INFO


class Scale(Update[Forest]):
    """A few Metropolis steps on the grid of scales, where ``p(k) ∝ p(σ) σ``."""

    name = "scale"

    def __init__(self, similarities: InferredDecay, prior: Prior) -> None:
        self.similarities = similarities
        self.prior = prior

    def __call__(self, state: State[Forest]) -> Info:
        """Draw the scale."""
        rng, scales, accepted = state.rng, self.similarities.scales, 0

        def log_density(index: int) -> float:
            scale = scales.scale(index)
            log_prior = self.prior.logpdf(scale)
            if not log_prior > -math.inf:
                return -math.inf
            fit = self.similarities.log_prior_by(state, scales.local(index))
            return fit + log_prior + math.log(scale)

        index = scales.index(state.hyper["scale"])
        density = log_density(index)
        for _ in range(_TRIES):
            stride = _STRIDES[int(rng.random() * len(_STRIDES))]
            other = index + (stride if rng.random() < 0.5 else -stride)
            candidate = log_density(other)
            if math.log1p(-rng.random()) < candidate - density:
                index, density = other, candidate
                accepted += 1
        state.hyper["scale"] = scales.scale(index)
        return {"accepted": accepted / _TRIES}
