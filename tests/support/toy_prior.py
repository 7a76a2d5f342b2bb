"""A prior of one's own, all of it in this file: two clusters, each node by the toss of a coin."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.arrays import make_slots
from onlooker.gibbs.slices import slice_sample_log, start_of
from onlooker.gibbs.update import Update
from onlooker.hyper import Beta, Prior, check_hyper
from onlooker.partitions.base import (
    Bound,
    Hyper,
    HyperText,
    PartitionPrior,
    Start,
    by_row,
    make_weights,
)
from onlooker.partitions.indicators import draw_indicators, make_conditional


class Coin(NamedTuple):
    """What a chain remembers: how often each node has changed sides."""

    changes: Array


@dataclass
class CoinToss(PartitionPrior[Coin]):
    """``p(z_i = 1) = w``, independently for every node; w may be inferred."""

    heads: Annotated[Hyper, check_hyper] = 0.5

    key: ClassVar[str] = "coin"
    state: ClassVar[type[Coin]] = Coin
    texts: ClassVar = {"w": HyperText("w", "bias of the coin", "the more heads")}

    def hyper(self):
        return {"w": self.heads}

    def bind(self, problem):
        return BoundToss(problem.layout, self.heads)

    def weights(self, drawn, strategy):
        # clusters are named by first appearance: by size it is told which of the two is which
        share = drawn.size / by_row(drawn, np.add.reduceat(drawn.size, drawn.first[:-1]))
        return make_weights(drawn, mass=share)


class BoundToss(Bound[Coin]):
    def __init__(self, layout, heads):
        self.layout, self.heads = layout, heads

    def start(self, rng, chain):
        n = self.layout.n_nodes
        labels = rng.integers(2, size=n).astype(np.int32)
        return Start(labels, make_slots(2, 2), Coin(np.zeros(n)), {"w": start_of(self.heads)})

    def updates(self, collapsed):
        inferred = isinstance(self.heads, Prior)
        return [Toss(), *([Bias(self.heads)] if inferred else [])]

    def log_prior(self, state):
        heads, w = int(state.labels.sum()), state.hyper["w"]
        return heads * np.log(w) + (len(state.labels) - heads) * np.log1p(-w)

    def kept(self, state):
        return {"changes": self.layout.of_nodes(state.partition.changes)}


class Toss(Update[Coin]):
    name = "toss"

    def __call__(self, state):
        before, w = state.labels.copy(), state.hyper["w"]
        moved = draw_indicators(state, make_conditional(log_weight=np.log([1 - w, w])))
        state.partition.changes[:] += state.labels != before
        return {"moved": moved}


class Bias(Update[Coin]):
    name = "w"

    def __init__(self, prior):
        self.prior = prior

    def __call__(self, state):
        heads, n = int(state.labels.sum()), len(state.labels)

        def log_density(w):
            if not 0 < w < 1:
                return -np.inf
            return heads * np.log(w) + (n - heads) * np.log1p(-w) + self.prior.logpdf(w)

        state.hyper["w"] = slice_sample_log(log_density, state.hyper["w"], state.rng)
        return {}


FAIR = Beta(2.0, 2.0)
