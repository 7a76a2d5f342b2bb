"""Regions that share controllers, bound to a problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np

from onlooker.checks import Array, stored_array
from onlooker.gibbs.arrays import make_slots, smallest_int
from onlooker.gibbs.behaviours import behaviours_given, log_fits
from onlooker.gibbs.categorical import draw_log
from onlooker.gibbs.dirichlet import controllers_for
from onlooker.gibbs.slices import scattered_start_of, slice_sample_log, start_of
from onlooker.gibbs.state import State
from onlooker.gibbs.update import ACTIONS, NO_INFO, Info, Update
from onlooker.hyper import Prior
from onlooker.partitions.base import Bound, Hyper, Start
from onlooker.partitions.crp.bound import log_partition
from onlooker.partitions.links.forest import check_lists, list_in_links
from onlooker.partitions.links.kernels import log_link_normaliser
from onlooker.partitions.links.starts import scattered_links
from onlooker.partitions.regions.kernels import (
    Fit,
    Reached,
    find_regions,
    link_lengths,
    tidy,
    update_links,
    update_sharing,
)
from onlooker.partitions.regions.scales import STEP, Scales
from onlooker.partitions.regions.state import Sharing
from onlooker.problem import Layout

_WINDOW = 20  # points of the grid among which the scale is drawn at a time, at most
_NARROWEST = 4
_DEVIATIONS = 10  # of ln scale given the links, 1/(2√N): no window need be wider
_LONGEST = 10.0  # step of `carry` on the grid, before tuning
_FEW = 1_000  # nodes up to which: beyond, ∝ 1/√N, down to 1
_MAX_LONGEST = 60.0
_ALWAYS = 500  # nodes up to which each sweep has a carry: there, the scale is what mixes slowest
_OFTEN = 0.5  # share of sweeps with a carry beyond
_ACCEPTED = 0.35  # share of carries that tuning aims at
_SPARE = 6  # free controllers that `Summed` has, more or less
_FORGET = 0.1  # controllers that tuning takes away again in a sweep
_NO_FITS = np.zeros((0, 0))
_NONE = np.zeros(0, dtype=np.int64)
_NOWHERE = Reached(_NONE, np.zeros(0), _NONE, np.zeros(0, dtype=np.int32))
_MANY = 10_000  # nodes above which a wide start would have too many neighbours
_CONTROLLERS = (1, 20, 10, 1)  # that chains start with


class BoundRegions(Bound[Sharing]):
    """Links without offset make regions; a Chinese restaurant process over them shares controllers.

    Parameters
    ----------
    layout
        Nodes and transitions.
    scales
        Similarities, by a known or an inferred scale.
    nu, gamma
        Weight of a self-link, and of a new controller.
    """

    def __init__(self, layout: Layout, scales: Scales, nu: Hyper, gamma: Hyper) -> None:
        self.layout = layout
        self.scales = scales
        self.nu = nu
        self.gamma = gamma
        self.scattered = True

    def start(self, rng: np.random.Generator, chain: int) -> Start[Sharing]:
        """Scattered: each chain another start."""
        n, start = self.layout.n_nodes, start_of
        if chain > 0:
            start = partial(scattered_start_of, rng=rng)
        index = self._start_scale(start)
        links = scattered_links(chain, self.scales.apart(index), rng)
        link = links.astype(np.int32)
        siblings = np.full((n, 3), -1, dtype=np.int32)
        list_in_links(link, siblings)
        region, _, _, n_regions = _regions_of(link)
        drawn = rng.integers(min(_CONTROLLERS[chain % 4], n_regions), size=n_regions)
        controllers = np.unique(drawn, return_inverse=True)[1]
        used = int(controllers.max()) + 1
        n_slots = 2 * used + _SPARE
        sharing = Sharing(
            link,
            siblings,
            np.bincount(controllers, minlength=n_slots),
            np.array([max(_LONGEST * min(math.sqrt(_FEW / n), 1.0), 1.0), used + _SPARE]),
        )
        hyper = {
            "nu": start(self.nu),
            "gamma": start(self.gamma),
        }
        if self.scales.prior is not None:
            hyper["scale"] = self.scales.at(index).scale
        return Start(
            controllers[region].astype(np.int32), make_slots(n_slots, used), sharing, hyper
        )

    def _start_scale(self, start: Callable[[Hyper], float]) -> int:
        """Where on the grid a chain starts; many nodes start near each other's."""
        prior = self.scales.prior
        if prior is None:
            return 0
        scale = start(prior)
        if self.layout.n_nodes > _MANY:
            scale = min(scale, self.scales.anchor / 2)
        index = self.scales.index(scale)
        return index if self.scales.at(index).log_prior > -math.inf else 0

    def updates(self, collapsed: bool) -> list[Update[Sharing]]:
        """Links, scale and ν, sharing; the same with actions summed out, and scales carried; γ.

        Regions of many actions and mosaics of small ones turn into each other slowly, and that
        links and actions are drawn by turns is what counts: so actions come a second time.
        """
        reach = ScaleAndSelfLink(self)
        updates: list[Update[Sharing]] = [
            *(Links(self), reach, Controllers(), Carried(self, reach)),
            *(ACTIONS, Summed(self, reach)),
        ]
        if isinstance(self.gamma, Prior):
            updates.append(Gamma(self.gamma))
        return updates

    def index(self, state: State[Sharing]) -> int:
        """Where on the grid the state's scale lies."""
        return self.scales.index(state.hyper["scale"]) if self.scales.prior is not None else 0

    def log_prior(self, state: State[Sharing]) -> float:
        """``ln p(c | ν, σ) + ln p(k | γ)``."""
        index, nu = self.index(state), state.hyper["nu"]
        lengths, n_self = self.lengths(state)
        return float(
            n_self * math.log(nu)
            + self.scales.at(index).decay.log_g_sum(lengths)
            - log_link_normaliser(nu, self.scales.sums(index))
            + log_partition(state.hyper["gamma"], state.partition.n_regions)
        )

    def lengths(self, state: State[Sharing]) -> tuple[Array, int]:
        """How long the links to other nodes are, and how many are self-links."""
        link = state.partition.link
        lengths = np.empty(len(link))
        n_self = link_lengths(link, self.scales.distances(self.index(state)), lengths)
        return lengths[lengths >= 0.0], n_self

    def kept(self, state: State[Sharing]) -> dict[str, Array]:
        """The regions, numbered by first appearance."""
        n = self.layout.n_nodes
        region = self.layout.of_nodes(_regions_of(state.partition.link)[0])
        numbers = np.unique(region, return_index=True, return_inverse=True)
        rank = np.empty(len(numbers[1]), dtype=np.int64)
        rank[np.argsort(numbers[1])] = np.arange(len(rank))
        return {"regions": rank[numbers[2]].astype(smallest_int(n))}

    def check(self, state: State[Sharing]) -> None:
        """The lists of links and the counts of regions agree with the links and the labels."""
        link, siblings, n_regions, adapted = state.partition
        n, n_slots = self.layout.n_nodes, len(state.slots.order)
        stored_array("link", link, np.int32, (n,))
        check_lists(link, siblings)
        if (state.labels[link] != state.labels).any():
            raise ValueError("labels must be those that links lead to")
        _, members, first, _ = _regions_of(link)
        right = np.bincount(state.labels[members[first[:-1]]], minlength=n_slots)
        if n_regions.dtype != right.dtype or not np.array_equal(n_regions, right):
            raise ValueError("n_regions does not fit links and labels")
        if (state.slots.order != np.arange(n_slots)).any() or not right[: state.slots.n[0]].all():
            raise ValueError("slots in use must be the first ones")
        stored_array("adapted", adapted, np.float64, (2,), 1.0)
        if adapted[0] > _MAX_LONGEST or adapted[1] > n + _SPARE:
            raise ValueError(f"adapted must not be as large as {adapted}")


