"""Walk many trajectories at once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from onlooker.checks import Array, positive_integer, require_memory
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics import Dynamics
from onlooker.reading import Tracks

Actor = Callable[[Array, np.random.Generator], Array]


def walk_size(n: int, length: int, n_dims: int = 1) -> tuple[int, int]:
    """How many trajectories of how many states; refused if these do not fit into memory."""
    n = positive_integer("n_trajectories", n)
    length = positive_integer("length", length, minimum=2)
    what = f"{n:,} trajectories of {length:,} states"
    require_memory(16 * n * length * (n_dims + 1), what, "choose fewer, or shorter ones")
    return n, length


def roll_out(
    start: Array, length: int, act: Actor, dynamics: Dynamics, rng: np.random.Generator
) -> tuple[Demonstrations, list[Array]]:
    """Trajectories of `length` states from each row of `start`, and the actions taken."""
    n = len(start)
    _, length = walk_size(max(n, 1), length, math.prod(start.shape[1:]))
    # Time first while walking, so that each step reads and writes one block.
    states = np.empty((length, *start.shape), dtype=start.dtype)
    actions = np.empty((length - 1, n), dtype=np.int64)
    states[0] = start
    for t in range(length - 1):
        actions[t] = act(states[t], rng)
        states[t + 1] = dynamics.sample(states[t], actions[t], rng)
    flat = states.swapaxes(0, 1).reshape(n * length, *start.shape[1:])
    demos = Demonstrations.from_tracks(Tracks(flat, length * np.arange(n + 1)))
    return demos, list(np.ascontiguousarray(actions.T))


def draw_actions(cumulative: Array, rng: np.random.Generator) -> Array:
    """One action per row of cumulative probabilities, never one of probability zero."""
    uniforms = rng.random(len(cumulative)) * cumulative[:, -1]
    return np.asarray((cumulative <= uniforms[:, None]).sum(axis=1))
