"""Example 1: how many controllers are there, and how large is ν?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from onlooker.checks import Array
from onlooker.experiments.drawing import COLOURS, new_figure, save
from onlooker.experiments.experiment import Claim, Experiment, Reference, Row, cell
from onlooker.experiments.plane import PlaneConfig, make_chain

if TYPE_CHECKING:
    import pandas as pd

MEAN, RATE = "mean 0.1", "rate 0.1"
TRUTH = 8
"""Controllers of the expert."""
_SHARES = {7: 0.04, 8: 0.38, 9: 0.32, 10: 0.16, 11: 0.09}  # the last: 11 or more
_REFERENCE_RUNS = 40


@dataclass(frozen=True)
class Config(PlaneConfig):
    """Posterior draws of the number of controllers and of ν."""

    sweeps: int = 700
    burn_in: int = 200
    thin: int = 5

    @classmethod
    def quick(cls) -> Self:
        """Few and short runs."""
        return cls(runs=4, sweeps=200, burn_in=100)


def run_one(config: Config, run: int) -> list[Row]:
    """Draws under both readings of the paper's prior of ν: its *mean* is 0.1, or its *rate*."""
    problem = config.problem(run)
    rows: list[Row] = []
    for index, (prior, nu_mean) in enumerate(((MEAN, config.nu_mean), (RATE, 1 / config.nu_mean))):
        rng = config.stream(run, 1 + index)
        chain = make_chain(problem, config.ddcrp(nu_mean), config, rng)
        for sweep in range(config.sweeps):
            chain.sweep()
            if sweep >= config.burn_in and (sweep - config.burn_in) % config.thin == 0:
                nu = float(chain.state.hyper["nu"])
                rows.append(
                    {"prior": prior, "sweep": sweep, "controllers": chain.n_controllers, "nu": nu}
                )
    return rows


def plot(table: pd.DataFrame, folder: Path, config: Config) -> Path:
    """Histograms of the number of controllers and of ν."""
    figure = new_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2)
    ours = table[table["prior"] == MEAN]
    counts = np.arange(int(ours["controllers"].min()), int(ours["controllers"].max()) + 1)
    shares = np.array([_share(ours, int(k)).to_numpy() for k in counts])
    spread = shares.std(axis=1, ddof=1) if shares.shape[1] > 1 else np.zeros(len(counts))
    mean = shares.mean(axis=1)
    below = np.minimum(spread, mean)  # a bar of the spread must not leave the axes
    left.bar(
        counts, 100 * mean, yerr=100 * np.stack([below, spread]),
        color=[COLOURS[1] if k == TRUTH else COLOURS[0] for k in counts],
        edgecolor="black", error_kw={"capsize": 3, "lw": 1},
    )  # fmt: skip
    left.bar([TRUTH], [0], color=COLOURS[1], edgecolor="black", label="the expert's number")
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), frameon=False)
    left.set_xticks(counts)
    left.set(ylim=(0, None), title="(a) How many controllers?")
    left.set_xlabel("number of controllers")
    left.set_ylabel("posterior probability [%]")
    edges = np.linspace(0, float(table["nu"].quantile(0.995)), 31)
    for index, prior in enumerate((MEAN, RATE)):
        nu = table.loc[table["prior"] == prior, "nu"]
        label = f"prior, {prior}: {nu.mean():.3f} ± {nu.std():.3f}"
        right.hist(
            nu, edges, density=True, histtype="step", lw=2, color=COLOURS[index],
            ls="-" if index == 0 else "--", label=label,
        )  # fmt: skip
    right.set(xlabel="self-link weight ν", ylabel="posterior density", title="(b) How large is ν?")
    right.set(xlim=(0, edges[-1]))
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, frameon=False)
    return save(figure, folder, "controllers")


def _share(table: pd.DataFrame, k: int, or_more: bool = False) -> pd.Series:
    """Per run the share of draws with `k` controllers."""
    number = table["controllers"]
    hit = (number >= k if or_more else number == k).astype(float)
    return hit.groupby(table["run"]).mean()


def _shares_of(k: int) -> Any:
    return lambda table: _share(table[table["prior"] == MEAN], k, or_more=k == max(_SHARES))


def _moments(prior: str) -> Any:
    def per_run(table: pd.DataFrame) -> pd.DataFrame:
        mine = table[table["prior"] == prior]
        squared = mine.assign(squared=mine["nu"] ** 2)
        return squared.groupby("run")[["nu", "squared"]].mean()

    return per_run


def _sd(moments: Array) -> float:
    return float(np.sqrt(max(moments[1] - moments[0] ** 2, 0.0)))


def _references() -> tuple[Reference, ...]:
    runs, found = _REFERENCE_RUNS, []
    for k, share in _SHARES.items():
        name = f"P({'≥ ' if k == max(_SHARES) else ''}{k} controllers)"
        found.append(Reference(name, share, runs, _shares_of(k), digits=2))
    for prior, mean, sd in ((MEAN, 0.024, 0.024), (RATE, 0.033, 0.033)):
        where = cell("nu", prior=prior)
        found.append(Reference(f"ν, mean, prior with {prior}", mean, runs, where))
        name = f"ν, standard deviation, prior with {prior}"
        found.append(Reference(name, sd, runs, _moments(prior), combine=_sd))
    return tuple(found)


def claims(table: pd.DataFrame, config: Config) -> list[Claim]:
    """What the paper says of the number of controllers and of ν."""
    ours = table[table["prior"] == MEAN]
    shares = ours["controllers"].value_counts(normalize=True)
    listed = ", ".join(
        f"{k}: {100 * shares[k]:.0f} %" for k in sorted(shares.index) if shares[k] >= 0.005
    )
    nu, other = (table.loc[table["prior"] == prior, "nu"] for prior in (MEAN, RATE))
    return [
        Claim(
            "The posterior of the number of controllers peaks at the true number, 8.",
            bool(shares.idxmax() == TRUTH),
            listed,
        ),
        Claim(
            "ν has posterior mean 0.024 and standard deviation 0.023 under an exponential prior "
            "with *mean* 0.1.",
            _near(nu),
            f"{nu.mean():.4f} ± {nu.std():.4f}",
        ),
        Claim(
            "The same under a prior with *rate* 0.1, as the paper prints it.",
            _near(other),
            f"{other.mean():.4f} ± {other.std():.4f}",
        ),
    ]


def _near(nu: pd.Series) -> bool:
    return bool(abs(nu.mean() - 0.024) < 0.004 and abs(nu.std() - 0.023) < 0.004)


EXPERIMENT = Experiment(
    name="controllers",
    title="Example 1: number of controllers and self-link weight",
    config=Config,
    run_one=run_one,
    plot=plot,
    references=_references(),
    claims=claims,
    caption=(
        "Posterior of the ddCRP's number of controllers (a; bars: standard deviation over runs, "
        "each with data of its own) and of ν under the two readings of its prior (b)."
    ),
)