def _regions_of(link: Array) -> tuple[Array, Array, Array, int]:
    """The region of each node, members region after region, where each begins, how many."""
    n = len(link)
    region, members = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    first = np.empty(n + 1, dtype=np.int64)
    n_regions = find_regions(link, region, members, first)
    return region, members, first[: n_regions + 1], n_regions


def _fit(state: State[Sharing], fits: Array = _NO_FITS) -> Fit:
    return Fit(fits, state.data.first, state.actions)


def _settle(state: State[Sharing]) -> None:
    """Number the controllers in use from 0 on."""
    state.slots = make_slots(
        len(state.counts.size), tidy(state.labels, state.partition, state.counts)
    )


def _grow(state: State[Sharing]) -> None:
    state.grow()
    n_regions = np.zeros(len(state.counts.size), dtype=np.int64)
    n_regions[: len(state.partition.n_regions)] = state.partition.n_regions
    state.partition = state.partition._replace(n_regions=n_regions)


class Links(Update[Sharing]):
    """Every link with the controller of its branch, the controllers integrated out."""

    name = "links"

    def __init__(self, bound: BoundRegions) -> None:
        self.bound = bound

    def __call__(self, state: State[Sharing]) -> Info:
        """Draw every link."""
        near = self.bound.scales.graph(self.bound.index(state))
        node, out, hyper = 0, np.zeros(2), state.hyper
        while True:
            node = update_links(
                node,
                False,
                state.labels,
                state.partition,
                state.counts,
                state.tables,
                _fit(state),
                near,
                hyper["nu"],
                _NOWHERE,
                0.0,
                hyper["gamma"],
                0,
                out,
                state.rng,
            )
            if node == len(state.labels):
                break
            _grow(state)
        _settle(state)
        return {"moved": out[0] / node}


