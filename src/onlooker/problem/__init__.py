"""The one form that every model sees: nodes, transitions and their likelihoods."""

from onlooker.problem.nodes import Landmarks
from onlooker.problem.problem import Layout, Paths, Problem

__all__ = ["Landmarks", "Layout", "Paths", "Problem"]
