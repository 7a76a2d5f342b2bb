"""Have the chains converged? R-hat and effective sample sizes of label-free scalars.

And do hyper-parameters lie where their priors end?
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.special import entr

from onlooker._version import __version__
from onlooker.checks import Array
from onlooker.hyper import LogUniform, Prior
from onlooker.warnings import ConvergenceWarning, warn

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from onlooker.posterior import Posterior

MAX_R_HAT = 1.01
"""Chains that differ more have not mixed."""
MIN_ESS = 400
"""Of all chains together, for the bulk and for the tails."""
_PROBES = 5  # nodes whose policy is watched
_AT_BOUND = 0.05  # of a prior's range of ln x
_MIN_DRAWS = 4  # of a chain that is compared, half by half; of a half where there is one only


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
        at_probes = posterior.problem.to_actions(
            posterior.problem.states[nodes], clusters.policy[rows]
        )
        values[clusters.index] = at_probes[:, np.arange(len(nodes)), actions]
    return nodes, actions, values.reshape(posterior.n_chains, posterior.n_draws, -1)


def sizes(posterior: Posterior) -> dict[str, Array]:
    """``(chain, draw)``: what is watched of the partition, and the mean entropy of the policy."""
    n_nodes = posterior.problem.n_nodes
    share = np.empty(posterior.n_chains * posterior.n_draws)
    entropy = np.empty_like(share)
    for clusters in posterior.predictor.blocks():
        first = clusters.first[:-1]
        share[clusters.index] = np.maximum.reduceat(clusters.size, first) / n_nodes
        of_cluster = entr(clusters.policy).sum(axis=1)
        entropy[clusters.index] = np.add.reduceat(clusters.size * of_cluster, first) / n_nodes
    found = {"n_controllers": posterior.n_controllers.astype(np.float64)}
    if posterior.n_regions is not None:
        found["n_regions"] = posterior.n_regions.astype(np.float64)
    shape = posterior.n_chains, posterior.n_draws
    return found | {"largest_share": share.reshape(shape), "mean_entropy": entropy.reshape(shape)}


def unseen(posterior: Posterior) -> dict[str, Array]:
    """``(chain, draw)``: of what was not seen, or not exactly, a state and an action.

    Those whose draws differ most: a coordinate, or whether an integer state is its likeliest; and
    whether the action is its likeliest, where a step starts or ends at an unknown state.
    """
    incomplete, drawn = posterior.problem.incomplete, posterior.imputed
    if incomplete is None:
        return {}
    found, unsure = {}, np.ones(len(incomplete.starts), dtype=bool)
    if drawn is not None:
        where = np.unravel_index(drawn.var(axis=(0, 1)).argmax(), drawn.shape[2:])
        values, name = drawn[:, :, *where], f"imputed[state {incomplete.hidden[where[0]]}"
        if drawn.ndim == 3:
            values, name = values == np.bincount(values.ravel()).argmax(), f"{name}]"
        else:
            name = f"{name}, coordinate {where[1]}]"
        found[name] = values.astype(np.float64)
    if incomplete.exact:
        hidden = np.isin(np.arange(len(incomplete.observed)), incomplete.hidden)
        unsure = hidden[incomplete.starts] | hidden[incomplete.starts + 1]
    n_actions, transitions = posterior.problem.n_actions, np.flatnonzero(unsure)
    if len(transitions):
        actions = posterior.actions[:, :, transitions]
        share = np.array([(actions == j).mean(axis=(0, 1)) for j in range(n_actions)])
        least = int(share.max(axis=0).argmin())
        likeliest = actions[:, :, least] == share[:, least].argmax()
        found[f"imputed[action {transitions[least]}]"] = likeliest.astype(np.float64)
    return found


def kind_masses(posterior: Posterior) -> dict[str, Array]:
    """``(chain, draw)`` each: the masses of the kinds of behaviours, where they are inferred."""
    kinds = posterior.kinds
    if kinds is None:
        return {}
    return {f"kind[{name}]": kinds[:, :, q] for q, name in enumerate(posterior.problem.kinds)}


def drawn_hyper(posterior: Posterior) -> dict[str, Array]:
    """``(chain, draw)`` each: the hyper-parameters that are inferred."""
    known = posterior.target.hyper()
    return {
        name: values
        for name, values in posterior.hyper.items()
        if isinstance(known.get(name), Prior) or (values != values[0, 0]).any()
    }


def scalars(posterior: Posterior) -> dict[str, Array]:
    """``(chain, draw)`` arrays that do not depend on the names of clusters: all that is watched."""
    found = sizes(posterior)
    nodes, actions, values = probes(posterior)
    for probe, (node, action) in enumerate(zip(nodes, actions, strict=True)):
        found[f"policy[node {node}, action {action}]"] = values[:, :, probe]
    log_joint = {"log_joint": np.asarray(posterior.log_joint)}
    return found | kind_masses(posterior) | unseen(posterior) | drawn_hyper(posterior) | log_joint


def summary(posterior: Posterior) -> pd.DataFrame:
    """A table of `scalars`: mean, spread, Monte Carlo error, effective sample sizes and R-hat.

    R-hat is split and rank-normalised; a single chain is compared with itself, part by part, and
    so is each of the chains that have landmarks of their own, whose posteriors differ. A scalar
    that never changed has none. What has settled is in ``attrs["settled"]``, in words.
    """
    import pandas as pd

    row = each_by_itself if own_landmarks(posterior) else scalar_row
    rows = {name: row(values) for name, values in scalars(posterior).items()}
    table = pd.DataFrame(rows).T
    table.attrs["settled"] = settled(table).sentence
    return table


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
            "r_hat": float(array_stats.rhat(values if len(values) > 1 else _halves(values))),
        }


def own_landmarks(posterior: Posterior) -> bool:
    """Whether chains differ in which states are their nodes, and so in their posteriors."""
    landmarks = posterior.problem.landmarks
    return landmarks is not None and landmarks.per_chain and posterior.n_chains > 1


def each_by_itself(values: Array) -> dict[str, float]:
    """As `scalar_row` of all chains, but each compared with itself: the worst R-hat of any."""
    rows = [scalar_row(chain[None]) for chain in values]
    r_hats = [row["r_hat"] for row in rows if not np.isnan(row["r_hat"])]
    ess = {name: float(np.nansum([row[name] for row in rows])) for name in ("ess_bulk", "ess_tail")}
    found = scalar_row(values)
    if np.isnan(found["r_hat"]):
        return found
    if not r_hats:  # every chain stands still, each at a place of its own
        return found | {"r_hat": np.nan, "ess_bulk": np.nan, "ess_tail": np.nan}
    return found | ess | {"r_hat": max(r_hats)}


def _halves(values: Array) -> Array:
    """The halves of the only chain, as if they were two."""
    half = values.shape[1] // 2
    return np.stack([values[0, :half], values[0, -half:]])


def too_few_draws(posterior: Posterior) -> bool:
    """Whether there are too few to compare chains, or the halves of the only one."""
    return posterior.n_draws < _MIN_DRAWS * (2 if posterior.n_chains == 1 else 1)


# -- what has settled ------------------------------------------------------------------------------

_PARTS = ("policy", "partition", "unseen states", "hyper-parameters", "log joint")


def part_of(name: str) -> str:
    """Which part of the model a row of `summary` is about."""
    if name.startswith("policy[") or name == "mean_entropy":
        return "policy"
    if name in ("n_controllers", "n_regions", "largest_share"):
        return "partition"
    if name.startswith("imputed["):
        return "unseen states"
    return "log joint" if name == "log_joint" else "hyper-parameters"


def is_fine(table: pd.DataFrame) -> pd.Series[bool]:
    """Whether each row of `summary` has settled; a row that never changed has nothing to settle."""
    ess = table[["ess_bulk", "ess_tail"]].min(axis=1)
    return ~((table["r_hat"] > MAX_R_HAT) | (ess < MIN_ESS))


@dataclass(frozen=True)
class Settled:
    """What has settled by R-hat and effective sample size, and what has not.

    Policies and partitions need not settle at the same time: many partitions may give one policy.
    """

    parts: Mapping[str, bool]
    """By policy, partition, unseen states, hyper-parameters and log joint, where they changed."""

    @property
    def all(self) -> bool:
        """Whether everything that ever changed has."""
        return all(self.parts.values())

    @property
    def sentence(self) -> str:
        """Such as "The policy has settled, the partition has not."."""
        done = [part for part, fine in self.parts.items() if fine]
        rest = [part for part, fine in self.parts.items() if not fine]
        if not self.parts:
            return "It is unknown what has settled."
        if not done:
            return f"{_listed(rest).capitalize()} not settled."
        left = f", {_listed(rest)} not" if rest else ""
        return f"{_listed(done).capitalize()} settled{left}."


def _listed(parts: Sequence[str]) -> str:
    """Such as "the policy and the partition have"."""
    named = [f"the {part}" for part in parts]
    one = len(parts) == 1 and not parts[0].endswith("s")
    words = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return f"{words} {'has' if one else 'have'}"


def settled(table: pd.DataFrame) -> Settled:
    """What has settled, by a table of `summary`."""
    changed = table[table["r_hat"].notna()]
    fine = is_fine(changed)
    of_part = {
        part: [bool(ok) for name, ok in fine.items() if part_of(str(name)) == part]
        for part in _PARTS
    }
    return Settled({part: all(oks) for part, oks in of_part.items() if oks})


def check_convergence(posterior: Posterior) -> None:
    """Warn if R-hat exceeds 1.01 or the effective sample size is below 400.

    Of chains with landmarks of their own, if half of them find another policy or another partition
    than the other half.
    """
    if too_few_draws(posterior):
        warn(
            f"{posterior.n_draws} draws are too few to tell whether the chains have converged; "
            "raise draws",
            ConvergenceWarning,
        )
        return
    if own_landmarks(posterior):
        found = posterior.stability
        if found is not None and not (found.policy_agrees and found.partition_agrees):
            warn(found.sentence, ConvergenceWarning)
        return
    table = posterior.summary()
    problems = []
    r_hat = table["r_hat"].dropna()
    bad = r_hat[r_hat > MAX_R_HAT].sort_values(ascending=False)
    if len(bad):
        who = "the chains have" if posterior.n_chains > 1 else "the chain has"
        problems.append(
            f"R-hat is {bad.iloc[0]:.3g} for {bad.index[0]}{_others(bad)}, above {MAX_R_HAT}: "
            f"{who} not mixed; raise tune and draws{_hint(posterior)}"
        )
    ess = table[["ess_bulk", "ess_tail"]].min(axis=1).dropna()
    bad = ess[ess < MIN_ESS].sort_values()
    if len(bad):
        problems.append(
            f"The effective sample size is {bad.iloc[0]:.0f} for {bad.index[0]}"
            f"{_others(bad)}, below {MIN_ESS}: raise draws"
        )
    if problems:
        cut = "The time budget ended before convergence. " if posterior.ended == "time" else ""
        warn(f"{cut}{table.attrs['settled']} {'. '.join(problems)}", ConvergenceWarning)


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
    drawn = drawn_hyper(posterior)
    fixed = {name: x[0, 0] for name, x in posterior.hyper.items() if name not in drawn}
    drawn |= sizes(posterior)
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
