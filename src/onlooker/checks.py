"""Checks that the public functions share; each message names the argument and the remedy."""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class ChoiceError(ValueError):
    """A value that is not among the choices of its argument."""

    def __init__(self, argument: str, value: Any, choices: Collection[Any]) -> None:
        super().__init__(argument, value, choices)
        self.argument, self.value, self.choices = argument, value, tuple(choices)

    def __str__(self) -> str:
        listed = ", ".join(map(repr, self.choices))
        return f"{self.argument} must be one of {listed}; got {self.value!r}"


class Setting(NamedTuple):
    """An argument and values for it, as a message mentions them: ``missing='drop' or 'split'``."""

    argument: str
    values: tuple[Any, ...] = ()

    def __str__(self) -> str:
        if not self.values:
            return self.argument
        return f"{self.argument}={alternatives([repr(value) for value in self.values])}"


Wording = Callable[[Setting], str]
"""How a setting is written: `str` as in Python; the command line has its own."""


class Advice:
    """Errors and warnings made of text and of settings, which the command line words as options."""

    args: tuple[str | Setting, ...]

    def __str__(self) -> str:
        return self.worded(str)

    def worded(self, wording: Wording) -> str:
        """The message, each setting written by `wording`."""
        return "".join(part if isinstance(part, str) else wording(part) for part in self.args)


class SettingError(Advice, ValueError):
    """A refusal that names settings: ``SettingError("no time; choose ", Setting("time"))``."""


_OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # categories of Unicode that a terminal acts upon


def printable(text: str) -> str:
    """The text with control characters, but for new lines, as ``\\u001b``: terminals obey them."""
    return "".join(
        _escaped(char) if char != "\n" and category(char) in _OBEYED else char for char in text
    )


def _escaped(char: str) -> str:
    """As JSON and JavaScript escape it."""
    code = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[i : i + 4]}" for i in range(0, len(code), 4))


def prefixed(text: str, error: ValueError | TypeError) -> ValueError | TypeError:
    """The error with `text` before its message."""
    if isinstance(error, SettingError):
        return SettingError(text, *error.args)
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"{text}{error}")


def alternatives(items: list[str]) -> str:
    """``a, b or c``."""
    return " or ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def one_of(name: str, value: Any, choices: Collection[Any]) -> Any:
    """Return `value` if it is among `choices`."""
    if value not in choices:
        raise ChoiceError(name, value, choices)
    return value


def as_array(name: str, values: Any) -> Array:
    """Return `values` as an array; refuse what is ragged, and masks, which would be lost."""
    if np.ma.is_masked(values):
        where = tuple(int(i) for i in np.argwhere(np.ma.getmaskarray(values))[0])
        raise ValueError(
            f"{name} is masked at index {where}; fill it in, or split or shorten the data there"
        )
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is ragged; give all its rows one length ({error})") from error


def positive_number(name: str, value: Any, *, zero_ok: bool = False) -> float:
    """Return `value` as a finite float above zero (or at least zero)."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    number = float(value)
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero_ok):
        bound = "at least 0" if zero_ok else "above 0"
        raise ValueError(f"{name} must be finite and {bound}, got {value!r}")
    return number


def positive_integer(name: str, value: Any, *, minimum: int = 1) -> int:
    """Return `value` as an int that is at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def finite_array(name: str, values: Any, *, ndim: int) -> Array:
    """Return `values` as a float array of `ndim` dimensions without NaN or infinity."""
    array = as_array(name, values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}")
    array = array.astype(np.float64, copy=False)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} holds {array[where]} at index {where}; remove or impute missing values first"
        )
    return array


def as_policy(name: str, values: Any, shape: tuple[int, int]) -> Array:
    """Return `values` as floats of this shape, each row a distribution over the actions."""
    policy = finite_array(name, values, ndim=2)
    if policy.shape != shape:
        raise ValueError(f"{name} must be {shape}, one action per column, got {policy.shape}")
    totals = policy.sum(axis=1)
    bad = (policy < 0).any(axis=1) | (np.abs(totals - 1) > 1e-6)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{name}[{row}] sums to {totals[row]:.6g} with smallest entry {policy[row].min():.6g}; "
            "probabilities of actions are not negative and sum to 1: normalise it"
        )
    return policy


def stored_array(
    name: str,
    array: Array,
    kind: Any,
    shape: tuple[int, ...],
    low: float = -math.inf,
    high: float = math.inf,
) -> None:
    """Refuse an array of a file that is not of this kind and shape, or leaves ``[low, high)``.

    `kind` is a dtype, or what ``dtype.kind`` must be; floats must be finite.
    """
    fits = array.dtype.kind == kind if isinstance(kind, str) else array.dtype == kind
    if not fits or array.shape != shape:
        wanted = {"i": "integers", "f": "floats", "U": "text"}.get(kind, kind)
        raise ValueError(
            f"{name} must be {wanted} of shape {shape}, got {array.dtype} of shape {array.shape}"
        )
    if not array.size or array.dtype.kind == "U":
        return
    least, most = array.min(), array.max()  # NaN, if there is one
    if not (least >= low and most < high and np.isfinite(least)):
        raise ValueError(
            f"{name} holds values from {least} to {most}; they must be finite, at least {low} "
            f"and below {high}"
        )


def stored_offsets(name: str, offsets: Array, n: int) -> None:
    """Refuse what does not cut `n` states into trajectories of at least two."""
    stored_array(name, offsets, "i", (offsets.size,), 0, n + 1)
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != n or np.diff(offsets).min() < 2:
        raise ValueError(f"{name} must rise from 0 to {n}, by 2 or more each")


_UNKNOWN_MEMORY = 1 << 34  # bytes of a machine that does not say what it has
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@functools.cache
def machine_memory() -> int:
    """Bytes of memory that this machine has, or the container that it runs in."""
    known = []
    with contextlib.suppress(AttributeError, ValueError, OSError):
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in _LIMITS:
        with contextlib.suppress(ValueError, OSError):  # "max" is no limit
            known.append(int(Path(file).read_text(encoding="ascii")))
    return min(known, default=_UNKNOWN_MEMORY)


def require_memory(n_bytes: float, what: str, *remedy: str | Setting) -> None:
    """Refuse what would take more than half of the machine's memory, before it is asked for."""
    budget = machine_memory() / 2
    n_bytes = min(n_bytes, 10**300)  # the largest that is a float
    if n_bytes > budget:
        raise SettingError(
            f"{what} would take about {n_bytes / 1e9:,.1f} GB of memory, more than half of what "
            f"this machine has ({budget / 1e9:,.1f} GB); ",
            *remedy,
        )


def read_only(array: Array) -> Array:
    """Return a view of `array` that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def boolean(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def require_texts(name: str, value: Any) -> None:
    """Refuse what is no list of texts."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"{name} must be a list of names, got {value!r}")


def share(name: str, value: Any) -> None:
    """Refuse what is not a number between 0 and 1."""
    if positive_number(name, value) >= 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")
