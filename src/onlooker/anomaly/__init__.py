"""Is this still the nominal behaviour?

`score` compares trajectories with a posterior over the nominal policy, `score_policy` with any
given policy. Both ask five questions of a trajectory: does it take other actions, are its steps
too far from what actions do, or too near to it, does it stand still for too long, and did its
behaviour change on the way? P-values count nominal trajectories that are as odd: those of a
reference that the posterior has not seen, be it held out or by `leave_out`; without one, simulated
ones. Steps that no action explains are told apart from steps that are merely unlikely.
"""

from onlooker.anomaly._leave_out import leave_out
from onlooker.anomaly.result import AnomalyScores, StepScores, TrajectoryScores
from onlooker.anomaly.scoring import score, score_policy

__all__ = [
    "AnomalyScores",
    "StepScores",
    "TrajectoryScores",
    "leave_out",
    "score",
    "score_policy",
]
