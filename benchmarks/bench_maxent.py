"""Maximum entropy IRL on the paper's 21×21 grid, against ``imitation`` and ``irl-maxent``.

python -m benchmarks maxent

Two settings, since the peers cannot do the same. Plans of ten states, without discount, as
``imitation`` has them (a reward a state, fitted to visits):

- "exact": the expected visits of a soft expert, which some policy has, so that they can be matched;
- "sampled": 1,000 trajectories of the optimal expert, whose visits no policy has; ours has a small
  penalty, ``imitation`` stops after its steps.

Walks to a goal that ends them, as ``irl-maxent`` wants them: 500 walks of a soft expert. Processor
seconds on one core; compiling is left out. The residual is the largest difference between visits
seen and expected; the error is the earth mover's distance between next-state distributions of the
learned and the expert's policy, averaged over all states, in grid steps. Each peer is installed in
an environment of its own, and skipped with a message where that fails.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _peers
from benchmarks._measure import print_note, print_table
from onlooker import Demonstrations
from onlooker.baselines import MaximumEntropyIRL
from onlooker.baselines.base import discounted_visits
from onlooker.baselines.maximum_entropy import _Episodic, _lbfgs
from onlooker.dynamics import TabularDynamics
from onlooker.metrics import planar_emd
from onlooker.planning import soft_value_iteration, state_visitation
from onlooker.planning.transitions import as_transitions
from onlooker.worlds import GridWorld

LENGTH = 10
DISCOUNT = 0.9
GOAL = 220  # the middle
HERE = Path(__file__).parent


def plan(world: GridWorld, reward: Any) -> Any:
    """The soft policies of each step; the last state's value is its reward: no action follows."""
    return soft_value_iteration(
        world.dynamics, reward, 1.0, horizon=LENGTH - 1, initial=reward
    ).policy


def emd(dynamics: TabularDynamics, coordinates: Any, expert: Any, policy: Any) -> float:
    """Mean earth mover's distance between the next states of two policies."""
    states = np.arange(len(coordinates))
    ours, theirs = (dynamics.next_state_probabilities(states, one) for one in (policy, expert))
    return float(planar_emd(ours, theirs, coordinates).mean())


# -- plans of ten states ---------------------------------------------------------------------------


def ours_exact(world: GridWorld, visits: Any, starts: Any, tolerance: float) -> Any:
    """Seconds, and the policies of each step; what `fit` does, given visits instead of data."""
    began = time.process_time()
    some_demos = world.rollout(1, LENGTH, random_state=0)[0]
    objective = _Episodic(some_demos, as_transitions(world.dynamics), 1.0, "causal")
    objective.seen, objective.starts = visits, {LENGTH: starts}

    def loss(reward: Any) -> tuple[float, Any]:
        value, slope = objective(reward)
        return -value, -slope

    reward = _lbfgs(loss, len(visits), tolerance, 1000, lambda done, note: None).x
    return time.process_time() - began, plan(world, reward)


def ours_sampled(world: GridWorld, demos: Any, l2: float) -> Any:
    """Seconds, and the policies of each step."""
    began = time.process_time()
    model = MaximumEntropyIRL(world.dynamics, discount=1.0, horizon="length", l2=l2).fit(demos)
    return time.process_time() - began, plan(world, model.reward_)


def theirs(world: GridWorld, visits: Any, starts: Any, steps: int) -> Any:
    """The same of ``imitation``."""
    given = {"table": world.dynamics.toarray(), "visits": visits, "starts": starts}
    given |= {"length": LENGTH, "steps": steps}
    found = _peers.ask("imitation", HERE / "_ask_imitation.py", given, limit=300)
    return float(found["seconds"]), found["policies"]


def plans(steps: int) -> tuple[list[list[object]], list[str]]:
    """Rows of the table, and what is missing."""
    world = GridWorld.with_reward(1)
    rows: list[list[object]] = []
    missing: list[str] = []

    def report(setting: str, name: str, found: Any, expert: Any, visits: Any, starts: Any) -> None:
        seconds, policies = found
        expected = state_visitation(world.dynamics, policies, starts, horizon=LENGTH)
        error = emd(world.dynamics, world.coordinates, expert, policies[0])
        residual = np.abs(expected - visits).max()
        rows.append([setting, name, f"{seconds:.2f}", f"{residual:.1e}", f"{error:.3f}"])

    def rival(setting: str, expert: Any, visits: Any, starts: Any) -> None:
        try:
            found = theirs(world, visits, starts, steps)
        except _peers.Absent as why:
            missing.append(f"Left out ({setting}): {why}.")
        else:
            report(setting, f"imitation, up to {steps:,} steps", found, expert, visits, starts)

    policies = plan(world, 30.0 * np.asarray(world.reward))
    starts = np.full(441, 1 / 441)
    visits = state_visitation(world.dynamics, policies, starts, horizon=LENGTH)
    for tolerance in (1e-3, 1e-5):
        found = ours_exact(world, visits, starts, tolerance)
        report("exact", f"onlooker, tolerance {tolerance:g}", found, policies[0], visits, starts)
    rival("exact", policies[0], visits, starts)

    demos, _ = world.rollout(1000, LENGTH, random_state=0)
    starts = np.bincount(demos.states[demos.offsets[:-1]], minlength=441) / len(demos)
    visits = discounted_visits(demos, 441, 1.0)
    for l2 in (4e-3, 1e-4):
        found = ours_sampled(world, demos, l2)
        report("sampled", f"onlooker, l2 = {l2:g}", found, world.policy(), visits, starts)
    rival("sampled", world.policy(), visits, starts)
    return rows, missing


