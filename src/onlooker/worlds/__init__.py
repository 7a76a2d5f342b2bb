"""Simulators with a known expert, to learn from and to be judged by."""

from onlooker.worlds.circular import CircularMotion, circular_expert
from onlooker.worlds.grid import GridWorld, grid_dynamics

__all__ = ["CircularMotion", "GridWorld", "circular_expert", "grid_dynamics"]
