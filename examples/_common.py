"""What the examples in Gymnasium's worlds share."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from onlooker import Demonstrations, Posterior, Problem, sample
from onlooker.warnings import ConvergenceWarning, UnidentifiableActionsWarning

# Okabe and Ito's: most colour-blind people can tell them apart.
BLUE, ORANGE, GREEN, RED, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9"
_SAME = 1e-9


def options(doc: str | None, arguments: list[str] | None, name: str) -> argparse.Namespace:
    """The options that every example has."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small: a taste, not a result")
    parser.add_argument("--output", type=Path, default=Path(name), help="directory to write to")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    chosen.output.mkdir(parents=True, exist_ok=True)
    return chosen


def observe(demos: Demonstrations, dynamics: Any, nodes: Any = "visited") -> Problem:
    """The problem; each example tells in its own words which steps say nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnidentifiableActionsWarning)
        return Problem.from_demonstrations(demos, dynamics, nodes)


def fit(problem: Problem, prior: Any, seed: int, **how: Any) -> Posterior:
    """Sample without a progress bar."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # hundreds of draws do here
        return sample(problem, prior, random_state=seed, progress=False, **how)


def same_actions(table: np.ndarray) -> np.ndarray:
    """``(S, A, A)``: which actions have one and the same distribution of the next state.

    Nobody who sees states alone can ever tell them apart there.
    """
    return np.abs(table[:, :, None] - table[:, None, :]).max(axis=3) <= _SAME


def identifiable(table: np.ndarray) -> np.ndarray:
    """``(S,)``: where every policy has a distribution of the next state of its own.

    That is so where the A distributions of the actions are linearly independent. Distinct ones
    need not be: three next states cannot tell four actions apart once these are mixed.
    """
    return np.linalg.matrix_rank(table, tol=_SAME) == table.shape[1]


def counts(ax: Any, numbers: Any, label: str) -> None:
    """A logarithmic axis of counts, with exactly these written out."""
    ax.set(xscale="log", xlabel=label)
    ax.set_xticks(numbers, [f"{number:g}" for number in numbers])
    ax.minorticks_off()
