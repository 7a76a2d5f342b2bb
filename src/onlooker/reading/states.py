"""What a state and a trajectory of states may be, and how unseen states are marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker.checks import Array, Setting, SettingError, as_array, read_only

UNSEEN = -1
"""Marks an unseen state among integers; among floats NaN marks an unseen coordinate."""


def is_hidden(states: Array) -> Array:
    """``(n,)``: whether a state, or a coordinate of it, is marked as unseen."""
    return np.asarray(states == UNSEEN if states.ndim == 1 else np.isnan(states).any(axis=1))


def between_seen(states: Array, offsets: Array) -> Array:
    """``(n,)``: which states lie between the first and the last seen one of their trajectory.

    Unseen states after the last say nothing about the policy, and those before the first nothing
    without a model of where trajectories start. A trajectory with one seen state has no transition.
    """
    seen = states != UNSEEN if states.ndim == 1 else ~np.isnan(states).all(axis=1)
    lengths = np.diff(offsets)
    so_far = np.concatenate([[0], np.cumsum(seen)])
    before = np.repeat(so_far[offsets[:-1]], lengths)
    total = np.repeat(so_far[offsets[1:]], lengths) - before
    count = so_far[1:] - before
    return np.asarray((total >= 2) & (count >= 1) & (count - seen < total))


def as_positions(states: Array) -> Array:
    """Whole numbers as positions on a line, ``(n, 1)`` floats; positions as they are."""
    if states.ndim == 2:
        return states
    return np.where(states == UNSEEN, np.nan, states.astype(np.float64))[:, None]


def refuse_no_list(trajectories: Any) -> None:
    """Refuse what is no list of arrays, with the way to read it."""
    if isinstance(trajectories, Mapping) or hasattr(trajectories, "columns"):
        raise TypeError(
            f"trajectories must be a list of arrays, got {type(trajectories).__name__}; "
            "read a table by Demonstrations.from_dataframe, a mapping by its values"
        )
    if isinstance(trajectories, np.ndarray) and trajectories.dtype != object:
        raise TypeError(
            "trajectories must be a list of arrays, got one array; "
            "wrap a single trajectory in a list: Demonstrations([trajectory])"
        )
    if not isinstance(trajectories, Iterable):
        raise TypeError(f"trajectories must be a list of arrays, got {type(trajectories).__name__}")


@dataclass(frozen=True)
class _Kind:
    """What two trajectories must share."""

    discrete: bool
    n_dims: int

    def __str__(self) -> str:
        return "integer states" if self.discrete else f"real states of dimension {self.n_dims}"


def _kind(trajectory: Array) -> _Kind:
    return _Kind(trajectory.ndim == 1, 1 if trajectory.ndim == 1 else trajectory.shape[1])


def require_same_kind(arrays: list[Array]) -> None:
    """Refuse trajectories of several kinds of state."""
    first = _kind(arrays[0])
    for index, array in enumerate(arrays):
        if _kind(array) != first:
            raise ValueError(
                f"trajectory {index} has {_kind(array)}, but trajectory 0 has {first}; "
                "give all trajectories the same kind of state"
            )


def as_trajectory(index: int | str, item: Any, *, infer: bool = False) -> Array:
    """Return ``(T,)`` integers or ``(T, d)`` floats with at least two states.

    With `infer` any number of states, which may be marked as unseen.
    """
    array = as_array(f"trajectory {index}", item)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"trajectory {index} must hold integers or floats, got dtype {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(
            f"trajectory {index} must be (T,) or (T, d), got shape {array.shape}; "
            "wrap a single trajectory in a list: Demonstrations([trajectory])"
        )
    if len(array) < 2 and not infer:
        raise ValueError(
            f"trajectory {index} has {len(array)} state(s); a transition needs two: leave it out"
        )
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError(f"trajectory {index} has states without any dimension")
    read = as_integer_states if array.ndim == 1 and array.dtype.kind in "iu" else as_real_states
    states = read(f"trajectory {index}", array, unseen_ok=True)
    hidden = is_hidden(states)
    if hidden.any() and not infer:
        where = int(np.argmax(hidden))
        raise SettingError(
            f"trajectory {index} holds {states[where].tolist()} at index {where}: leave the state "
            "out (splitting its trajectory there), or have it inferred as an unseen one by ",
            Setting("missing", ("infer",)),
        )
    return states


def as_integer_states(name: str, array: Array, *, unseen_ok: bool = False) -> Array:
    """Return 64-bit integers, refused where negative (`unseen_ok`: unless marked as unseen)."""
    least = UNSEEN if unseen_ok else 0
    if array.min(initial=0) < least:
        where = int(np.argmax(array < least))
        raise ValueError(
            f"{name} holds the negative state {array[where]} at index {where}; "
            "integer states count from 0"
        )
    if array.max(initial=0) > np.iinfo(np.int64).max:
        where = int(np.argmax(array > np.iinfo(np.int64).max))
        raise ValueError(
            f"{name} holds {array[where]} at index {where}, beyond 64-bit integers; "
            "number the states from 0"
        )
    return array.astype(np.int64)


def as_real_states(name: str, array: Array, *, unseen_ok: bool = False) -> Array:
    """Return ``(n, d)`` floats, refused where not finite (`unseen_ok`: where infinite)."""
    array = array.astype(np.float64)
    if array.ndim == 1:
        array = array[:, None]
    bad = (np.isinf(array) if unseen_ok else ~np.isfinite(array)).any(axis=1)
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(
            f"{name} holds {array[where].tolist()} at index {where}; states are finite numbers: "
            "leave it out"
        )
    return array + 0.0  # -0.0 and 0.0 are one state


def as_states(states: Any, name: str = "states") -> Array:
    """Return query states as ``(n,)`` integers or ``(n, d)`` floats."""
    array = as_array(name, states)
    if array.dtype.kind not in "iuf" or array.ndim not in (1, 2) or 0 in array.shape[1:]:
        raise TypeError(
            f"{name} must be (n,) integers or (n, d) floats, "
            f"got dtype {array.dtype} and shape {array.shape}"
        )
    if array.ndim == 1 and array.dtype.kind in "iu":
        return as_integer_states(name, array)
    return as_real_states(name, array)


def distinct_states(states: Array) -> tuple[Array, Array]:
    """The distinct rows of `states` in order of first appearance, and each row's index there."""
    if states.ndim == 1:
        order = np.argsort(states, kind="stable")
        ordered = states[order]
        new = np.r_[True, ordered[1:] != ordered[:-1]]
    else:
        order = np.lexsort(states.T[::-1])
        ordered = states[order]
        new = np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)]
    group = np.cumsum(new) - 1
    first = order[new]  # both sorts are stable: the first of a group was seen first
    rank = np.empty(len(first), dtype=np.int64)
    by_appearance = np.argsort(first)
    rank[by_appearance] = np.arange(len(first))
    inverse = np.empty(len(states), dtype=np.int64)
    inverse[order] = rank[group]
    return states[first[by_appearance]], inverse


def as_names(names: Any, count: int) -> Array:
    """Return one name a trajectory, as text."""
    array = as_array("names", list(names)).astype(np.str_)
    if array.shape != (count,):
        raise ValueError(f"names must be one a trajectory, {count}; got shape {array.shape}")
    return read_only(array)


def as_times(times: Iterable[Any], lengths: Array) -> Array:
    """Return the times of all trajectories, one after the other."""
    arrays = [as_array(f"times[{index}]", item) for index, item in enumerate(times)]
    if len(arrays) != len(lengths):
        raise ValueError(f"{len(arrays)} arrays of times for {len(lengths)} trajectories")
    for index, (array, length) in enumerate(zip(arrays, lengths, strict=True)):
        if array.shape != (length,) or array.dtype.kind not in "iufmM":
            raise ValueError(
                f"times[{index}] must be {length} numbers or NumPy dates, one a state, "
                f"got dtype {array.dtype} and shape {array.shape}"
            )
    return read_only(np.concatenate(arrays))
