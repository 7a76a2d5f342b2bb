"""Methods to compare with: all learn from states alone and share one interface."""

from onlooker.baselines.base import Baseline, BaselineWarning, Convergence
from onlooker.baselines.behavioral_cloning import BehavioralCloning
from onlooker.baselines.bnirl import BayesianNonparametricIRL
from onlooker.baselines.expectation_maximization import ExpectationMaximization
from onlooker.baselines.maximum_entropy import MaximumEntropyIRL
from onlooker.baselines.maximum_margin import MaximumMarginIRL
from onlooker.baselines.trivial import GlobalMarginal, UniformPolicy

__all__ = [
    "Baseline",
    "BaselineWarning",
    "BayesianNonparametricIRL",
    "BehavioralCloning",
    "Convergence",
    "ExpectationMaximization",
    "GlobalMarginal",
    "MaximumEntropyIRL",
    "MaximumMarginIRL",
    "UniformPolicy",
]
