"""Have the chains converged? R-hat and effective sample sizes of label-free scalars.

And do hyper-parameters lie where their priors end?
"""

from __future__ import annotations

import importlib
import math
import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from onlooker._version import __version__
from onlooker.checks import Array
from onlooker.hyper import LogUniform
from onlooker.warnings import ConvergenceWarning, warn

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from onlooker.posterior import Posterior

MAX_R_HAT = 1.01
MIN_ESS = 100  # a chain
_PROBES = 5  # nodes whose policy is watched
_AT_BOUND = 0.05  # of a prior's range of ln x
_MIN_DRAWS = 4  # draws that split chains can be compared by


def probes(posterior: Posterior) -> tuple[Array, Array, Array]:
    """Nodes, an action for each, and its probability there in every draw, (chain, draw, probe).

    The nodes are spread evenly over those with a transition; the action is the likeliest.
    """
    seen = np.unique(posterior.problem.node_of)
    nodes = seen[np.unique(np.linspace(0, len(seen) - 1, min(_PROBES, len(seen))).astype(int))]
    actions = posterior.policy()[nodes].argmax(axis=1)
    values = np.empty((posterior.n_chains * posterior.n_draws, len(nodes)))
    for clusters in posterior.predictor.blocks():
        rows = clusters.first[:-1, None] + clusters.labels[:, nodes]
        values[clusters.index] = clusters.policy[rows, actions]
    return nodes, actions, values.reshape(posterior.n_chains, posterior.n_draws, -1)


def _largest(posterior: Posterior) -> Array:
    """``(chain, draw)``: nodes in the largest cluster."""
    values = np.empty(posterior.n_chains * posterior.n_draws)
    for clusters in posterior.predictor.blocks():
        values[clusters.index] = np.maximum.reduceat(clusters.size, clusters.first[:-1])
    return values.reshape(posterior.n_chains, posterior.n_draws)


def scalars(posterior: Posterior) -> dict[str, Array]:
    """``(chain, draw)`` arrays that do not depend on the names of clusters."""
    found = {
        "n_controllers": posterior.n_controllers.astype(np.float64),
        "largest_cluster": _largest(posterior),
        "log_joint": np.asarray(posterior.log_joint),
        **posterior.hyper,
    }
    nodes, actions, values = probes(posterior)
    for probe, (node, action) in enumerate(zip(nodes, actions, strict=True)):
        found[f"policy[node {node}, action {action}]"] = values[:, :, probe]
    return found


def summary(posterior: Posterior) -> pd.DataFrame:
    """A table of `scalars`: mean, spread, Monte Carlo error, effective sample sizes and R-hat.

    R-hat is split and rank-normalised. A scalar that never changed has none.
    """
    import pandas as pd

    return pd.DataFrame({name: scalar_row(values) for name, values in scalars(posterior).items()}).T


def scalar_row(values: Array) -> dict[str, float]:
    """What `summary` tells of one scalar, a ``(chain, draw)`` array."""
    low, high = np.quantile(values, [0.05, 0.95])
    spread = float(values.std(ddof=1)) if values.size > 1 else np.nan
    row = {"mean": float(values.mean()), "sd": spread, "q5": float(low), "q95": float(high)}
    names = ("mcse_mean", "ess_bulk", "ess_tail", "r_hat")
    if values.shape[1] < _MIN_DRAWS or (values == values[0, 0]).all():
        return row | dict.fromkeys(names, np.nan)
    if (values == values[:, :1]).all():  # chains are stuck, each somewhere else
        return row | dict(zip(names, (np.nan, 0.0, 0.0, np.inf), strict=True))
    array_stats: Any = importlib.import_module("arviz_stats.base").array_stats

    with warnings.catch_warnings():  # one constant chain among others divides by zero
        warnings.simplefilter("ignore")
        return row | {
            "mcse_mean": float(array_stats.mcse(values, method="mean")),
            "ess_bulk": float(array_stats.ess(values, method="bulk")),
            "ess_tail": float(array_stats.ess(values, method="tail", prob=(0.05, 0.95))),
            "r_hat": float(array_stats.rhat(values)),
        }


