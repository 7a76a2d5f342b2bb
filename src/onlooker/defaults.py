"""The default model, of the recognizer, of `onlooker fit` and of the demo alike."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array, Setting, SettingError
from onlooker.dynamics.base import position_dynamics, steps_between
from onlooker.hyper import CONCENTRATION, Gamma, TotalMass
from onlooker.partitions import ChineseRestaurant, PartitionPrior, Regions
from onlooker.repertoire import Actions

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations
    from onlooker.dynamics import TabularDynamics
    from onlooker.dynamics.base import Dynamics

CLUSTERS = 10
"""Of the priors that need their number."""
PRIOR = Regions.key
"""Of a model that names none."""
SHARING = Gamma(1.0, 1.0)
"""γ of the priors that have one."""
_MAX_STATES = 1_000  # of a finite space, up to which all distances are computed
_MANY = 4_000  # nodes above which links go to the nearest ones only
_NEAREST = 100


def default_prior(demos: Demonstrations, dynamics: Dynamics) -> PartitionPrior[Any]:
    """Regions that share controllers, everything inferred, with a typical step to go by.

    In a finite space without coordinates distances are counted in steps; where it is too large
    for that, states have no place and the Chinese restaurant process must do.
    """
    space = distances(demos, dynamics)
    if space is None:
        return ChineseRestaurant(**settings(ChineseRestaurant))
    return Regions(**_in_space(Regions, space, demos, dynamics))


def default_concentration(prior: PartitionPrior[Any]) -> float | TotalMass:
    """Inferred where all else is; the paper's priors have the paper's."""
    return CONCENTRATION if isinstance(prior, Regions) else 1.0


def default_repertoire(prior: PartitionPrior[Any]) -> Any:
    """All that the dynamics offers where its masses are inferred; the paper's priors: actions."""
    return "auto" if isinstance(prior, Regions) else [Actions()]


def settings(kind: type[PartitionPrior[Any]]) -> dict[str, Any]:
    """Parameters of a prior that need no tracks."""
    known = {"n_clusters": CLUSTERS, "concentration": SHARING}
    return {name: value for name, value in known.items() if name in _names(kind)}


def settings_from(
    kind: type[PartitionPrior[Any]], demos: Demonstrations, dynamics: Dynamics
) -> dict[str, Any]:
    """Parameters of a prior as the tracks suggest them."""
    if "decay" not in _names(kind):
        return settings(kind)
    return _in_space(kind, distances(demos, dynamics), demos, dynamics)


def _in_space(
    kind: type[PartitionPrior[Any]], space: Any, demos: Demonstrations, dynamics: Dynamics
) -> dict[str, Any]:
    given = settings(kind)
    plain: Any = kind(**given)
    step = typical_step(demos, dynamics)
    given["decay"] = (
        Regions.inferred(step).decay if kind is Regions else replace(plain.decay, scale=step)
    )
    if space is None:
        return given
    given["metric"] = space
    many = len(demos.distinct()[0]) > _MANY
    if many and plain.n_neighbors is None and isinstance(space, str):
        given["n_neighbors"] = _NEAREST
    if "reassign" in _names(kind):
        given["reassign"] = int(not many)
    return given


def _names(kind: type[PartitionPrior[Any]]) -> list[str]:
    return [field.name for field in fields(kind)]  # type: ignore[arg-type]


def distances(demos: Demonstrations, dynamics: Dynamics) -> Any:
    """A metric for the states: its name, or a matrix; None where there is none."""
    from onlooker.dynamics import GeographicDynamics

    if not demos.is_discrete:
        if not isinstance(position_dynamics(dynamics), GeographicDynamics):
            return "euclidean"
        return "haversine" if dynamics is position_dynamics(dynamics) else "chord"
    table: Any = dynamics
    few = getattr(table, "n_states", _MAX_STATES + 1) <= _MAX_STATES
    return step_distances(table) if few else None


def typical_step(demos: Demonstrations, dynamics: Dynamics) -> float:
    """The median length of the steps that move; 1 in a finite space."""
    if demos.is_discrete:
        return 1.0
    states, next_states = demos.transitions()
    n_position = getattr(dynamics, "n_position", demos.n_dims)
    before, after = states[:, :n_position], next_states[:, :n_position]
    lengths = np.linalg.norm(steps_between(position_dynamics(dynamics), before, after), axis=1)
    lengths = lengths[lengths > 0]
    if not len(lengths):
        raise SettingError(
            "every step of the tracks stands still, so no length scale follows; give ",
            Setting("scale"),
        )
    return float(np.median(lengths))


def step_distances(dynamics: TabularDynamics) -> Array:
    """``(S, S)``: fewest steps from one state to another, either way, whatever the actions."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    n = dynamics.n_states
    linked = sum((matrix > 0 for matrix in dynamics.matrices), csr_array((n, n), dtype=bool))
    apart = shortest_path(csr_array(linked, dtype=np.float64), directed=False, unweighted=True)
    reached = np.isfinite(apart)
    return np.where(reached, apart, apart[reached].max() + n)
