"""Score trajectories against the nominal behaviour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.anomaly._changes import locate
from onlooker.anomaly._predictive import MIN_EXCEEDANCES, Predictive, misfit, same_state
from onlooker.anomaly._replicates import (
    MIN_SD,
    N_INNER,
    DrawnPolicies,
    KnownPolicy,
    NominalPolicy,
    Steps,
    model_p_values,
    require_room,
)
from onlooker.anomaly.explaining import explained
from onlooker.anomaly.result import P_VALUES, AnomalyScores, StepScores, TrajectoryScores
from onlooker.checks import as_policy, positive_integer, positive_number
from onlooker.demonstrations import Demonstrations, distinct_states
from onlooker.partitions.base import Strategy
from onlooker.progress import in_terminal, make_progress

if TYPE_CHECKING:
    from onlooker.checks import Array
    from onlooker.dynamics.base import Dynamics
    from onlooker.posterior import Posterior

_LONG = 50_000_000  # numbers to compute above which a bar is shown unasked


def score(
    posterior: Posterior | Any,
    demos: Demonstrations | Any,
    *,
    reference: AnomalyScores | Demonstrations | Any = None,
    dynamics: Dynamics | None = None,
    n_replicates: int = 100,
    max_replicates: int = 2000,
    simulate: bool = True,
    parameter_uncertainty: bool = True,
    extrapolate: Strategy | None = None,
    max_misfit: float = 5.0,
    max_step_score: float = 10.0,
    interval: float = 0.9,
    random_state: Any = None,
    progress: bool | None = None,
) -> AnomalyScores:
    """Score trajectories against the posterior over the nominal policy.

    A step's surprise ``-ln p(s_{t+1} | s_t, nominal)`` says little by itself: it has units, and
    where the nominal policy is erratic it is large for good reasons. So each is compared with its
    expectation at the same state. P-values of trajectories are ranks among `reference`
    trajectories that are known to be nominal. Without these they are ranks among whole
    trajectories that are simulated from the same start: right if the model is.

    Parameters
    ----------
    posterior
        A `Posterior`, a fitted `PolicyRecognizer`, or any fitted estimator with
        ``predict_proba`` and ``dynamics`` (which knows no parameter uncertainty).
    demos
        Trajectories to judge. Not those that the posterior was sampled from: a trajectory that
        helped to define what is nominal looks more so than it is, and its p-values are too large.
    reference
        Nominal trajectories that the posterior has not seen either, or their scores
        (`leave_out` has those of the trajectories that it has seen).
    dynamics
        The model of the world; by default the posterior's, where unknown parameters of it take
        their posterior means.
    n_replicates, max_replicates
        Simulations of each trajectory and of each step, and of steps with a small p-value.
    simulate
        Whether to simulate trajectories, for `p_model`, and for all p-values without a reference.
    parameter_uncertainty
        Each simulated trajectory acts by another draw of the policy. False: all act by the mean
        policy, as if it were known.
    extrapolate
        As in `Posterior.policy`. ``"map"`` takes one cluster's policy for certain: nominal steps
        near a border would look anomalous.
    max_misfit
        Standard deviations from all actions beyond which a step counts as unexplained.
    max_step_score
        Most that one step may add to a trajectory's score, in its standard deviations: a single
        glitch is an alarm of its own (`n_unexplained`), not a change of behaviour.
    interval
        Probability of the interval for the onset of a change.
    random_state
        Seed or generator.
    progress
        Whether to show a bar; None: in a terminal, if it will take long.
    """
    options = _Options.check(n_replicates, max_replicates, max_misfit, max_step_score, interval)
    rng = np.random.default_rng(random_state)
    recognised = getattr(posterior, "posterior_", None)
    if recognised is not None:
        extrapolate = extrapolate or getattr(posterior, "extrapolate", None)
        posterior = recognised
    drawn = hasattr(posterior, "policy") and hasattr(posterior, "labels")
    if drawn:
        dynamics = dynamics if dynamics is not None else posterior.mean_dynamics
        mean = partial(posterior.policy, extrapolate=extrapolate)
    elif hasattr(posterior, "predict_proba"):
        dynamics = dynamics if dynamics is not None else getattr(posterior, "dynamics", None)
        mean = posterior.predict_proba
    else:
        raise TypeError(
            "posterior must be a Posterior or a fitted estimator with predict_proba, got "
            f"{type(posterior).__name__}; for bare probabilities use score_policy"
        )
    if dynamics is None:
        raise ValueError("the model was made without dynamics; give dynamics=")
    actor: NominalPolicy = KnownPolicy(mean)
    if drawn and parameter_uncertainty and simulate:
        actor = DrawnPolicies(posterior, extrapolate, options.n_replicates)
    judge = _Judge(mean, actor if simulate else None, dynamics, options, rng, progress)
    return judge.score(demos, reference)


def score_policy(
    policy: Any,
    dynamics: Dynamics,
    demos: Demonstrations | Any,
    *,
    reference: AnomalyScores | Demonstrations | Any = None,
    n_replicates: int = 100,
    max_replicates: int = 2000,
    simulate: bool = True,
    max_misfit: float = 5.0,
    max_step_score: float = 10.0,
    interval: float = 0.9,
    random_state: Any = None,
    progress: bool | None = None,
) -> AnomalyScores:
    """Score trajectories against a policy that is known.

    Parameters
    ----------
    policy
        A function that takes n states and returns their action probabilities, ``(n, A)``; in a
        finite space also a table, ``(S, A)``.
    dynamics, demos
        The model of the world, and the trajectories.
    reference, n_replicates, max_replicates, simulate, max_misfit, max_step_score, interval, \
