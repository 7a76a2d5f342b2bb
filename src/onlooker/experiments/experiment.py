"""What an experiment is: a configuration, one Monte Carlo run, a figure, and what to expect."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from onlooker._version import __version__
from onlooker.checks import Array, positive_integer

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


@dataclass(frozen=True)
class Config:
    """What every experiment can be told."""

    runs: int = 100
    """Monte Carlo runs."""
    seed: int = 0
    """Entropy that the streams of all runs descend from."""

    def __post_init__(self) -> None:
        positive_integer("runs", self.runs)
        positive_integer("seed", self.seed, minimum=0)

    @classmethod
    def quick(cls) -> Self:
        """A size that takes a minute or less: a taste, not a result."""
        return cls(runs=2)

    def sequence(self, run: int, *key: int) -> np.random.SeedSequence:
        """The seed of a run, or of the part `key` of it: the same wherever and whenever."""
        return np.random.SeedSequence(self.seed, spawn_key=(run, *key))

    def stream(self, run: int, *key: int) -> np.random.Generator:
        """A generator for `sequence`."""
        return np.random.default_rng(self.sequence(run, *key))

    @property
    def is_the_papers(self) -> bool:
        """Whether nothing but the number of runs and the seed differs from the defaults."""
        default = type(self)()
        return dataclasses.replace(self, runs=default.runs, seed=default.seed) == default

    def fingerprint(self, name: str) -> str:
        """Equal where a run of the experiment `name` gives the same rows."""
        decisive = dataclasses.asdict(self)
        del decisive["runs"]
        text = json.dumps([name, __version__, decisive], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Reference:
    """A figure that an independent reproduction of the paper gave."""

    what: str
    value: float
    runs: int
    """Monte Carlo runs behind it."""
    per_run: Callable[[pd.DataFrame], pd.Series | pd.DataFrame]
    """Our numbers, one row a run (several columns where `combine` needs them)."""
    sd: float | None = None
    """Standard deviation over runs, where it is known."""
    digits: int = 3
    """Decimals that `value` is given with."""
    combine: Callable[[Array], float] = lambda means: float(means[0])
    """From the columns' means over the runs to the figure."""


@dataclass(frozen=True)
class Comparison:
    """A reference beside what came out here."""

    reference: Reference
    value: float
    sd: float
    """Standard deviation of a run."""
    runs: int

    @property
    def standard_error(self) -> float:
        """Of the difference; an unknown spread of the reference is taken to be ours."""
        other = self.sd if self.reference.sd is None else self.reference.sd
        return float(np.sqrt(self.sd**2 / self.runs + other**2 / self.reference.runs))

    @property
    def difference(self) -> float:
        """Ours less the reference."""
        return self.value - self.reference.value

    @property
    def agrees(self) -> bool | None:
        """Within three standard errors, and the rounding of the reference; None: too few runs."""
        if self.runs < 2:
            return None
        rounding = 0.5 * 10.0**-self.reference.digits
        return bool(abs(self.difference) <= 3 * self.standard_error + rounding)


def compare(reference: Reference, table: pd.DataFrame) -> Comparison | None:
    """Compare; None where the table does not hold what the reference speaks of.

    The standard error comes from the jackknife over runs, for a mean the usual ``sd / √R``.
    """
    found = reference.per_run(table)
    if len(found) == 0:
        return None
    values = np.asarray(found, dtype=float).reshape(len(found), -1)
    value = reference.combine(values.mean(axis=0))
    if len(values) == 1:
        return Comparison(reference, value, float("nan"), 1)
    without = (values.sum(axis=0) - values) / (len(values) - 1)
    jackknife = np.array([reference.combine(row) for row in without])
    sd = float((len(values) - 1) * jackknife.std(ddof=1))
    return Comparison(reference, value, sd, len(values))


def cell(column: str = "error", **where: Any) -> Callable[[pd.DataFrame], pd.Series]:
    """Per run the mean of `column` over the rows with these values."""

    def per_run(table: pd.DataFrame) -> pd.Series:
        chosen = np.ones(len(table), dtype=bool)
        for name, value in where.items():
            chosen &= (table[name] == value).to_numpy()
        return table.loc[chosen].groupby("run")[column].mean()

    return per_run


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and whether our numbers bear it out."""

    text: str
    holds: bool | None
    """None: the runs cannot tell."""
    evidence: str


def smaller(table: pd.DataFrame, low: dict[str, Any], high: dict[str, Any]) -> bool | None:
    """Whether the error of `low` is below that of `high`, run by run; None: within two errors."""
    gap = (cell(**high)(table) - cell(**low)(table)).dropna()
    if len(gap) < 2:
        return None
    error = float(gap.std()) / np.sqrt(len(gap))
    return None if abs(gap.mean()) <= 2 * error else bool(gap.mean() > 0)


def all_of(verdicts: Sequence[bool | None]) -> bool | None:
    """False if one is, else None if one is."""
    if any(verdict is False for verdict in verdicts):
        return False
    return None if not verdicts or any(verdict is None for verdict in verdicts) else True


@dataclass(frozen=True)
class Experiment:
    """One of the paper's simulations."""

    name: str
    title: str
    config: type[Config]
    run_one: Callable[[Any, int], list[Row]]
    """``run_one(config, run)``: the tidy rows of a single Monte Carlo run."""
    plot: Callable[[pd.DataFrame, Path, Any], Path]
    """``plot(table, folder, config)``: write the figure as PNG and SVG, return the first."""
    references: tuple[Reference, ...]
    claims: Callable[[pd.DataFrame, Any], list[Claim]]
    caption: str
    remarks: str = ""
    """What is known of the differences from the reference."""
