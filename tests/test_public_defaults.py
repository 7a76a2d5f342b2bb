"""Numbers that are taken where none is given: with another one, calls that worked answer otherwise.

They are what users' scripts rest on and what the guide describes, so that they change on purpose
only: here, and in the changelog.
"""

import importlib
import inspect
import math

import pytest

import onlooker

ROOMS = (
    "anomaly",
    "baselines",
    "consensus",
    "defaults",
    "dynamics",
    "metrics",
    "planning",
    "plot",
    "worlds",
)
DEFAULTS = {
    "PolicyRecognizer": {"thin": 1, "max_minutes": 30.0},
    "Posterior.next_state_samples": {"n_samples": 1},
    "sample": {
        "concentration": 1.0,
        "draws": 1000,
        "tune": 500,
        "chains": 4,
        "thin": 1,
        "max_minutes": 30.0,
    },
    "anomaly.AnomalyScores.changes": {"false_alarm": 0.05},
    "anomaly.AnomalyScores.ranking": {"min_steps": 1},
    "anomaly.score": {
        "n_replicates": 100,
        "max_replicates": 2000,
        "max_misfit": 5.0,
        "max_step_score": 10.0,
        "interval": 0.9,
    },
    "anomaly.score_policy": {
        "n_replicates": 100,
        "max_replicates": 2000,
        "max_misfit": 5.0,
        "max_step_score": 10.0,
        "interval": 0.9,
    },
    "baselines.BayesianNonparametricIRL": {
        "discount": 0.9,
        "concentration": 1.0,
        "confidence": 100.0,
        "draws": 500,
        "tune": 1000,
        "chains": 2,
        "tolerance": 0.001,
    },
    "baselines.BehavioralCloning": {"rounds": 1},
    "baselines.ExpectationMaximization": {
        "n_controllers": 8,
        "beta": 1.6,
        "n_neighbors": 8,
        "n_starts": 1,
        "tolerance": 1e-06,
        "max_iter": 1000,
    },
    "baselines.GlobalMarginal": {"tolerance": 1e-05, "max_iter": 1000},
    "baselines.MaximumEntropyIRL": {
        "discount": 0.9,
        "l2": 0.004,
        "tolerance": 0.0001,
        "max_iter": 1000,
    },
    "baselines.MaximumMarginIRL": {"discount": 0.9, "tolerance": 0.001, "max_iter": 40},
    "consensus.consensus": {"restarts": 16},
    "consensus.credible_ball": {"level": 0.95},
    "defaults.default_model": {"seed": 0},
    "dynamics.DisplacementDynamics": {"step": 1.0},
    "dynamics.DisplacementDynamics.compass": {"n_directions": 24, "step": 1.0, "sigma": 0.2},
    "dynamics.DisplacementDynamics.from_demonstrations": {"n_directions": 16, "n_speeds": 2},
    "dynamics.GeographicDynamics": {"step": 1.0},
    "metrics.circular_emd": {"circumference": 2 * math.pi},
    "metrics.planar_emd": {"tolerance": 1e-12},
    "planning.greedy_policy": {"tolerance": 0.0},
    "planning.policy_iteration": {"temperature": 0.0, "tolerance": 1e-06, "max_iter": 1000},
    "planning.soft_policy": {"temperature": 1.0},
    "planning.soft_value_iteration": {"temperature": 1.0, "tolerance": 1e-06, "max_iter": 100000},
    "planning.state_visitation": {"discount": 1.0, "tolerance": 1e-10},
    "planning.value_iteration": {"tolerance": 1e-06, "max_iter": 100000},
    "worlds.CircularMotion": {
        "n_actions": 24,
        "n_sectors": 8,
        "radius": 5.0,
        "spread": 1,
        "step": 1.0,
        "sigma": 0.2,
    },
    "worlds.CircularMotion.rollout": {"n_trajectories": 10, "length": 100},
    "worlds.GridWorld": {
        "size": 21,
        "n_actions": 8,
        "step": 1.0,
        "sigma": 1.0,
        "radius": 5.0,
        "n_sectors": 8,
    },
    "worlds.GridWorld.rollout": {"n_trajectories": 100, "length": 10},
    "worlds.GridWorld.with_reward": {
        "size": 21,
        "n_actions": 8,
        "step": 1.0,
        "sigma": 1.0,
        "chance": 0.01,
        "discount": 0.9,
    },
    "worlds.circular_expert": {"n_sectors": 8, "radius": 5.0, "spread": 1},
    "worlds.grid_dynamics": {"size": 21, "n_actions": 8, "step": 1.0, "sigma": 1.0},
    "plot.regions": {"reach": 1.0, "resolution": 151},
}


def numbers_of(called):
    """Parameters that are numbers by default."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(called).parameters.items()
        if type(parameter.default) in (int, float)
    }


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_changes_on_purpose_only(name):
    parts = name.split(".")
    found = onlooker
    if parts[0] in ROOMS:
        found = importlib.import_module(f"onlooker.{parts.pop(0)}")
    for part in parts:
        found = getattr(found, part)
    assert numbers_of(found) == DEFAULTS[name]
