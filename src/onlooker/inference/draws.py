"""What is kept of a chain: its draws, in the narrowest integers that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.files import within


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


@dataclass(frozen=True)
class Draws:
    """Draws by name: of one chain, ``(draw, ...)``, or of chains stacked, ``(chain, draw, ...)``.

    Clusters are numbered by first appearance in each draw: slots are names, and numbers that small
    fit narrow integers. Hyper-parameters are named ``hyper.NAME``, reports of updates
    ``info.UPDATE.NAME``; what else there is depends on
    the prior (``links``) and on the problem (``imputed``).
    """

    arrays: dict[str, Array]

    @property
    def labels(self) -> Array:
        """``(draw, N)``."""
        return self.arrays["labels"]

    @property
    def actions(self) -> Array:
        """``(draw, M)``, in the order of the problem's transitions."""
        return self.arrays["actions"]

    @property
    def behaviours(self) -> Array:
        """``(draw, M)``: likewise; the actions, if there is no repertoire."""
        return self.arrays["behaviours" if "behaviours" in self.arrays else "actions"]

    @property
    def kinds(self) -> Array | None:
        """``(draw, kind)``: the masses of the kinds of behaviours, where they are inferred."""
        return self.arrays.get("kinds")

    @property
    def log_joint(self) -> Array:
        """``(draw,)``."""
        return self.arrays["log_joint"]

    @property
    def hyper(self) -> dict[str, Array]:
        """``(draw,)`` each."""
        return within("hyper.", self.arrays)

    @property
    def links(self) -> Array | None:
        """``(draw, N)``: the ddCRP's."""
        return self.arrays.get("links")

    @property
    def regions(self) -> Array | None:
        """``(draw, N)``: numbered by first appearance, where clusters are made of regions."""
        return self.arrays.get("regions")

    @property
    def imputed(self) -> Array | None:
        """``(draw, H)`` or ``(draw, H, d)``: states that were not seen."""
        return self.arrays.get("imputed")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def info(self) -> dict[str, Array]:
        """``(draw,)`` each: what updates reported, as ``UPDATE.NAME``."""
        return within("info.", self.arrays)

    @classmethod
    def empty(cls, n_draws: int, draw: Mapping[str, Array]) -> Self:
        """Room for `n_draws` draws like this one."""
        return cls({name: np.empty((n_draws, *one.shape), one.dtype) for name, one in draw.items()})

    def put(self, index: int, draw: Mapping[str, Array]) -> None:
        """Keep a draw as number `index`."""
        assert draw.keys() == self.arrays.keys()
        for name, value in draw.items():
            self.arrays[name][index] = value

    def paste(self, index: int, block: Draws) -> None:
        """Keep the draws of `block` from number `index` on."""
        for name, values in block.arrays.items():
            self.arrays[name][index : index + len(block)] = values

    def __getitem__(self, index: Any) -> Draws:
        return Draws({name: values[index] for name, values in self.arrays.items()})

    def pooled(self) -> Draws:
        """The draws of stacked chains, one chain after the other."""
        return Draws(
            {name: values.reshape(-1, *values.shape[2:]) for name, values in self.arrays.items()}
        )

    def take(self, chains: Any = None, draws: Any = None) -> Draws:
        """Some chains and some draws of each, of stacked chains; slices or indices."""
        chains = slice(None) if chains is None else chains
        draws = slice(None) if draws is None else draws
        return Draws({name: values[chains][:, draws] for name, values in self.arrays.items()})


def join(parts: list[Draws], axis: str = "draw") -> Draws:
    """One after the other along the draws, or (``axis="chain"``) stacked as chains.

    What only some of them keep is left out.
    """
    put = np.concatenate if axis == "draw" else np.stack
    parts = [part for part in parts if len(part)] or parts[:1]  # an empty one may lack reports
    shared = [name for name in parts[0].arrays if all(name in part.arrays for part in parts)]
    return Draws({name: put([part.arrays[name] for part in parts]) for name in shared})
