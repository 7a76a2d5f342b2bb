"""Is this still the nominal behaviour?

`score` compares trajectories with a posterior over the nominal policy, `score_policy` with any
given policy. Both ask five questions of a trajectory, each against simulations of the same steps
from the same states: does it take other actions, are its steps too far from what actions do, or
too near to it, does it stand still for too long, and did it change its ways on the way? Steps
that no action explains are told apart from steps that are merely unlikely.
"""

from onlooker.anomaly.result import AnomalyScores, StepScores, TrajectoryScores
from onlooker.anomaly.scoring import score, score_policy

__all__ = ["AnomalyScores", "StepScores", "TrajectoryScores", "score", "score_policy"]