class Controllers(Update[Sharing]):
    """The controller of every whole region."""

    name = "sharing"

    def __call__(self, state: State[Sharing]) -> Info:
        """Draw which regions share a controller."""
        members, first = _regions_of(state.partition.link)[1:3]
        region = 0
        while True:
            region = update_sharing(
                region,
                state.labels,
                state.partition,
                state.counts,
                state.tables,
                _fit(state),
                members,
                first,
                state.hyper["gamma"],
                0,
                state.rng,
            )
            if region == len(first) - 1:
                break
            _grow(state)
        _settle(state)
        return NO_INFO


class ScaleAndSelfLink(Update[Sharing]):
    """Scale and ν given the links: along ``ν = κ Σ_i F_i(scale)``, then ν by itself."""

    name = "scale"

    def __init__(self, bound: BoundRegions) -> None:
        self.bound = bound
        self.nu_prior = bound.nu if isinstance(bound.nu, Prior) else None

    def __call__(self, state: State[Sharing]) -> Info:
        """Draw whichever is not known."""
        bound = self.bound
        lengths, n_self = bound.lengths(state)
        if bound.scales.prior is not None:
            self._draw_scale(state, lengths, n_self)
        if self.nu_prior is not None:
            prior, sums = self.nu_prior, bound.scales.sums(bound.index(state))
            state.hyper["nu"] = slice_sample_log(
                lambda nu: n_self * math.log(nu) - log_link_normaliser(nu, sums) + prior.logpdf(nu),
                state.hyper["nu"],
                state.rng,
            )
        return NO_INFO

    def _draw_scale(self, state: State[Sharing], lengths: Array, n_self: int) -> None:
        """Gibbs on a random window of the grid."""
        scales, nu, rng = self.bound.scales, state.hyper["nu"], state.rng
        now = self.bound.index(state)
        longest = lengths.max(initial=0.0)
        window = math.ceil(_DEVIATIONS / (2 * math.sqrt(len(state.labels)) * STEP))
        window = min(max(window, _NARROWEST), _WINDOW)
        low = now - int(rng.random() * window)
        found: list[tuple[float, float]] = []
        log_weights: list[float] = []
        for index in range(low, low + window):
            point = scales.at(index)
            if point.log_prior == -math.inf or longest > point.radius:
                continue
            other = self.along(nu, now, index)
            found.append((point.scale, other))
            log_weights.append(
                point.log_prior
                + self.log_prior_nu(other)
                + n_self * math.log(other)
                + point.decay.log_g_sum(lengths)
                - log_link_normaliser(other, scales.sums(index))
            )
        drawn = draw_log(np.array(log_weights), len(found), rng.random())
        state.hyper["scale"], state.hyper["nu"] = found[drawn]

    def along(self, nu: float, index: int, other: int) -> float:
        """ν at another scale, ``ν / Σ_i F_i`` as it is; a number stays."""
        if self.nu_prior is None:
            return nu
        scales = self.bound.scales
        return nu * scales.total(other) / scales.total(index)

    def log_prior_nu(self, nu: float) -> float:
        """``ln p(ν) ν``, ν being the Jacobian of that line; nothing for a number."""
        prior = self.nu_prior
        return 0.0 if prior is None else prior.logpdf(nu) + math.log(nu)


