"""Have the chains converged? R-hat and effective sample sizes in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onlooker.diagnostics import MAX_R_HAT, MIN_ESS, is_fine, settled, too_few_draws
from onlooker.reading.tracks import counted

if TYPE_CHECKING:
    from onlooker.consensus.stability import Stability
    from onlooker.findings.opened import OpenedRun

Level = Literal["good", "fair", "bad", "unknown"]
_FAIR_R_HAT = 1.1  # beyond it even rough numbers are not to be trusted
_FAIR_ESS = 80.0

_TITLES: dict[str, str] = {
    "good": "The chains agree",
    "fair": "The chains nearly agree",
    "bad": "The chains do not agree",
    "unknown": "It is unknown whether the chains agree",
}
_ENDED: dict[str, list[str]] = {
    "converged": ["Sampling ended when everything had settled."],
    "time": ["Sampling reached its time limit before everything had settled."],
}


def verdict(run: OpenedRun) -> dict[str, Any]:
    """Level, title and sentences about convergence; worst R-hat and effective sample size."""
    posterior, table = run.posterior, run.table
    if too_few_draws(posterior):
        n_draws = counted(posterior.n_draws, "draw")
        return _unknown(f"{n_draws} per chain: too few to compare the chains.")
    if run.stability is not None:
        return _of_landmarks(run, run.stability)
    r_hat = table["r_hat"].dropna().sort_values(ascending=False)
    ess = table[["ess_bulk", "ess_tail"]].min(axis=1).dropna().sort_values()
    if len(r_hat) == 0:
        return _unknown(
            "No monitored quantity ever changed, in any chain: either the data leave no doubt, or "
            "all chains are stuck at the same place."
        )
    worst, least = float(r_hat.iloc[0]), float(ess.iloc[0])
    level, parts = _level(worst, least), settled(table)
    return {
        "level": level,
        "title": _TITLES[level],
        "settled": dict(parts.parts),
        "sentences": [
            parts.sentence,
            *_ENDED.get(posterior.ended, ()),
            _agreement(worst, run.scalar_name(str(r_hat.index[0])), run),
            _precision(least, run.scalar_name(str(ess.index[0]))),
            _advice(level, worst, run),
        ],
        "advice": None if level == "good" else _remedy(worst, run),
        "r_hat": worst if math.isfinite(worst) else None,
        "ess": least,
    }


def _of_landmarks(run: OpenedRun, found: Stability) -> dict[str, Any]:
    """Chains with landmarks of their own have posteriors of their own: half against half."""
    posterior = run.posterior
    level: Level = "bad" if not found.policy_agrees else "fair"
    if found.policy_agrees and found.partition_agrees:
        level = "good"
    sentences = [
        f"Each of the {posterior.n_chains} chains uses other landmarks, so these may differ "
        f"between chains: the number of controllers ({_each(posterior.n_controllers)})"
        + (
            "."
            if posterior.n_regions is None
            else f" and that of regions ({_each(posterior.n_regions)})."
        ),
        found.sentence,
    ]
    remedy = (
        "Give the next run more --chains" if run.record.file is not None else "Take more chains"
    )
    return {
        "level": level,
        "title": _TITLES[level],
        "settled": {"policy": found.policy_agrees, "partition": found.partition_agrees},
        "sentences": sentences,
        "advice": None if level == "good" else remedy,
        "r_hat": None,
        "ess": None,
    }


def _each(numbers: Any) -> str:
    """The mean of each chain."""
    return ", ".join(f"{mean:.0f}" for mean in numbers.mean(axis=1))


def _unknown(sentence: str) -> dict[str, Any]:
    return {
        "level": "unknown",
        "title": _TITLES["unknown"],
        "settled": {},
        "sentences": [sentence],
        "advice": None,
        "r_hat": None,
        "ess": None,
    }


def _level(r_hat: float, ess: float) -> Level:
    if r_hat <= MAX_R_HAT and ess >= MIN_ESS:
        return "good"
    return "fair" if r_hat <= _FAIR_R_HAT and ess >= _FAIR_ESS else "bad"


def _agreement(r_hat: float, quantity: str, run: OpenedRun) -> str:
    n_chains = run.posterior.n_chains
    who = f"The {n_chains} chains" if n_chains > 1 else "The two halves of the only chain"
    scale = f"(1 is perfect, up to {MAX_R_HAT} is fine)"
    if r_hat <= MAX_R_HAT:
        return f"{who} agree: R-hat is at most {r_hat:.3f} {scale}."
    if not math.isfinite(r_hat):
        return f"{who} are stuck at different values of the {quantity}."
    return f"{who} differ most in the {quantity}: R-hat is {r_hat:.3f} {scale}."


def _precision(ess: float, quantity: str) -> str:
    enough = f"aim for {MIN_ESS}"
    if ess >= MIN_ESS:
        enough = "enough for means and 90 % intervals"
    return f"The lowest effective sample size is {ess:.0f}, of the {quantity} ({enough})."


def _advice(level: Level, r_hat: float, run: OpenedRun) -> str:
    single = ""
    if run.posterior.n_chains == 1:
        single = " With one chain only, a region that it never found would go unnoticed."
    if level == "good":
        return "Probabilities can be taken at face value." + single
    rough = "are rough" if level == "fair" else "may depend on where the chains started"
    return f"Probabilities {rough}. {_remedy(r_hat, run)}.{single}"


def _remedy(r_hat: float, run: OpenedRun) -> str:
    """In the words of the command line, if the run was made by it."""
    mixed, by_command = r_hat <= MAX_R_HAT, run.record.file is not None
    if run.posterior.ended == "time":
        more = "The same command with --resume continues the run"
        return more if by_command else "Raise max_minutes"
    if by_command and mixed:
        return "The same command with --resume and more --draws continues the run"
    if by_command:
        return "Give the next run more --tune and --draws"
    return "Take more draws" if mixed else "Take more sweeps of tuning and more draws"


def table_rows(run: OpenedRun) -> list[dict[str, Any]]:
    """The summary as JSON, with words for every row."""
    rows = []
    fine = is_fine(run.table)
    for (name, row), is_good in zip(run.table.iterrows(), fine, strict=True):
        values: dict[str, Any] = {str(key): _number(row[key]) for key in row.index}
        ess = np.nanmin([row["ess_bulk"], row["ess_tail"], np.inf])
        words = run.scalar_name(str(name))
        values |= {"name": str(name), "meaning": words, "ess": _number(ess)}
        values["fine"] = bool(is_good)
        rows.append(values)
    return rows


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
