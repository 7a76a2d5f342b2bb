"""Have the chains converged? R-hat and effective sample sizes said in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onlooker.diagnostics import LEAST_ESS, MOST_R_HAT

if TYPE_CHECKING:
    import pandas as pd

    from onlooker.posterior import Posterior

Level = Literal["good", "fair", "bad", "unknown"]
_FAIR_R_HAT = 1.1  # beyond it even rough numbers are not to be trusted
_FAIR_ESS = 20.0
_FEWEST_DRAWS = 4

_TITLES: dict[str, str] = {
    "good": "The chains agree",
    "fair": "The chains nearly agree",
    "bad": "The chains do not agree",
    "unknown": "It cannot be told whether the chains agree",
}
_MEANING = {
    "n_controllers": "number of controllers",
    "largest_cluster": "size of the largest cluster",
    "log_joint": "fit of a draw, ln p(s, a, z)",
    "alpha": "concentration α of the controllers",
    "gamma": "concentration γ of the partition",
    "beta": "pull β between neighbours",
    "nu": "self-link weight ν",
    "scale": "length scale of the decay",
    "offset": "similarity far away",
}


def meaning(name: str) -> str:
    """What a scalar of the summary is, in words."""
    if name.startswith("policy["):
        inner = name.removeprefix("policy[").removesuffix("]")
        return f"probability of an action: {inner}"
    return _MEANING.get(name, name)


def verdict(posterior: Posterior, table: pd.DataFrame | None) -> dict[str, Any]:
    """Level, title and sentences about convergence; `table` is `Posterior.summary`."""
    if table is None or posterior.n_draws < _FEWEST_DRAWS:
        sentences = [f"{posterior.n_draws} draws a chain are too few to compare the chains by."]
        return {"level": "unknown", "title": _TITLES["unknown"], "sentences": sentences}
    r_hat = table["r_hat"].dropna().sort_values(ascending=False)
    ess = table[["ess_bulk", "ess_tail"]].min(axis=1).dropna().sort_values() / posterior.n_chains
    if len(r_hat) == 0:
        sentences = [
            "Nothing that is watched ever changed, in any chain: either the data leave no doubt, "
            "or every chain is stuck at the same place."
        ]
        return {"level": "unknown", "title": _TITLES["unknown"], "sentences": sentences}
    worst, least = float(r_hat.iloc[0]), float(ess.iloc[0])
    level = _level(worst, least)
    return {
        "level": level,
        "title": _TITLES[level],
        "sentences": [
            _agreement(worst, str(r_hat.index[0]), posterior.n_chains),
            _worth(least, str(ess.index[0])),
            _advice(level, worst, posterior),
        ],
        "r_hat": worst if math.isfinite(worst) else None,
        "ess": least,
    }


def _level(r_hat: float, ess: float) -> Level:
    if r_hat <= MOST_R_HAT and ess >= LEAST_ESS:
        return "good"
    return "fair" if r_hat <= _FAIR_R_HAT and ess >= _FAIR_ESS else "bad"


def _agreement(r_hat: float, name: str, n_chains: int) -> str:
    who = f"{n_chains} chains" if n_chains > 1 else "The two halves of the only chain"
    where = meaning(name)
    if r_hat <= MOST_R_HAT:
        return (
            f"{who} tell the same story: R-hat is at most {r_hat:.3f} "
            f"(1 is perfect, up to {MOST_R_HAT} is fine)."
        )
    if not math.isfinite(r_hat):
        return f"{who} are stuck, each at another value, for the {where}."
    return (
        f"{who} still differ most in the {where}: R-hat is {r_hat:.3f} "
        f"(1 is perfect, up to {MOST_R_HAT} is fine)."
    )


def _worth(ess: float, name: str) -> str:
    enough = f"{LEAST_ESS} are wanted"
    if ess >= LEAST_ESS:
        enough = "enough for means and 90 % intervals"
    return (
        "Draws of a chain resemble the ones before. The least informed number, the "
        f"{meaning(name)}, is worth {ess:.0f} independent draws a chain; {enough}."
    )


def _advice(level: Level, r_hat: float, posterior: Posterior) -> str:
    alone = " With one chain only, a region that it never found would go unnoticed."
    alone = alone if posterior.n_chains == 1 else ""
    if level == "good":
        return "Probabilities on this page can be taken as they are." + alone
    more = "Raise draws" if r_hat <= MOST_R_HAT else "Raise tune and draws"
    if level == "fair":
        return f"Probabilities on this page are rough. {more} for surer ones." + alone
    return (
        "Take what this page shows as a sketch: it may depend on where the chains started. "
        f"{more}." + alone
    )


def table_rows(table: pd.DataFrame | None) -> list[dict[str, Any]]:
    """The summary as JSON, with a meaning for every row."""
    if table is None:
        return []
    rows = []
    for name, row in table.iterrows():
        values: dict[str, Any] = {str(key): _number(row[key]) for key in row.index}
        ess = np.nanmin([row["ess_bulk"], row["ess_tail"], np.inf])
        values |= {"name": str(name), "meaning": meaning(str(name)), "ess": _number(ess)}
        r_hat = row["r_hat"]
        values["fine"] = bool(np.isnan(r_hat) or r_hat <= MOST_R_HAT)
        rows.append(values)
    return rows


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
