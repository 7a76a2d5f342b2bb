"""Chains that start at a given point, rather than at the prior's usual start."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlooker.checks import Array
from onlooker.gibbs.state import Point
from onlooker.partitions.indicator_samplers import FiniteIndicators
from onlooker.partitions.indicators import Slots
from onlooker.partitions.links.forest import make_forest
from onlooker.partitions.partition import PartitionSampler, Start, slot_arrays
from onlooker.problem.problem import Layout


def start_at(sampler: PartitionSampler, point: Point, rng: np.random.Generator) -> Start:
    """What `sampler` remembers of the partition of `point`, in the order of its layout."""
    layout = sampler.layout
    labels, arrays, hyper = sampler.start(rng)
    hyper = {name: point.hyper.get(name, value) for name, value in hyper.items()}
    if "forest.link" in arrays:
        assert point.links is not None
        forest, labels, slots = make_forest(_placed(point.links, layout))
        arrays |= {f"forest.{name}": value for name, value in forest._asdict().items()}
        arrays |= slot_arrays(slots)
    elif "slots" in arrays:
        labels = np.ascontiguousarray(point.labels[layout.nodes], dtype=np.int32)
        arrays |= slot_arrays(_slots(sampler, int(labels.max()) + 1, len(arrays["slots"])))
        if "weights" in arrays:
            sizes = np.bincount(labels, minlength=sampler.n_slots)
            finite: Any = sampler
            arrays["weights"] = finite._mixing(sizes, hyper["gamma"], rng)
    return labels, arrays, hyper


def _placed(links: Array, layout: Layout) -> Array:
    """Links between nodes as links between places."""
    place = np.empty(layout.n_nodes, dtype=np.int64)
    place[layout.nodes] = np.arange(layout.n_nodes)
    return place[links[layout.nodes]]


def _slots(sampler: PartitionSampler, n_used: int, n_slots: int) -> Slots:
    """All slots of a finite prior; of others those in use, and one more at least to be opened."""
    if isinstance(sampler, FiniteIndicators):
        n_used = n_slots
    else:
        n_slots = max(n_slots, n_used + 1)
    every = np.arange(n_slots)
    return Slots(every, every.copy(), np.array([n_used], dtype=np.int64))