class Summed(Update[Sharing]):
    """Links and sharing with the actions summed out, then all actions.

    Controllers are drawn for this update alone, those in use and free ones up to a number that only
    tuning changes (Neal's Algorithm 8 with all free ones at once). Chains with more controllers in
    use than that leave it out.
    """

    name = "summed"
    no_carry: ClassVar[Info] = NO_INFO

    def __init__(self, bound: BoundRegions, reach: ScaleAndSelfLink) -> None:
        self.bound = bound
        self.reach = reach

    def __call__(self, state: State[Sharing]) -> Info:
        """Draw everything but γ and the concentration."""
        n_slots = int(state.partition.adapted[1])
        if state.n_used > n_slots:
            return {"done": 0.0, **self.no_carry}
        while len(state.counts.size) < n_slots:
            _grow(state)
        controllers = controllers_for(n_slots, state.counts.cluster, state.tables, state.rng)
        fit = _fit(state, log_fits(controllers, state.data))
        carry = self._carry(state, fit, n_slots)
        self._links(state, fit, n_slots, self.bound.index(state), state.hyper["nu"])
        self.reach(state)
        members, first = _regions_of(state.partition.link)[1:3]
        update_sharing(
            0,
            state.labels,
            state.partition,
            state.counts,
            state.tables,
            fit,
            members,
            first,
            state.hyper["gamma"],
            n_slots,
            state.rng,
        )
        behaviours_given(
            state.actions, state.labels, state.counts, state.data, controllers, state.rng
        )
        _settle(state)
        return {"done": 1.0, **carry}

    def _carry(self, state: State[Sharing], fit: Fit, n_slots: int) -> Info:
        """What comes before the links."""
        return self.no_carry

    def _links(
        self,
        state: State[Sharing],
        fit: Fit,
        n_slots: int,
        index: int,
        nu: float,
        before: Reached = _NOWHERE,
        backwards: bool = False,
    ) -> float:
        """Draw every link; returns the sum of the logarithms of the ratios of masses."""
        out = np.zeros(2)
        update_links(
            0,
            backwards,
            state.labels,
            state.partition,
            state.counts,
            state.tables,
            fit,
            self.bound.scales.graph(index),
            nu,
            before,
            state.hyper["nu"],
            state.hyper["gamma"],
            n_slots,
            out,
            state.rng,
        )
        return float(out[1])

    def adapt(self, state: State[Sharing], info: Info) -> None:
        """Room for new controllers: as many as there were lately, and some more."""
        adapted = state.partition.adapted
        adapted[1] = max(state.n_used + _SPARE, adapted[1] - _FORGET)


class Carried(Summed):
    """The same, after another scale was tried that all links are carried along to.

    With many nodes in half of the sweeps, by chance: there, scales move faster than all else.
    """

    name = "carried"
    no_carry: ClassVar[Info] = {"tried": 0.0, "accepted": 0.0}

    def _carry(self, state: State[Sharing], fit: Fit, n_slots: int) -> Info:
        often = 1.0 if self.bound.layout.n_nodes <= _ALWAYS else _OFTEN
        if self.bound.scales.prior is None or state.rng.random() >= often:
            return self.no_carry
        chance = self._try_scale(state, fit, n_slots)
        self.reach(state)
        return {"tried": 1.0, "accepted": chance}

    def _try_scale(self, state: State[Sharing], fit: Fit, n_slots: int) -> float:
        """Another scale, and all links with it, accepted or not; returns the chance it had.

        Node by node the scale changes and the link is drawn anew, so that only the masses survive
        in the ratio. In reverse, nodes come in the opposite order: either is as likely.
        """
        scales, rng = self.bound.scales, state.rng
        now, nu = self.bound.index(state), state.hyper["nu"]
        step = math.ceil(rng.random() * state.partition.adapted[0])
        other = now + (step if rng.random() < 0.5 else -step)
        backwards = rng.random() < 0.5
        point = scales.at(other)
        if point.log_prior == -math.inf:
            return 0.0
        nu_other = self.reach.along(nu, now, other)
        labels, size = state.labels.copy(), state.counts.size.copy()
        link, siblings, n_regions, adapted = state.partition
        kept = Sharing(link.copy(), siblings.copy(), n_regions.copy(), adapted)
        log_ratio = (
            self._links(state, fit, n_slots, other, nu_other, scales.graph(now), backwards)
            + log_link_normaliser(nu, scales.sums(now))
            - log_link_normaliser(nu_other, scales.sums(other))
            + point.log_prior
            - scales.at(now).log_prior
            + self.reach.log_prior_nu(nu_other)
            - self.reach.log_prior_nu(nu)
        )
        if math.log1p(-rng.random()) < log_ratio:
            state.hyper["scale"], state.hyper["nu"] = point.scale, nu_other
        else:
            state.labels, state.partition = labels, kept
            state.counts = state.counts._replace(size=size)
        return math.exp(min(log_ratio, 0.0))

    def adapt(self, state: State[Sharing], info: Info) -> None:
        """Steps of a length that a good third of them is accepted."""
        if info["tried"]:
            longest = state.partition.adapted[0] * math.exp(0.1 * (info["accepted"] - _ACCEPTED))
            state.partition.adapted[0] = min(max(longest, 1.0), _MAX_LONGEST)


class Gamma(Update[Sharing]):
    """γ given how many regions each controller has, by slice sampling."""

    name = "gamma"

    def __init__(self, prior: Prior) -> None:
        self.prior = prior

    def __call__(self, state: State[Sharing]) -> Info:
        """Draw γ."""
        n_regions, prior = state.partition.n_regions, self.prior
        state.hyper["gamma"] = slice_sample_log(
            lambda gamma: log_partition(gamma, n_regions) + prior.logpdf(gamma),
            state.hyper["gamma"],
            state.rng,
        )
        return NO_INFO
