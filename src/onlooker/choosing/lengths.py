"""Lengths that tracks suggest: a metric for their states, and a typical distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import Array, Setting, SettingError
from onlooker.dynamics.base import position_dynamics, steps_between
from onlooker.partitions import ScaledAxes
from onlooker.partitions.geometry import Geometry
from onlooker.problem import Landmarks

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations
    from onlooker.dynamics import TabularDynamics
    from onlooker.dynamics.base import Dynamics

_MAX_STATES = 1_000  # of a finite space, up to which all distances are computed
_FEW, _EIGHTH = 500, 8


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


def typical_step(
    demos: Demonstrations,
    dynamics: Dynamics,
    metric: Any = None,
    landmarks: Landmarks | None = None,
) -> float:
    """The median length of the steps that move; 1 in a finite space.

    With features or landmarks, no less than the typical spacing of nodes, the distance to the
    eighth nearest over √8: a step changes features as well, landmarks are few, and at shorter
    scales there is nothing to link to.
    """
    if demos.is_discrete:
        return 1.0
    states, next_states = demos.transitions()
    n_position = getattr(dynamics, "n_position", demos.n_dims)
    before, after = states[:, :n_position], next_states[:, :n_position]
    moves = steps_between(position_dynamics(dynamics), before, after)
    if isinstance(metric, ScaledAxes):
        moves = moves * np.array(metric.factors[:n_position])
    lengths = np.linalg.norm(moves, axis=1)
    lengths = lengths[lengths > 0]
    if not len(lengths):
        raise SettingError(
            "every step of the tracks stands still, so no length scale follows; give ",
            Setting("scale"),
        )
    step = float(np.median(lengths))
    if n_position == demos.n_dims and landmarks is None:
        return step
    nodes = demos.distinct()[0]
    if landmarks is not None:
        nodes = nodes[landmarks.choose(len(nodes), 0)]
    return max(step, _spacing(nodes, distances(demos, dynamics) if metric is None else metric))


def _spacing(states: Array, metric: Any) -> float:
    """The typical distance from a state to the eighth nearest, over √8."""
    nodes = Geometry(states, metric=metric)
    some = nodes.states[:: max(1, len(nodes.states) // _FEW)]
    k = min(_EIGHTH + 1, len(nodes.states))
    return float(np.median(nodes.nearest_nodes(some, k)[1][:, -1]) / np.sqrt(_EIGHTH))


def step_distances(dynamics: TabularDynamics) -> Array:
    """``(S, S)``: fewest steps from one state to another, either way, whatever the actions."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    n = dynamics.n_states
    linked = sum((matrix > 0 for matrix in dynamics.matrices), csr_array((n, n), dtype=bool))
    apart = shortest_path(csr_array(linked, dtype=np.float64), directed=False, unweighted=True)
    reached = np.isfinite(apart)
    return np.where(reached, apart, apart[reached].max() + n)