random_state, progress
        As in `score`.
    """
    options = _Options.check(n_replicates, max_replicates, max_misfit, max_step_score, interval)
    if not callable(policy):
        n_states = getattr(dynamics, "n_states", None)
        if n_states is None:
            raise TypeError(
                "policy must be a function of states: simulated trajectories go where the others "
                "did not; a table will do in a finite space only"
            )
        policy = as_policy("policy", policy, (n_states, dynamics.n_actions)).__getitem__
    mean = partial(_checked, policy, dynamics.n_actions)
    actor = KnownPolicy(mean) if simulate else None
    rng = np.random.default_rng(random_state)
    return _Judge(mean, actor, dynamics, options, rng, progress).score(demos, reference)


def _checked(policy: Callable[[Array], Any], n_actions: int, states: Array) -> Array:
    return as_policy("policy(states)", policy(states), (len(states), n_actions))


@dataclass(frozen=True)
class _Options:
    n_replicates: int
    max_replicates: int
    max_misfit: float
    max_step_score: float
    interval: float

    @classmethod
    def check(
        cls,
        n_replicates: int,
        max_replicates: int,
        max_misfit: float,
        max_step_score: float,
        interval: float,
    ) -> _Options:
        n_replicates = positive_integer("n_replicates", n_replicates, minimum=MIN_EXCEEDANCES)
        most = positive_integer("max_replicates", max_replicates)
        max_misfit = positive_number("max_misfit", max_misfit)
        max_step_score = positive_number("max_step_score", max_step_score)
        if not 0 < interval < 1:
            raise ValueError(f"interval must be between 0 and 1, got {interval!r}; 0.9 is usual")
        return cls(n_replicates, max(most, n_replicates), max_misfit, max_step_score, interval)


@dataclass(frozen=True)
class _Judge:
    """Scores trajectories by one model."""

    mean: Callable[[Array], Array]
    actor: NominalPolicy | None
    dynamics: Dynamics
    options: _Options
    rng: np.random.Generator
    progress: bool | None

    def score(self, demos: Any, reference: Any) -> AnomalyScores:
        demos = demos if isinstance(demos, Demonstrations) else Demonstrations(demos)
        if self.actor is not None:
            require_room(self.options.n_replicates, 5 * 8 * int(demos.lengths.max()))
        found = self._statistics(demos)
        if self.actor is not None:
            found = self._with_model_p_values(found, demos)
        if reference is not None:
            if not isinstance(reference, AnomalyScores):
                known = reference
                if not isinstance(known, Demonstrations):
                    known = Demonstrations(known)
                reference = self._statistics(known)
            found = found.calibrated(reference)
        return explained(found, demos, self.dynamics)

    def _bar(self, work: int, task: str) -> Any:
        progress = self.progress
        if progress is None:
            progress = work * self.dynamics.n_actions > _LONG and in_terminal()
        return make_progress(progress, work, task, "steps")

    def _with_model_p_values(self, found: AnomalyScores, demos: Demonstrations) -> AnomalyScores:
        assert self.actor is not None
        options, work = self.options, self.options.n_replicates * demos.n_transitions
        with self._bar(work * (1 + N_INNER), "simulating nominal trajectories") as bar:
            p_values = model_p_values(
                self.actor, self.dynamics, demos, options.n_replicates, options.max_step_score,
                self.rng, lambda n: bar.advance((1 + N_INNER) * n),
            )  # fmt: skip
        columns = dict(zip(P_VALUES, p_values.T.copy(), strict=True))
        columns["p_model"] = columns["p_combined"].copy()
        return replace(found, trajectories=replace(found.trajectories, **columns))

    def _statistics(self, demos: Demonstrations) -> AnomalyScores:
        """Everything but p-values of trajectories."""
        options = self.options
        states, next_states = demos.transitions()
        distinct, index = distinct_states(states)
        predictive = Predictive(self.dynamics, states, self.mean(distinct), index)
        loglik = np.asarray(self.dynamics.log_likelihood(states, next_states))
        if loglik.shape != (len(states), predictive.n_actions):
            raise ValueError(
                f"dynamics.log_likelihood gave shape {loglik.shape} for {len(states)} steps and "
                f"{predictive.n_actions} actions of the policy"
            )
        surprise = predictive.surprise(np.arange(len(states)), loglik)
        work = options.n_replicates * len(states)
        with self._bar(work, "simulating steps") as bar:
            moments = predictive.moments(
                surprise.total, options.n_replicates, options.max_replicates, self.rng, bar.advance
            )
            bar.update(work)  # how many are needed is only known in the end
        parts = (moments.action_surprise, moments.noise_surprise)
        excess = np.stack(surprise) - np.stack([part.mean for part in parts])
        scales = np.maximum(np.stack([part.sd for part in parts]), MIN_SD)
        how_far = misfit(self.dynamics, loglik, moments.total.mean)
        standardised = np.minimum(excess / scales, options.max_step_score)
        steps = StepScores(
            trajectory=demos.trajectory_of(),
            step=demos.transition_starts() - demos.offsets[demos.trajectory_of()],
            surprise=surprise.total,
            expected=moments.total.mean,
            sd=moments.total.sd,
            excess=(surprise.total - moments.total.mean) / np.maximum(moments.total.sd, MIN_SD),
            p_value=moments.p_value,
            action_surprise=standardised[0],
            noise_surprise=standardised[1],
            misfit=how_far,
            explained=how_far <= options.max_misfit,
            repeats=same_state(states, next_states),
        )
        offsets = np.concatenate([[0], np.cumsum(demos.lengths - 1)])
        rows = Steps(*(values[None] for values in (*excess, *scales, steps.repeats)))
        statistics = rows.statistics(offsets, options.max_step_score)[0]
        changes = locate(standardised[0], standardised[1], offsets, options.interval)
        unexplained = np.bincount(steps.trajectory, weights=~steps.explained, minlength=len(demos))
        nothing = {name: np.full(len(demos), np.nan) for name in (*P_VALUES, "p_model")}
        trajectories = TrajectoryScores(
            n_steps=np.diff(offsets),
            score=statistics[:, 0],
            noise=statistics[:, 1],
            change=statistics[:, 2],
            longest_stop=statistics[:, 3].astype(np.int64),
            n_unexplained=unexplained.astype(np.int64),
            onset=changes.onset,
            onset_low=changes.low,
            onset_high=changes.high,
            end=changes.end,
            changed=np.array(["action_surprise", "noise_surprise"])[changes.part],
            behaviour=np.full(len(demos), ""),
            gain=np.full(len(demos), np.nan),
            **nothing,
        )
        return AnomalyScores(
            names=list(demos.names),
            steps=steps,
            trajectories=trajectories,
            settings=asdict(options)
            | {
                "parameter_uncertainty": isinstance(self.actor, DrawnPolicies),
                "n_reference": 0,
            },
        )
