"""Checks that the public functions share; each message names the argument and the remedy."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


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


def read_only(array: Array) -> Array:
    """Return a view of `array` that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
