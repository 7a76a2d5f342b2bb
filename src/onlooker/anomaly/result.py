"""What scoring found, step by step and trajectory by trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onlooker.blocks import slices_of
from onlooker.checks import Array, one_of

if TYPE_CHECKING:
    import pandas as pd


MIN_REFERENCE = 2


@dataclass(frozen=True)
class StepScores:
    """One value a step, trajectory after trajectory; ``(n,)`` arrays.

    Attributes
    ----------
    trajectory, step
        Which trajectory, and which of its steps; both count from 0.
    surprise
        ``h = -ln p(s_{t+1} | s_t, nominal)``; infinite where the nominal policy cannot get there.
    expected, sd
        Mean and standard deviation of `surprise` under the nominal predictive, at the same state.
    excess
        ``(surprise - expected) / sd``.
    p_value
        Probability of a nominal step as surprising. Counted among simulations in continuous
        spaces, so never 0 there; exact, and possibly 0, in finite ones.
    action_surprise, noise_surprise
        The two parts of the surprise, each less its expectation and over its standard deviation,
        at most `max_step_score`. With q_0 the next-state distribution of a policy that takes all
        actions alike, ``action_surprise`` is of ``-ln p / q_0``: another action than the nominal
        ones. ``noise_surprise`` is of ``-ln q_0``: a step that fits no action well, or (below 0)
        suspiciously well.
    misfit
        How far the step is from what *any* action does, in standard deviations (in a finite
        space: what would be as unlikely); infinite where all actions are impossible.
    explained
        Whether some action explains the step: ``misfit <= max_misfit``.
    repeats
        Whether the step ends exactly where it began.
    """

    trajectory: Array
    step: Array
    surprise: Array
    expected: Array
    sd: Array
    excess: Array
    p_value: Array
    action_surprise: Array
    noise_surprise: Array
    misfit: Array
    explained: Array
    repeats: Array


P_VALUES = ("p_value", "p_too_exact", "p_too_noisy", "p_change", "p_stopped", "p_combined")
"""Columns of p-values, in the order of `onlooker.anomaly._replicates.rank`."""


@dataclass(frozen=True)
class TrajectoryScores:
    """One value a trajectory; ``(k,)`` arrays.

    Every p-value counts the trajectories that are as odd in one respect, the trajectory itself
    included, so it is at least ``1 / (m + 1)``. These are m reference trajectories where there are
    any (conformal p-values: right whatever the model misses), else simulations of the model.

    Attributes
    ----------
    n_steps
        Number of steps.
    score
        Sum of the steps' excess surprise about *actions*, over its standard deviation by the mean
        policy. The sign and size that nominal trajectories have depend on what the model misses.
    noise
        The same of the excess surprise about *noise*.
    change
        The highest CUSUM of either part of the surprise, less the logarithm of `n_steps`.
    p_value
        Of `score`: other actions than the nominal ones.
    p_too_exact, p_too_noisy
        Of `noise`, on either side. Too exact: less noise than expected, as of a smoothed or
        computed track. Too noisy: more, as by drift or a glitch.
    p_change
        Of `change`: a stretch that is not nominal.
    p_stopped
        Of `longest_stop`: a frozen sensor.
    p_combined
        Of all five together, without need of a correction: the smallest of them, ranked among
        the smallest of each other trajectory.
    p_model
        `p_combined` if the model were right: among simulations of whole trajectories from the
        same start. NaN if none were made.
    longest_stop
        Most steps in a row that ended exactly where they began.
    n_unexplained
        Steps that no action explains.
    onset, onset_low, onset_high
        First step of the stretch where the CUSUM rises to its peak: the most probable one, and a
        credible interval; -1 if no step exceeded its expectation. Mind `p_change` first.
    end
        Last step of that stretch.
    changed
        ``"action_surprise"`` or ``"noise_surprise"``: whose CUSUM that is.
    behaviour
        Where `p_combined` is at most 5 %: the one behaviour that explains the trajectory, or the
        stretch that changed, best, such as "heads for (4, −2)"; "" where none does better than the
        nominal policy.
    gain
        How much better, in nats.
    """

    n_steps: Array
    score: Array
    noise: Array
    change: Array
    p_value: Array
    p_too_exact: Array
    p_too_noisy: Array
    p_change: Array
    p_stopped: Array
    p_combined: Array
    p_model: Array
    longest_stop: Array
    n_unexplained: Array
    onset: Array
    onset_low: Array
    onset_high: Array
    end: Array
    changed: Array
    behaviour: Array
    gain: Array


@dataclass(frozen=True)
class AnomalyScores:
    """How far trajectories are from nominal; made by `score` and `score_policy`.

    Attributes
    ----------
    names
        Of the trajectories, as text; "0", "1", ... where they have none.
    steps, trajectories
        The scores.
    settings
        How they were made: the options of `score`, and `n_reference`, the number of reference
        trajectories that the p-values count on; 0: they are those of the model.
    """

    names: list[Any]
    steps: StepScores
    trajectories: TrajectoryScores
    settings: dict[str, Any]

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        least = float(self.trajectories.p_combined.min())
        return (
            f"AnomalyScores({len(self)} trajectories, {len(self.steps.step)} steps, "
            f"{int((~self.steps.explained).sum())} unexplained; smallest p_combined {least:.2g})"
        )

    def to_frame(self, of: Literal["trajectories", "steps"] = "trajectories") -> pd.DataFrame:
        """A table with one row a trajectory (indexed by name), or one row a step.

        Trajectories also get ``q_value`` and ``q_combined``: `p_value` and `p_combined` adjusted
        for the number of trajectories (Benjamini and Hochberg). Calling those below 0.1 anomalous
        makes about one in ten of them a false alarm.
        """
        import pandas as pd

        if one_of("of", of, ("trajectories", "steps")) == "steps":
            columns = _columns(self.steps)
            columns["trajectory"] = _labels([self.names[i] for i in self.steps.trajectory])
            return pd.DataFrame(columns)
        columns = _columns(self.trajectories)
        columns["q_value"] = adjust(self.trajectories.p_value)
        columns["q_combined"] = adjust(self.trajectories.p_combined)
        return pd.DataFrame(columns, index=pd.Index(_labels(self.names), name="trajectory"))

    def ranking(self, *, by: str = "score", min_steps: int = 1) -> pd.DataFrame:
        """The table of trajectories, most anomalous first.

        Parameters
        ----------
        by
            A column: ``"score"`` (largest first), a p-value (smallest first; ties by score), ...
        min_steps
            Leave out what is shorter; q-values are adjusted for what is left.
        """
        frame = self.to_frame()
        one_of("by", by, list(frame.columns))
        frame = frame[frame["n_steps"] >= min_steps].copy()
        for kind in ("value", "combined"):
            frame[f"q_{kind}"] = adjust(frame[f"p_{kind}"].to_numpy())
        rising = by.startswith(("p_", "q_"))
        keys = [by] if by == "score" else [by, "score"]
        return frame.sort_values(keys, ascending=[rising, False][: len(keys)], kind="stable")

    def changes(self, false_alarm: float = 0.05) -> pd.DataFrame:
        """Where each trajectory ceased to be nominal, for those whose CUSUM says that it did.

        Parameters
        ----------
        false_alarm
            Share of nominal trajectories, of any length, that may be listed wrongly.
        """
        if not 0 < false_alarm < 1:
            raise ValueError(f"false_alarm must be between 0 and 1, got {false_alarm!r}")
        frame = self.to_frame()
        found = frame[frame["p_change"] <= false_alarm]
        columns = ["onset", "onset_low", "onset_high", "end", "changed", "p_change", "n_steps"]
        return found[columns].sort_values("p_change", kind="stable")

    def conformal_p_values(self, nominal: AnomalyScores, by: str = "score") -> Array:
        """P-values ``(k,)`` from other trajectories that are known to be nominal.

        The share of nominal trajectories that are as odd. At most 5 % of nominal ones fall below
        0.05, whatever the model, if these and the known ones are exchangeable: made alike, from
        starts and of lengths alike. The price: none is below ``1 / (len(nominal) + 1)``.

        Parameters
        ----------
        nominal
            Scores of nominal trajectories by posteriors that have not seen them.
        by
            What to compare: ``"score"``, the statistic of a p-value (``"p_change"``), or
            ``"combined"``: all of them together, without need of a correction.
        """
        known = {"score": "p_value", "combined": "p_combined"}
        column = known.get(by, by)
        if column not in P_VALUES:
            raise ValueError(
                f"by must be 'score', 'combined' or a p-value of the trajectories, got {by!r}"
            )
        return self._rank_among(nominal)[:, P_VALUES.index(column)]

    def calibrated(self, nominal: AnomalyScores) -> AnomalyScores:
        """The same scores with all p-values but `p_model` from nominal trajectories."""
        if len(nominal) < MIN_REFERENCE:
            raise ValueError(
                f"p-values need {MIN_REFERENCE} reference trajectories or more, got "
                f"{len(nominal)}; with n of them the smallest p-value is 1 / (n + 1)"
            )
        p_values = dict(zip(P_VALUES, self._rank_among(nominal).T, strict=True))
        return replace(
            self,
            trajectories=replace(self.trajectories, **p_values),
            settings=self.settings | {"n_reference": len(nominal)},
        )

    def joined(self, other: AnomalyScores) -> AnomalyScores:
        """These trajectories and others, as a reference."""
        steps = _append(self.steps, other.steps)
        moved = other.steps.trajectory + len(self)
        steps.trajectory[len(self.steps.trajectory) :] = moved
        return AnomalyScores(
            [*self.names, *other.names],
            steps,
            _append(self.trajectories, other.trajectories),
            self.settings,
        )

    def _rank_among(self, nominal: AnomalyScores) -> Array:
        """``(k, 6)``: p-values of each trajectory among the nominal ones.

        What the model misses makes nominal trajectories more or less surprising by some amount
        per step, so that scores of long ones lie farther from 0. The mean per step, over the
        nominal trajectories and the one that is judged, is taken out first.
        """
        from onlooker.anomaly._replicates import oddities, rank

        mine, pool = _statistics(self.trajectories), _statistics(nominal.trajectories)
        lengths, others = self.trajectories.n_steps, nominal.trajectories.n_steps
        out = np.empty((len(mine), len(P_VALUES)))
        for part in slices_of(len(mine), pool.size):
            one, n = mine[part].copy(), lengths[part]
            repeated = np.repeat(pool[:, None], len(one), axis=1)
            for column in (0, 1):
                sums = np.clip(np.sqrt(others) * pool[:, column], -1e6, 1e6).sum()
                own = np.clip(np.sqrt(n) * one[:, column], -1e6, 1e6)
                per_step = (sums + own) / (others.sum() + n)
                one[:, column] -= np.sqrt(n) * per_step
                repeated[:, :, column] -= np.sqrt(others)[:, None] * per_step
            out[part] = rank(*(np.round(oddities(v), 9) for v in (one, repeated)))
        return out

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers for JSON; infinite values become None."""
        return {
            "names": list(_labels(self.names)),
            "trajectories": {k: _plain(v) for k, v in _columns(self.trajectories).items()},
            "steps": {k: _plain(v) for k, v in _columns(self.steps).items()},
            "settings": dict(self.settings),
        }


def adjust(p_values: Array) -> Array:
    """Benjamini and Hochberg's adjusted p-values."""
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p_values)) if len(p_values) else p_values


def _statistics(scores: TrajectoryScores) -> Array:
    """``(k, 4)``: as `_kernels.statistics` has them."""
    return np.column_stack([scores.score, scores.noise, scores.change, scores.longest_stop])


def _append(one: Any, other: Any) -> Any:
    """Two tables as one."""
    columns = _columns(other)
    return type(one)(**{k: np.concatenate([v, columns[k]]) for k, v in _columns(one).items()})


def _columns(scores: Any) -> dict[str, Any]:
    return {field.name: getattr(scores, field.name) for field in fields(scores)}


def _labels(names: Sequence[Any]) -> list[Any]:
    return [name.item() if isinstance(name, np.generic) else name for name in names]


def _plain(values: Array) -> list[Any]:
    if values.dtype.kind != "f":
        return list(values.tolist())
    return [value if np.isfinite(value) else None for value in values.tolist()]
