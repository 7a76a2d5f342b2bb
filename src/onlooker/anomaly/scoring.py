"""Score trajectories against the nominal behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.anomaly._changes import locate
from onlooker.anomaly._predictive import (
    MIN_EXCEEDANCES,
    Predictive,
    SimulatedSteps,
    misfit,
    same_state,
)
from onlooker.anomaly._replicate_policy import DrawnPolicies, KnownPolicy, ReplicatePolicy
from onlooker.anomaly._replicate_test import MIN_SD, ReplicateTest
from onlooker.anomaly.result import AnomalyScores, StepScores, TrajectoryScores
from onlooker.checks import as_policy, positive_integer, positive_number
from onlooker.demonstrations import Demonstrations, distinct_states
from onlooker.partitions.base import Strategy
from onlooker.progress import in_terminal, make_progress

if TYPE_CHECKING:
    from onlooker.dynamics.base import Dynamics
    from onlooker.posterior import Posterior

_LONG = 50_000_000  # numbers to compute above which a bar is shown unasked


def score(
    posterior: Posterior | Any,
    demos: Demonstrations | Any,
    *,
    dynamics: Dynamics | None = None,
    n_replicates: int = 200,
    max_replicates: int = 2000,
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
    expectation at the same state, and each trajectory with replicates: the same steps from the
    same states, actions by the nominal policy. P-values are ranks among the replicates, valid
    whatever the length; those that few replicates reach get more of them.

    Parameters
    ----------
    posterior
        A `Posterior`, a fitted `PolicyRecognizer`, or any fitted estimator with
        ``predict_proba`` and ``dynamics`` (which knows no parameter uncertainty).
    demos
        Trajectories to judge. Best not those that the posterior was sampled from: a trajectory
        that helped to define what is nominal looks more so than it is, and its p-values are too
        large.
    dynamics
        The model of the world; by default the posterior's, where unknown parameters of it take
        their posterior means.
    n_replicates, max_replicates
        Replicates of each trajectory, and of those with a small p-value.
    parameter_uncertainty
        Each replicate acts by another draw of the policy, as is right for trajectories from a
        policy that is known as well as the posterior knows it. False: all act by the mean policy,
        so the errors of that mean add up along a trajectory, and long ones get flagged.
    extrapolate
        As in `Posterior.policy`, but ``"local"`` by default for the spatial priors: ``"map"``
        takes one cluster's policy for certain, so nominal steps near a border are then called
        anomalous.
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
    demos = demos if isinstance(demos, Demonstrations) else Demonstrations(demos)
    recognised = getattr(posterior, "posterior_", None)
    if recognised is not None:
        extrapolate = extrapolate or getattr(posterior, "extrapolate", None)
        posterior = recognised
    states, _ = demos.transitions()
    distinct, index = distinct_states(states)
    drawn = hasattr(posterior, "policy") and hasattr(posterior, "labels")
    if drawn:
        if extrapolate is None and posterior.prior.reach is not None:
            extrapolate = "local"
        dynamics = dynamics if dynamics is not None else posterior.mean_dynamics
        policy = posterior.policy(distinct, extrapolate=extrapolate)
    elif hasattr(posterior, "predict_proba"):
        dynamics = dynamics if dynamics is not None else getattr(posterior, "dynamics", None)
        policy = posterior.predict_proba(distinct)
    else:
        raise TypeError(
            "posterior must be a Posterior or a fitted estimator with predict_proba, got "
            f"{type(posterior).__name__}; for bare probabilities use score_policy"
        )
    if dynamics is None:
        raise ValueError("the model was made without dynamics; give dynamics=")
    predictive = Predictive(dynamics, states, policy, index)
    options = _Options.check(n_replicates, max_replicates, max_misfit, max_step_score, interval)
    actor: ReplicatePolicy = KnownPolicy(predictive)
    if drawn and parameter_uncertainty:
        actor = DrawnPolicies(posterior, states, extrapolate, options.n_replicates)
    return _score(predictive, demos, actor, options, random_state, progress)


def score_policy(
    policy: Any,
    dynamics: Dynamics,
    demos: Demonstrations | Any,
    *,
    n_replicates: int = 200,
    max_replicates: int = 2000,
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
        ``(n, A)``: action probabilities at the start of every transition of `demos`, pooled.
    dynamics, demos
        The model of the world, and the trajectories.
    n_replicates, max_replicates, max_misfit, max_step_score, interval, random_state, progress
        As in `score`.
    """
    demos = demos if isinstance(demos, Demonstrations) else Demonstrations(demos)
    policy = as_policy("policy", policy, (demos.n_transitions, dynamics.n_actions))
    states, _ = demos.transitions()
    distinct, index = distinct_states(policy)
    predictive = Predictive(dynamics, states, distinct, index)
    options = _Options.check(n_replicates, max_replicates, max_misfit, max_step_score, interval)
    return _score(predictive, demos, KnownPolicy(predictive), options, random_state, progress)


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