def check_convergence(posterior: Posterior) -> None:
    """Warn if R-hat exceeds 1.01 or a chain's effective sample size is below 100."""
    if posterior.n_draws < _MIN_DRAWS:
        warn(
            f"{posterior.n_draws} draws are too few to tell whether the chains have converged; "
            "raise draws",
            ConvergenceWarning,
        )
        return
    table = summary(posterior)
    problems = []
    r_hat = table["r_hat"].dropna()
    bad = r_hat[r_hat > MAX_R_HAT].sort_values(ascending=False)
    if len(bad):
        problems.append(
            f"R-hat is {bad.iloc[0]:.3g} for {bad.index[0]}{_others(bad)}, above {MAX_R_HAT}: the "
            f"chains have not mixed; raise tune and draws{_hint(posterior)}"
        )
    ess = table[["ess_bulk", "ess_tail"]].min(axis=1).dropna() / posterior.n_chains
    bad = ess[ess < MIN_ESS].sort_values()
    if len(bad):
        problems.append(
            f"the effective sample size is {bad.iloc[0]:.0f} per chain for {bad.index[0]}"
            f"{_others(bad)}, below {MIN_ESS}: raise draws"
        )
    if problems:
        warn(". ".join(problems), ConvergenceWarning)


def _hint(posterior: Posterior) -> str:
    advice = posterior.prior.advice(int(posterior.n_controllers.max()))
    return f", or {advice}" if advice else ""


def _others(bad: pd.Series[float]) -> str:
    return f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""


class AtBound(NamedTuple):
    """A hyper-parameter whose draws pile up where its prior ends."""

    name: str
    """As in `Posterior.hyper`."""
    side: Literal["lower", "upper"]
    """Which end of the prior."""
    bound: float
    """That end."""
    median: float
    """Of the draws."""


def at_bounds(posterior: Posterior) -> list[AtBound]:
    """Inferred hyper-parameters at an end of their prior, so that the answer depends on it.

    Only a `LogUniform` prior ends within reach. A hyper-parameter is at an end if the median of
    its draws is nearer to it than 5 % of the prior's range, in ``ln x``.
    """
    found = []
    for name, prior in posterior.target.hyper().items():
        if not isinstance(prior, LogUniform) or name not in posterior.hyper:
            continue
        median = float(np.median(posterior.hyper[name]))
        share = math.log(median / prior.low) / math.log(prior.high / prior.low)
        if share <= _AT_BOUND:
            found.append(AtBound(name, "lower", prior.low, median))
        elif share >= 1 - _AT_BOUND:
            found.append(AtBound(name, "upper", prior.high, median))
    return found


def to_datatree(posterior: Posterior) -> xr.DataTree:
    """Draws in the ArviZ schema; what depends on the names of clusters is in a group of its own.

    ArviZ before 1.0 reads it through ``arviz.InferenceData.from_datatree``.
    """
    try:
        import xarray as xr
    except ImportError as error:
        raise ImportError(
            "to_datatree needs the extra arviz: pip install 'onlooker[arviz]'"
        ) from error

    along = ("chain", "draw")
    coords = {"chain": posterior.chain_ids, "draw": np.arange(posterior.n_draws)}
    nodes, actions, values = probes(posterior)
    names = [f"node {i}, action {j}" for i, j in zip(nodes, actions, strict=True)]
    drawn = {name: x for name, x in posterior.hyper.items() if (x != x[0, 0]).any()}
    fixed = {name: x[0, 0] for name, x in posterior.hyper.items() if name not in drawn}
    drawn |= {"n_controllers": posterior.n_controllers, "largest_cluster": _largest(posterior)}
    posterior_group = xr.Dataset(
        {name: (along, np.asarray(value)) for name, value in drawn.items()}
        | {"policy": ((*along, "probe"), values)},
        coords | {"probe": names},
    )
    partition = {
        "labels": ((*along, "node"), posterior.labels),
        "actions": ((*along, "transition"), posterior.actions),
    }
    if posterior.links is not None:
        partition["links"] = ((*along, "node"), posterior.links)
    problem = posterior.problem
    shape = ("node",) if problem.states.ndim == 1 else ("node", "dimension")
    groups = {
        "posterior": posterior_group,
        "sample_stats": xr.Dataset({"lp": (along, np.asarray(posterior.log_joint))}, coords),
        "partition": xr.Dataset(partition, coords),
        "constant_data": xr.Dataset(
            {"states": (shape, problem.states), "node_of": ("transition", problem.node_of)} | fixed
        ),
    }
    about = {
        "inference_library": "onlooker",
        "inference_library_version": __version__,
        "prior": repr(posterior.prior),
        "tuning_steps": posterior.schedule.tune,
    }
    for group in groups.values():
        group.attrs.update(about)
    return xr.DataTree.from_dict(groups)
