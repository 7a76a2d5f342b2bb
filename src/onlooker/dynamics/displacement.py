"""A codebook of steps with Gaussian noise."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from onlooker.checks import (
    Array,
    as_array,
    finite_array,
    positive_integer,
    positive_number,
    read_only,
    require_memory,
)
from onlooker.demonstrations import Demonstrations, as_real_states
from onlooker.dynamics.actions import Ring, rings_of_steps
from onlooker.dynamics.base import TransitionLikelihood, Values, check_actions
from onlooker.files import decode, encode
from onlooker.hyper import PRIORS, Prior, check_hyper

if TYPE_CHECKING:
    from onlooker.dynamics.coverage import StepCoverage

_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


class DisplacementDynamics:
    """``s' = s + steps[a] + N(0, sigma² I)``: each action is a step, blurred by noise.

    Parameters
    ----------
    steps
        ``(A, d)``: the mean displacement of each action.
    sigma
        Standard deviation of the noise: a number; ``(A,)``, one per action, the same in every
        dimension; or ``(A, d)``, or ``(1, d)`` for all actions alike. A prior infers one number.
    step
        A length that all `steps` are multiplied by; a prior infers it.

    Notes
    -----
    With a prior, draws are in ``posterior.hyper`` under ``"sigma"`` and ``"step"``; the
    dynamics by itself is the one at the priors' means.

    Examples
    --------
    >>> dynamics = DisplacementDynamics.compass(4, step=1.0, sigma=0.2)
    >>> dynamics.log_likelihood([[0.0, 0.0]], [[0.0, 0.9]]).argmax()  # a step along y
    np.int64(1)
    """

    def __init__(self, steps: Any, sigma: Any, step: float | Prior = 1.0) -> None:
        steps = np.array(finite_array("steps", steps, ndim=2))  # a copy: the caller's may change
        if 0 in steps.shape:
            raise ValueError(f"steps must be (A, d) with A, d > 0, got shape {steps.shape}")
        check_hyper("step", step)
        self.parameters: dict[str, Prior] = {
            name: value
            for name, value in (("sigma", sigma), ("step", step))
            if isinstance(value, Prior) and not isinstance(value, type)
        }
        self.unit_steps = read_only(steps if isinstance(step, Prior) else float(step) * steps)
        self.steps = read_only(step.mean * steps) if isinstance(step, Prior) else self.unit_steps
        if "sigma" in self.parameters:
            sigma = sigma.mean
        self.sigma: float | Array = _check_sigma(sigma, steps.shape)
        if isinstance(self.sigma, float):
            each: Array = np.full(steps.shape, self.sigma)
            peak = np.full(len(steps), self.n_dims * (math.log(self.sigma) + _HALF_LOG_2_PI))
        else:
            each = np.broadcast_to(
                self.sigma[:, None] if self.sigma.ndim == 1 else self.sigma, steps.shape
            )
            peak = (np.log(each) + _HALF_LOG_2_PI).sum(axis=1)
        self._sigma, self._peak = each, peak  # (A, d), and minus the log density at each mean

    @classmethod
    def compass(
        cls,
        n_directions: int = 24,
        step: float | Prior = 1.0,
        sigma: float | Prior = 0.2,
        *,
        stay: bool = False,
    ) -> Self:
        """Steps of one length in `n_directions` directions, from the x axis counter-clockwise.

        With ``stay=True`` one more action, the last, stands still.
        """
        from onlooker.dynamics.proposal import directions

        n_directions = positive_integer("n_directions", n_directions)
        steps = directions(n_directions, 2)
        if stay:
            steps = np.vstack([steps, np.zeros(2)])
        return cls(steps, sigma, step)

    def at(self, values: Values) -> Self:
        """The dynamics with known noise and step length."""
        return type(self)(self.unit_steps, values.get("sigma", self.sigma), values.get("step", 1.0))

    def transition_likelihood(self, states: Any, next_states: Any) -> TransitionLikelihood:
        """The likelihood of transitions as a function of noise and step length."""
        from onlooker.dynamics.unknown import DisplacementLikelihood

        moves = self.displacements(
            self._check("states", states), self._check("next_states", next_states)
        )
        spread = np.ones_like(self._sigma) if "sigma" in self.parameters else self._sigma
        return DisplacementLikelihood(moves, self.unit_steps, spread)

    @classmethod
    def from_demonstrations(
        cls,
        demos: Demonstrations,
        n_directions: int = 16,
        n_speeds: int = 2,
        *,
        stay: bool | Literal["auto"] = "auto",
        noise: Literal["estimate", "resolution"] = "estimate",
        scale: Any = None,
        sigma: float | None = None,
    ) -> Self:
        """Propose actions from tracks: directions × speeds, and the noise of each speed.

        How much of the scatter of steps is noise, and how much is choice, cannot be told from
        steps alone: see `noise`. `coverage` tells what share of the steps the actions explain, and
        which they do not.

        Parameters
        ----------
        demos
            The tracks, of 1, 2 or 3 dimensions, sampled at one interval: a step is a speed.
        n_directions
            Directions: on the circle from the x axis counter-clockwise, spread evenly over the
            sphere in 3 dimensions; always two on the line.
        n_speeds
            Speeds at most; fewer where the steps show fewer.
        stay
            Whether the last action stands still; ``"auto"``: if 1 % of the steps do.
        noise
            ``"estimate"``: speeds and noise that make the steps most likely as a mixture of all
            actions and a flat part for outliers (EM, number of speeds by BIC): all scatter that
            can be noise is noise. ``"resolution"``: speeds by k-medians on the log of the steps'
            lengths, noise by how far steps are from their nearest action: only what the actions
            do not resolve is noise, so that each step says as much as it can of its direction.
        scale
            ``(d,)``: a length in each dimension that counts the same, for dimensions of different
            units, or ``"spread"``: the typical step in each. Directions are then spread evenly,
            and noise is the same in all dimensions, once they are divided by it. None: one unit.
        sigma
            The noise of all actions (after division by `scale`); None: from the tracks, no less
            than lets a step right between two neighbouring directions be within 3 sigma of both.

        Examples
        --------
        >>> right, up = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.1]], [[0.0, 0.0], [0.1, 1.1], [0.0, 2.0]]
        >>> dynamics = DisplacementDynamics.from_demonstrations([right, up], n_directions=4)
        >>> print(dynamics.coverage([right, up]))
        4 actions explain 100.00 % of 4 steps (within 3.72 sigma).
        """
        from onlooker.dynamics.proposal import propose

        moves = cls.displacements(*Demonstrations(demos).transitions())
        steps, width = propose(
            moves, n_directions, n_speeds, stay=stay, noise=noise, scale=scale, sigma=sigma
        )
        return cls(steps, width)

    @property
    def n_actions(self) -> int:
        """Number of actions, A."""
        return len(self.steps)

    @property
    def n_dims(self) -> int:
        """Dimension of the state."""
        return int(self.steps.shape[1])

    def __repr__(self) -> str:
        low, high = self._sigma.min(), self._sigma.max()
        noise = f"{low:g}" if low == high else f"{low:.3g} to {high:.3g}"
        shown = {"sigma": noise} | {name: repr(prior) for name, prior in self.parameters.items()}
        return (
            f"{type(self).__name__}({self.n_actions} actions in {self.n_dims} dimensions, "
            f"{', '.join(f'{name}={value}' for name, value in shown.items())})"
        )

    def _check(self, name: str, states: Any) -> Array:
        array = as_array(name, states)
        if array.dtype.kind not in "iuf":
            raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}")
        if array.ndim != 2 or array.shape[1] != self.n_dims:
            kind = "integer states" if array.dtype.kind in "iu" else "states"
            raise ValueError(
                f"{name} must be (n, {self.n_dims}) like the steps, got {kind} of shape "
                f"{array.shape}; give {type(self).__name__} steps of that dimension, or use "
                "TabularDynamics for a finite space"
            )
        return as_real_states(name, array)

    def action_rings(self) -> list[Ring]:
        """Which actions are neighbours: a circle of directions for each speed, or a line."""
        return rings_of_steps(self.steps)

    @property
    def angles(self) -> Array:
        """Direction of every action in the plane, counter-clockwise from the x axis."""
        if self.n_dims != 2:
            raise ValueError(f"angles are for the plane; these steps have {self.n_dims} dimensions")
        return np.arctan2(self.steps[:, 1], self.steps[:, 0]) % (2 * np.pi)

    @staticmethod
    def displacements(states: Array, next_states: Array) -> Array:
        """The step from each state to the next, ``(n, d)``."""
        with np.errstate(over="ignore"):
            return next_states - states

    @staticmethod
    def destinations(states: Array, moves: Array) -> Array:
        """Where each state gets by a step: undoes `displacements`."""
        return states + moves

    def misfit(self, loglik: Array) -> Array:
        """How far each transition is from the nearest action's mean, in sigma."""
        return np.sqrt(np.maximum(-2 * (loglik + self._peak).max(axis=1), 0.0))

    def coverage(self, demos: Demonstrations) -> StepCoverage:
        """Which steps of `demos` lie where some action leads, and which do not."""
        from onlooker.dynamics.coverage import coverage_of

        return coverage_of(self, Demonstrations(demos))

    def log_likelihood(self, states: Any, next_states: Any) -> Array:
        """Return ``ln N(s' - s | steps[j], sigma² I)`` as ``(n, A)``."""
        states, next_states = self._check("states", states), self._check("next_states", next_states)
        if len(states) != len(next_states):
            raise ValueError(f"{len(states)} states but {len(next_states)} next_states")
        require_memory(
            32 * len(states) * self.n_actions,
            f"{len(states):,} steps with {self.n_actions:,} actions",
            "choose fewer directions or speeds",
        )
        moves = self.displacements(states, next_states)
        squared = np.zeros((len(states), self.n_actions))
        with np.errstate(over="ignore"):  # too far for a float is -inf, never NaN
            for dim in range(self.n_dims):  # one dimension at a time: no (n, A, d) array
                apart = moves[:, dim, None] - self.steps[None, :, dim]
                squared += (apart / self._sigma[:, dim]) ** 2
        squared *= -0.5
        squared -= self._peak
        return squared

    def sample(self, states: Any, actions: Any, rng: np.random.Generator) -> Array:
        """Draw the next states."""
        states = self._check("states", states)
        actions = check_actions(actions, self.n_actions, len(states))
        noise = rng.normal(0.0, self._sigma[actions], size=states.shape)
        return self.destinations(states, self.steps[actions] + noise)

    def to_arrays(self, name: str) -> tuple[dict[str, Any], dict[str, Array]]:
        """JSON and arrays that `from_arrays` rebuilds the dynamics from."""
        arrays = {f"{name}.steps": self.unit_steps}
        values: dict[str, Any] = {"sigma": self.sigma} | self.parameters
        encoded = {key: encode(v, f"{name}.{key}", arrays, PRIORS) for key, v in values.items()}
        return {"class": type(self).__name__} | encoded, arrays

    @classmethod
    def from_arrays(cls, description: dict[str, Any], arrays: dict[str, Array], name: str) -> Self:
        """Undo `to_arrays`."""
        given = [key for key in ("sigma", "step") if key in description]
        values = {key: decode(description[key], arrays, PRIORS) for key in given}
        return cls(arrays[f"{name}.steps"], **values)


def _check_sigma(sigma: Any, shape: tuple[int, ...]) -> float | Array:
    """A number, or an array that fits steps of this shape."""
    if isinstance(sigma, numbers.Real | str) or sigma is None:
        return positive_number("sigma", sigma)
    array = np.array(finite_array("sigma", sigma, ndim=np.ndim(sigma)))
    n_actions, n_dims = shape
    if array.shape not in ((), (n_actions,), (n_actions, n_dims), (1, n_dims)):
        raise ValueError(
            f"sigma must be a number, ({n_actions},) one per action, or ({n_actions}, {n_dims}) "
            f"like the steps, got shape {array.shape}"
        )
    if array.ndim == 0:
        return positive_number("sigma", float(array))
    if (array <= 0).any():
        where = tuple(int(i) for i in np.argwhere(array <= 0)[0])
        raise ValueError(f"sigma holds {array[where]} at index {where}; noise is above 0")
    return read_only(array)
