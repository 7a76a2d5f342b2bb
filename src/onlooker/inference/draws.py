"""What is kept of a chain: its draws, in the narrowest integers that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numba import njit

from onlooker.checks import Array
from onlooker.inference.chain import Chain


def narrow(n: int) -> np.dtype[Any]:
    """The narrowest signed integers that hold ``0 … n - 1``."""
    for kind in (np.int8, np.int16, np.int32):
        if n - 1 <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)


@njit(cache=True, nogil=True)
def relabel(labels: Array, name: Array) -> Array:
    """Number clusters by first appearance; `name` is work space, one a slot."""
    out = np.empty(len(labels), dtype=np.int32)
    name[:] = -1
    n_seen = 0
    for i in range(len(labels)):
        k = labels[i]
        if name[k] < 0:
            name[k] = n_seen
            n_seen += 1
        out[i] = name[k]
    return out


@dataclass
class Draws:
    """Draws of one chain.

    Clusters are numbered by first appearance in each draw: slots are names, and numbers that small
    fit narrow integers.
    """

    labels: Array
    """``(draw, N)``."""
    actions: Array
    """``(draw, M)``, in the order of the problem's transitions."""
    log_joint: Array
    """``(draw,)``."""
    hyper: dict[str, Array]
    """``(draw,)`` each."""
    links: Array | None = None
    """``(draw, N)``: the ddCRP's."""
    imputed: Array | None = None
    """``(draw, H)`` or ``(draw, H, d)``: states that were not seen."""

    def __len__(self) -> int:
        return len(self.log_joint)

    @classmethod
    def empty(cls, n_draws: int, chain: Chain) -> Self:
        """Room for `n_draws` draws of `chain`."""
        problem = chain.problem
        nodes = narrow(problem.n_nodes)
        has_links = "forest.link" in chain.state.arrays
        unseen = chain.imputed
        if unseen is not None and unseen.ndim == 1:
            unseen = unseen.astype(nodes)
        return cls(
            np.empty((n_draws, problem.n_nodes), dtype=nodes),
            np.empty((n_draws, problem.n_transitions), dtype=narrow(problem.n_actions)),
            np.empty(n_draws),
            {name: np.empty(n_draws) for name in _hyper(chain)},
            np.empty((n_draws, problem.n_nodes), dtype=nodes) if has_links else None,
            None if unseen is None else np.empty((n_draws, *unseen.shape), dtype=unseen.dtype),
        )

    def put(self, index: int, chain: Chain) -> None:
        """Keep where `chain` is now as draw number `index`."""
        state = chain.state
        name = np.empty(len(state.counts.size), dtype=np.int32)
        self.labels[index] = relabel(chain.labels, name)
        self.actions[index] = chain.actions
        self.log_joint[index] = chain.log_joint()
        for key, value in _hyper(chain).items():
            self.hyper[key][index] = value
        if self.links is not None:
            self.links[index] = chain.links
        if self.imputed is not None:
            self.imputed[index] = chain.imputed

    def paste(self, index: int, block: Draws) -> None:
        """Keep the draws of `block` from number `index` on."""
        into = self.as_arrays()
        for name, values in block.as_arrays().items():
            into[name][index : index + len(block)] = values

    def __getitem__(self, index: slice) -> Draws:
        return Draws(
            self.labels[index],
            self.actions[index],
            self.log_joint[index],
            {name: values[index] for name, values in self.hyper.items()},
            None if self.links is None else self.links[index],
            None if self.imputed is None else self.imputed[index],
        )

    def as_arrays(self) -> dict[str, Array]:
        """Flat names, to be stored."""
        arrays = {"labels": self.labels, "actions": self.actions, "log_joint": self.log_joint}
        arrays |= {f"hyper.{name}": values for name, values in self.hyper.items()}
        if self.links is not None:
            arrays["links"] = self.links
        if self.imputed is not None:
            arrays["imputed"] = self.imputed
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Self:
        """Undo `as_arrays`."""
        hyper = {
            name.removeprefix("hyper."): values
            for name, values in arrays.items()
            if name.startswith("hyper.")
        }
        return cls(
            arrays["labels"],
            arrays["actions"],
            arrays["log_joint"],
            hyper,
            arrays.get("links"),
            arrays.get("imputed"),
        )


def join(parts: list[Draws], axis: str = "draw") -> Draws:
    """One after the other along the draws, or (``axis="chain"``) stacked as chains."""
    put = np.concatenate if axis == "draw" else np.stack
    every = [part.as_arrays() for part in parts]
    return Draws.from_arrays({name: put([arrays[name] for arrays in every]) for name in every[0]})


def _hyper(chain: Chain) -> dict[str, float]:
    """The hyper-parameters of a chain, the controllers' concentration included."""
    return chain.state.hyper