def _score(
    predictive: Predictive,
    demos: Demonstrations,
    actor: ReplicatePolicy,
    options: _Options,
    random_state: Any,
    progress: bool | None,
) -> AnomalyScores:
    rng = np.random.default_rng(random_state)
    states, next_states = demos.transitions()
    loglik = np.asarray(predictive.dynamics.log_likelihood(states, next_states))
    if loglik.shape != (len(states), predictive.n_actions):
        raise ValueError(
            f"dynamics.log_likelihood gave shape {loglik.shape} for {len(states)} steps and "
            f"{predictive.n_actions} actions of the policy"
        )
    surprise = predictive.surprise(np.arange(len(states)), loglik)
    seen = SimulatedSteps(surprise, same_state(states, next_states))
    work = 2 * options.n_replicates * len(states)
    first = np.concatenate([[0], np.cumsum(demos.lengths - 1)])
    if progress is None:
        progress = work * predictive.n_actions > _LONG and in_terminal()
    with make_progress(progress, work, "simulating the nominal behaviour", "steps") as bar:
        moments = predictive.moments(
            surprise.total, options.n_replicates, options.max_replicates, rng, bar.advance
        )
        parts = (moments.action_surprise, moments.noise_surprise)
        expected = np.stack([part.mean for part in parts])
        scales = np.maximum(np.stack([part.sd for part in parts]), MIN_SD)
        test = ReplicateTest(
            predictive, actor, seen, expected, scales, first, options.max_step_score,
            options.n_replicates, options.max_replicates, rng, bar.advance,
        )  # fmt: skip
        columns = test.all()
        bar.update(work)  # how many are needed is only known in the end
    how_far = misfit(predictive.dynamics, loglik, moments.total.mean)
    standardised = np.minimum((np.stack(surprise) - expected) / scales, options.max_step_score)
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
        repeats=seen.repeats,
    )
    changes = locate(standardised[0], standardised[1], first, options.interval)
    unexplained = np.bincount(steps.trajectory, weights=~steps.explained, minlength=len(demos))
    trajectories = TrajectoryScores(
        n_steps=np.diff(first),
        n_unexplained=unexplained.astype(np.int64),
        onset=changes.onset,
        onset_low=changes.low,
        onset_high=changes.high,
        end=changes.end,
        changed=np.array(["action_surprise", "noise_surprise"])[changes.part],
        **columns,
    )
    names = getattr(demos, "names", None)
    return AnomalyScores(
        names=list(range(len(demos))) if names is None else list(names),
        steps=steps,
        trajectories=trajectories,
        settings={
            "n_replicates": options.n_replicates,
            "max_replicates": options.max_replicates,
            "max_misfit": options.max_misfit,
            "max_step_score": options.max_step_score,
            "interval": options.interval,
            "parameter_uncertainty": isinstance(actor, DrawnPolicies),
        },
    )
