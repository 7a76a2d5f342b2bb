"""Gymnasium environments as dynamics: by their table of transitions, or by simulation.

Environments are known by what they have (``unwrapped.P``, ``unwrapped.state``, ``step``), so this
module does not import Gymnasium and works with any version of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse

from onlooker.checks import Array, read_only
from onlooker.dynamics.tabular import TabularDynamics

if TYPE_CHECKING:
    from onlooker.demonstrations import Demonstrations

_DENSE = 1_000_000  # entries of a table up to which it is kept dense


_NAMES = {
    "FrozenLakeEnv": ["left", "down", "right", "up"],
    "CliffWalkingEnv": ["up", "right", "down", "left"],
    "TaxiEnv": ["south", "north", "east", "west", "pick up", "drop off"],
    "MountainCarEnv": ["push left", "do not push", "push right"],
    "CartPoleEnv": ["push left", "push right"],
}  # of environments that come with Gymnasium, by their class


def names_of(world: Any, n_actions: int) -> list[str] | None:
    """What the actions of an environment are called, where that is known."""
    names = _NAMES.get(type(world).__name__, [])
    return names if len(names) == n_actions else None


class GymnasiumDynamics:
    """The dynamics of a Gymnasium environment.

    An environment with a table of transitions, ``env.unwrapped.P[s][a] -> [(p, s', r, done)]``
    (FrozenLake, CliffWalking, Taxi), becomes a `TabularGymnasium`, which is a `TabularDynamics`.
    Any other whose state can be set (MountainCar, Acrobot, CartPole, Pendulum) becomes a
    `SimulatedGymnasium`: one simulated step for each action, plus Gaussian noise.

    Parameters
    ----------
    env
        The environment; wrappers such as a time limit are looked through.
    **options
        Of the class that fits the environment.
    """

    def __new__(cls, env: Any = None, *_: Any, **__: Any) -> Self:
        from onlooker.dynamics.simulated import SimulatedGymnasium

        chosen: Any = cls
        if cls is GymnasiumDynamics:
            chosen = TabularGymnasium if hasattr(unwrapped(env), "P") else SimulatedGymnasium
        return object.__new__(chosen)

    if TYPE_CHECKING:

        def __init__(self, env: Any, **options: Any) -> None: ...
        @property
        def n_actions(self) -> int: ...
        def log_likelihood(self, states: Any, next_states: Any) -> Array: ...
        def sample(self, states: Any, actions: Any, rng: np.random.Generator) -> Array: ...
        def __getattr__(self, name: str) -> Any:
            """What only the class has that fits the environment, such as a table's rewards."""

    @classmethod
    def from_demonstrations(
        cls, env: Any, demos: Demonstrations, **options: Any
    ) -> GymnasiumDynamics:
        """The same, with a noise that is proposed from what was seen.

        In each dimension the noise is what the best action leaves unexplained (its median
        deviation, scaled), but at least a quarter of what the choice of action changes: less
        would tell actions apart by rounding. A table has no noise: its states are checked.
        """
        from onlooker.dynamics.simulated import SimulatedGymnasium

        if hasattr(unwrapped(env), "P"):
            table = TabularGymnasium(env, **options)
            table.log_likelihood(*demos.transitions())  # refuses states that it does not have
            return table
        simulated = SimulatedGymnasium(env, sigma=1.0, **options)
        states, next_states = demos.transitions()
        return SimulatedGymnasium(env, sigma=simulated.propose(states, next_states), **options)


class TabularGymnasium(TabularDynamics, GymnasiumDynamics):
    """Transition probabilities out of an environment's table; sparse beyond a million entries.

    Parameters
    ----------
    env
        An environment with ``unwrapped.P``.
    absorbing
        Make every terminal state lead to itself, without reward. A state is terminal if an
        episode can enter it only as its end. Episodes never show what comes after, but plans
        and simulations need to stop there, and not all tables do (CliffWalking and Taxi go on).

    Attributes
    ----------
    terminal : (S,), which states are terminal
    rewards : (S, A), the expected reward
    start : (S,) distribution of the first state, if the environment tells it, else None
    """

    def __init__(self, env: Any, *, absorbing: bool = True) -> None:
        world = unwrapped(env)
        source, action, target, chance, reward, done, n_states, n_actions = _entries_of(world.P)
        start = getattr(world, "initial_state_distrib", None)
        self.start = None if start is None else read_only(np.array(start, dtype=np.float64))
        possible = chance > 0
        ends, goes_on = possible & done, possible & ~done
        live = _live(source[goes_on], target[goes_on], target[ends], n_states, self.start)
        terminal = np.zeros(n_states, dtype=bool)
        terminal[target[ends & live[source]]] = True
        self.terminal = read_only(terminal & ~live)
        if absorbing:
            stay = self.terminal[source]
            target, reward = np.where(stay, source, target), np.where(stay, 0.0, reward)
        shape = (n_states, n_actions)
        expected = np.bincount(source * n_actions + action, chance * reward, n_states * n_actions)
        self.rewards = read_only(expected.reshape(shape))
        matrices = [
            # entries of one place add up: next states repeat
            scipy.sparse.csr_array(
                (chance[action == a], (source[action == a], target[action == a])),
                shape=(n_states, n_states),
            )
            for a in range(n_actions)
        ]
        small = n_states * n_states * n_actions <= _DENSE
        TabularDynamics.__init__(
            self,
            np.stack([m.toarray() for m in matrices], axis=1) if small else matrices,
            action_names=names_of(world, n_actions),
        )


def _live(source: Array, target: Array, ended: Array, n_states: int, start: Array | None) -> Array:
    """States in which an episode can be without being over, given the steps that go on.

    Where episodes start decides: Taxi's table also moves the passenger who has arrived, but no
    episode gets to see that. Without it, all states that end no episode count as starts.
    """
    live = np.ones(n_states, dtype=bool)
    live[ended] = False
    if start is not None:
        live = start > 0
    while True:
        reached = target[live[source]]
        if live[reached].all():
            return live
        live[reached] = True


def _entries_of(table: Any) -> tuple[Array, Array, Array, Array, Array, Array, int, int]:
    """Source, action, target, probability, reward and end of every entry; numbers of both."""
    n_states = len(table)
    try:
        n_actions = len(table[0])
        rows = [
            (s, a, int(target), float(chance), float(reward), bool(done))
            for s in range(n_states)
            for a in range(n_actions)
            for chance, target, reward, done in table[s][a]
        ]
    except (KeyError, IndexError) as error:
        raise ValueError(
            f"env.unwrapped.P must count states and actions from 0; it has no {error}"
        ) from error
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    source, action, target, chance, reward, done = columns
    if target.min() < 0 or target.max() >= n_states:
        at = int(np.argmax((target < 0) | (target >= n_states)))
        raise ValueError(
            f"env.unwrapped.P[{source[at]}][{action[at]}] leads to {target[at]}, "
            f"but has states 0 to {n_states - 1}"
        )
    return source, action, target, chance, reward, done, n_states, n_actions


def unwrapped(env: Any) -> Any:
    world = getattr(env, "unwrapped", None)
    if world is None:
        raise TypeError(f"env must be a Gymnasium environment, got {type(env).__name__}")
    return world
