"""The consensus of many partitions, and how far to trust it.

A sampler gives many partitions of the same nodes. `consensus` finds the one with the least expected
loss, by default under the variation of information; `credible_ball` says how far the draws spread
around it. Labels may be any non-negative integers: only who is together with whom matters.

    result = consensus(draws, random_state=0)
    result.labels, result.membership
    credible_ball(result.labels, draws).radius

The search is that of Dahl, Johnson and Müller (2022), "Search algorithms and loss functions for
Bayesian clustering" (the R package salso); the ball is that of Wade and Ghahramani (2018),
"Bayesian cluster analysis: point estimation and credible balls".
"""

from onlooker.consensus.ball import CredibleBall, credible_ball
from onlooker.consensus.draws import canonical, co_clustering
from onlooker.consensus.losses import variation_of_information
from onlooker.consensus.search import ConsensusResult, consensus

__all__ = [
    "ConsensusResult",
    "CredibleBall",
    "canonical",
    "co_clustering",
    "consensus",
    "credible_ball",
    "variation_of_information",
]
