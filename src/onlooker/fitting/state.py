"""What the state is and what the model misses, looked at before sampling, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onlooker.choosing.features import STATES, StateChoice, choose_state
from onlooker.choosing.left_out import Gain
from onlooker.choosing.noise import NoiseFit, fit_of_noise
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics.base import Dynamics
from onlooker.dynamics.features import Feature, Heading, Speed
from onlooker.partitions import ScaledAxes

_WORDS = {
    (): "position alone",
    ("heading",): "position and heading",
    ("heading", "speed"): "position, heading and speed",
}


@dataclass(frozen=True)
class Look:
    """What was chosen and found."""

    names: tuple[str, ...] | None
    """What was to join the position; None: chosen."""
    choice: StateChoice | None
    noise: NoiseFit | None
    columns: list[str] | None = None
    """Names of the coordinates."""

    @property
    def features(self) -> list[Feature]:
        """What joins the position."""
        return [] if self.choice is None else self.choice.features

    @property
    def metric(self) -> ScaledAxes | None:
        """How coordinates are weighed."""
        return None if self.choice is None else self.choice.metric

    @property
    def sentences(self) -> list[str]:
        """What was chosen, then what the model misses."""
        return [*self._chosen(), *(f"Note: {text}" for text in self.advice)]

    def _chosen(self) -> list[str]:
        if self.choice is None:
            return []
        found = [f"The state is {_WORDS[self.choice.names]}{self._why(self.choice)}."]
        if self.choice.metric is not None:
            n = len(self.choice.metric.factors)
            names = [*(self.columns or [f"coordinate {i + 1}" for i in range(n)])]
            parts = zip(names, self.choice.metric.factors, strict=False)
            counted = ", ".join(f"{name} by {factor:.2g}" for name, factor in parts)
            found.append(
                f"Distances between states weigh {counted}, which predicts left-out trajectories "
                "better than equal weights."
            )
        return found

    def _why(self, choice: StateChoice) -> str:
        if self.names is not None:
            return " (--features)"
        reasons = [
            f"{joined[-1]} adds {gain}"
            for joined, gain in choice.gains.items()
            if _in(joined, choice)
        ] + [
            f"{joined[-1]} does not help ({gain})"
            for joined, gain in choice.gains.items()
            if not _in(joined, choice)
        ]
        return f": on left-out trajectories {'; '.join(reasons)}" if reasons else ""

    @property
    def advice(self) -> list[str]:
        """What the model misses, a sentence each, with its remedy."""
        found = []
        if self.choice is not None:
            found += self._memory(self.choice) + self._regions(self.choice)
        if self.noise is not None and self.noise.factor != 1:
            found.append(
                f"The noise of the actions does not fit the steps: {self.noise.factor:g} times as "
                f"much explains left-out trajectories better ({self.noise.gain}); give another "
                "--sigma, or more actions by --directions and --speeds."
            )
        return found

    def _memory(self, choice: StateChoice) -> list[str]:
        return [
            f"Steps depend on the step before: with the {joined[-1]} in the state, left-out "
            f"trajectories are predicted better ({gain}); include it by --features "
            f"{','.join(joined)}."
            for joined, gain in choice.gains.items()
            if gain.counts and not _in(joined, choice)
        ]

    def _regions(self, choice: StateChoice) -> list[str]:
        if choice.local.counts:
            return []
        return [
            "A single policy for all states predicts left-out trajectories as well as policies "
            f"that depend on the state (these add {choice.local}): be careful with regions. "
            "More trajectories, or other [[features]] in a --model file, may tell them apart."
        ]

    def to_dict(self) -> dict[str, Any] | None:
        """Plain numbers and lists, for JSON."""
        if self.choice is None:
            return None
        metric = self.choice.metric
        return {
            "joined": list(self.choice.names),
            "weights": [feature.weight for feature in self.choice.features],
            "slow": next((f.unit for f in self.choice.features if isinstance(f, Speed)), None),
            "factors": None if metric is None else list(metric.factors),
            "gains": {",".join(joined): _numbers(g) for joined, g in self.choice.gains.items()},
            "local": _numbers(self.choice.local),
        }


def look(
    demos: Demonstrations,
    dynamics: Dynamics,
    names: tuple[str, ...] | None,
    seed: int,
    columns: list[str] | None = None,
) -> Look:
    """Choose the state, and look whether the actions' noise fits."""
    choice = choose_state(demos, dynamics, names, seed, progress=True)
    if choice is None and names:
        raise ValueError(
            "--features needs positions that were all seen, 30 steps or more, and known dynamics; "
            "use --features none"
        )
    return Look(names, choice, fit_of_noise(demos, dynamics, seed), columns)


def chosen_before(state: Mapping[str, Any]) -> tuple[list[Feature], ScaledAxes | None]:
    """The features and the metric that `Look.to_dict` stored with a run."""
    pairs = zip(state["joined"], state["weights"], strict=True)
    factors, slow = state["factors"], state.get("slow")
    features: list[Feature] = [
        Heading(weight) if name == "heading" else Speed(weight, slow) for name, weight in pairs
    ]
    return features, None if factors is None else ScaledAxes(tuple(factors))


def _in(joined: tuple[str, ...], choice: StateChoice) -> bool:
    return STATES.index(joined) <= STATES.index(choice.names)


def _numbers(gain: Gain) -> dict[str, float]:
    return {"mean": gain.mean, "error": gain.error}