# -- walks to a goal -------------------------------------------------------------------------------


def goal_world() -> tuple[TabularDynamics, Any, Any]:
    """The grid with an absorbing goal, its coordinates, and a soft expert who wants to be there."""
    world = GridWorld()
    table = world.dynamics.toarray().copy()
    table[GOAL] = 0.0
    table[GOAL, :, GOAL] = 1.0
    dynamics = TabularDynamics(table)
    reward = np.where(np.arange(441) == GOAL, 0.0, -4.0)
    return dynamics, world.coordinates, soft_value_iteration(dynamics, reward, DISCOUNT).policy


def walks(table: Any, policy: Any, n: int, rng: np.random.Generator) -> list[Any]:
    """Walks from anywhere until the goal."""
    cumulative = np.cumsum(np.einsum("sa,sat->st", policy, table), axis=1)
    found: list[Any] = []
    while len(found) < n:
        walk = [int(rng.integers(441))]
        while walk[-1] != GOAL:
            row = cumulative[walk[-1]]
            walk.append(int(min(np.searchsorted(row, rng.random() * row[-1]), 440)))
        if len(walk) > 1:
            found.append(np.array(walk))
    return found


def expected_visits(table: Any, policy: Any, starts: Any) -> Any:
    """Visits of each state but the goal, until the goal is reached."""
    move = np.einsum("sa,sat->st", policy, table)
    move[GOAL] = 0.0
    return np.linalg.solve(np.eye(441) - move.T, starts)


def goals(seconds: float) -> tuple[list[list[object]], list[str]]:
    """Rows of the table, and what is missing."""
    dynamics, coordinates, expert = goal_world()
    table = dynamics.toarray()
    demos = Demonstrations(walks(table, expert, 500, np.random.default_rng(0)))
    starts = np.bincount(demos.states[demos.offsets[:-1]], minlength=441) / len(demos)
    seen = np.bincount(demos.states, minlength=441) / len(demos)
    rows: list[list[object]] = []
    missing: list[str] = []

    def report(name: str, spent: float, ended: str, policy: Any) -> None:
        sums = policy.sum(axis=1, keepdims=True)
        if not np.isfinite(policy).all():
            rows.append([name, f"{spent:.2f}", ended, "not finite", "not finite"])
            return
        policy = np.where(sums > 0, policy / np.where(sums > 0, sums, 1), 1 / policy.shape[1])
        apart = np.abs(expected_visits(table, policy, starts) - seen)[np.arange(441) != GOAL]
        error = emd(dynamics, coordinates, expert, policy)
        rows.append([name, f"{spent:.2f}", ended, f"{apart.max():.2f}", f"{error:.3f}"])

    for entropy in ("causal", "path"):
        for l2 in (4e-3, 1e-4):
            began = time.process_time()
            model = MaximumEntropyIRL(dynamics, discount=DISCOUNT, entropy=entropy, l2=l2)
            model.fit(demos)
            spent = time.process_time() - began
            name = f"onlooker, {entropy}, l2 = {l2:g}"
            ended = "converged" if model.convergence_.converged else "not converged"
            report(name, spent, ended, model.policy_)
    given = {"table": table, "states": demos.states, "lengths": demos.lengths, "goal": GOAL}
    given |= {"discount": DISCOUNT, "seconds": seconds}
    for entropy, start in (("causal", 1.0), ("path", 1.0), ("path", -np.log(8))):
        name = f"irl-maxent, {entropy}, start {'1' if start > 0 else '−ln 8'}"
        ask = given | {"entropy": entropy, "start": start}
        try:
            found = _peers.ask("irl-maxent", HERE / "_ask_irl_maxent.py", ask, limit=10 * seconds)
        except _peers.Absent as why:
            missing.append(f"Left out ({name}): {why}.")
            continue
        ended = "converged" if found["converged"] else "stopped"
        report(name, found["seconds"], f"{ended}, {found['steps']} steps", found["policy"])
    return rows, missing


def main(quick: bool = False) -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")  # what has not converged is said in the table
    rows, missing = plans(100 if quick else 1_000)
    print_table(
        "Plans of ten states, 21×21 grid",
        ["visits", "who", "seconds", "residual of visits", "EMD to the expert"],
        rows,
    )
    for why in missing:
        print_note(why)
    rows, missing = goals(10.0 if quick else 45.0)
    print_table(
        f"500 walks to a goal, 21×21 grid, discount {DISCOUNT}",
        ["who", "seconds", "ended", "residual of visits", "EMD to the expert"],
        rows,
    )
    for why in missing:
        print_note(why)


if __name__ == "__main__":
    main("--quick" in sys.argv)
