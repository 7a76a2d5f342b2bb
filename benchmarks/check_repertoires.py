"""How near controllers over all behaviours come to the expert, beside every other method.

    python -m benchmarks.check_repertoires [--first 0] [--runs 10] [--only 1 "2a, 100"]
                                           [--methods onlooker cloning] [--kept FILE] [--save]

One configuration for all examples: the default repertoire, `Regions.inferred`, two chains of 500
draws after 500 sweeps. The other methods get the same data. Errors as in `check_regions`; in 2 (c)
the assumed world is wrong, with 24 actions and a perturbation of strength η, 1,000 trajectories,
and the error is that under the assumed world. ``--first 1000`` takes data sets that nothing was
ever tried on.

Each error is appended to a file of JSON lines as it is found, and what is there is not measured
again; the tables are of all that the file has. ``--save`` puts them into the results that
``docs/benchmarks.md`` and the README's table are made of (`python -m benchmarks --page`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _results
from benchmarks._measure import RECORD, keep, print_note, print_table
from benchmarks.check_mixing import world_of
from benchmarks.check_regions import at_states, posterior_of
from onlooker import Demonstrations, Problem, sample
from onlooker.baselines import BehavioralCloning, ExpectationMaximization
from onlooker.checks import Array
from onlooker.dynamics import PerturbedDynamics
from onlooker.experiments import grid, grid_circular, grid_mdp, robustness
from onlooker.hyper import CONCENTRATION
from onlooker.metrics import circular_emd
from onlooker.partitions import DistanceDependent, Regions
from onlooker.repertoire import Actions
from onlooker.worlds import CircularMotion
from onlooker.worlds.grid import grid_dynamics

OURS = "onlooker, the default"
METHODS = (OURS, *grid.OTHERS, *grid.METHODS)
IN_THE_PLANE = (OURS, *grid.OTHERS, "EM β=1.6", "EM β=3.2")
CELLS = {
    "1": 0.05,
    "2a, 30": 0.63,
    "2a, 100": 0.42,
    "2a, 1000": 0.06,
    "2a, 3000": 0.04,
    "2b, 10": 0.36,
    "2b, 30": 0.22,
    "2b, 100": 0.14,
    "2b, 1000": 0.025,
    "2b, 10000": 0.005,
    "2c, 0": 0.316,
    "2c, 0.25": 0.320,
    "2c, 0.5": 0.335,
    "2c, 0.75": 0.362,
    "2c, 0.99": 0.486,
}
"""What is to be reached; of 2 (c) the errors of the paper's ddCRP."""
FEWER = {"2a, 3000": 3, "2b, 10000": 3}
"""Data sets of examples that take minutes each."""
EXPERTS = {
    "1": ("Example 1, at the states seen, in rad", "method"),
    "2a": ("Circling expert (2a), in rad", "trajectories"),
    "2b": ("Optimal expert (2b), in cells", "trajectories"),
    "2c": ("Wrong model of the world (2c), in cells", "η"),
}
"""The title of an expert's table, and the head of its first column."""

Found = dict[str, Any]
"""One error: cell, run, method, error, seconds; of ours also the numbers of controllers."""


def errors(name: str, run: int, methods: Sequence[str]) -> Iterator[Found]:
    """One data set's errors, each method's as it is found."""
    yield from _in_the_plane(run, methods) if name == "1" else _on_the_grid(name, run, methods)


def _ours(problem: Problem, prior: Regions, run: int) -> tuple[Array, Found]:
    posterior = posterior_of(problem, prior, run)
    counts = np.bincount(posterior.n_controllers.ravel())
    policy = posterior.policy() if problem.states.ndim > 1 else at_states(posterior)
    return policy, {"controllers": counts.tolist(), "behaviours": problem.n_behaviours}


def _in_the_plane(run: int, methods: Sequence[str]) -> Iterator[Found]:
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=run)
    problem = Problem.from_demonstrations(demos, world.dynamics)
    expert = world.policy(problem.states)
    for method in methods:
        began = time.perf_counter()
        more: Found = {}
        if method == OURS:
            policy, more = _ours(problem, Regions.inferred(1.0), run)
        elif method == "ddCRP, all inferred":
            bare = Problem.from_demonstrations(demos, world.dynamics, repertoire=[Actions()])
            prior = DistanceDependent.inferred(start="nearest")
            posterior = sample(bare, prior, CONCENTRATION, random_state=run, progress=False)
            policy = posterior.policy()
        else:
            model: Any = (
                BehavioralCloning(world.dynamics, rounds=5, random_state=run)
                if method == "cloning"
                else ExpectationMaximization(
                    world.dynamics, 8, float(method.rpartition("=")[2]), random_state=run
                )
            )
            policy = model.fit(demos).predict_proba(problem.states)
        error = float(circular_emd(expert, policy).mean())
        yield {"method": method, "error": error, "seconds": time.perf_counter() - began, **more}


def _on_the_grid(name: str, run: int, methods: Sequence[str]) -> Iterator[Found]:
    part, _, size = name.partition(", ")
    world: Any = world_of(name, run)
    model, config = world.dynamics, _CONFIGS[part]
    if part == "2c":
        key = round(1000 * float(size))
        demos, _ = world.rollout(config.trajectories, config.length, config.stream(run, 1))
        clean = grid_dynamics(config.size, config.assumed_actions)
        model = PerturbedDynamics(clean, float(size), config.stream(run, 2, key))
        seed = config.sequence(run, 3, key)
    else:
        demos, _ = world.rollout(int(size), config.length, config.stream(run, int(size), 0))
        seed = config.sequence(run, int(size), 1)
    true = world.dynamics.next_state_probabilities(np.arange(world.n_states), world.policy())
    for policies, seconds, more in _policies(config, world, model, demos, seed, run, methods):
        for method, policy in policies.items():
            error = (
                float(circular_emd(world.policy(), policy).mean())
                if part == "2a"
                else grid.next_state_error(true, model, policy, world.coordinates, config.tolerance)
            )
            yield {"method": method, "error": error, "seconds": seconds, **more}


_CONFIGS: dict[str, Any] = {
    "2a": grid_circular.Config(),
    "2b": grid_mdp.Config(),
    "2c": robustness.Config(),
}


def _policies(
    config: grid.GridConfig,
    world: Any,
    model: Any,
    demos: Demonstrations,
    seed: np.random.SeedSequence,
    run: int,
    methods: Sequence[str],
) -> Iterator[tuple[dict[str, Array], float, Found]]:
    """Ours, then each other method; max-ent's two policies come from one fit."""
    together: dict[str, list[str]] = {}
    for method in methods:
        together.setdefault("max-ent" if method.startswith("max-ent") else method, []).append(
            method
        )
    for key, group in together.items():
        began = time.perf_counter()
        if key == OURS:
            problem = Problem.from_demonstrations(demos, model, nodes="all")
            policy, more = _ours(problem, Regions.inferred(1.0, coordinates=world.coordinates), run)
            yield {OURS: policy}, time.perf_counter() - began, more
            continue
        seed_again = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
        policies, _ = grid.fit_all(
            replace(config, methods=tuple(group)), world.coordinates, model, demos, seed_again
        )
        yield policies, time.perf_counter() - began, {}


def methods_of(name: str, wanted: Iterable[str]) -> list[str]:
    """Those that there are for an example."""
    known = IN_THE_PLANE if name == "1" else METHODS
    return [method for method in wanted if method in known]


# -- tables ----------------------------------------------------------------------------------------


def read(path: Path) -> list[Found]:
    """All errors kept."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def show(found: list[Found]) -> None:
    """Print a table for each expert, and record them and what they are made of."""
    means: dict[str, dict[str, dict[str, float]]] = {}
    for cell in CELLS:
        for method in METHODS:
            errors = [
                one["error"] for one in found if (one["cell"], one["method"]) == (cell, method)
            ]
            if errors:
                known = {"mean": float(np.mean(errors)), "se": _se(errors), "n": len(errors)}
                means.setdefault(cell, {})[method] = known
    for part, (title, unit) in EXPERTS.items():
        cells = [cell for cell in means if cell.partition(", ")[0] == part]
        if not cells:
            continue
        rows = [
            [method, *(_text(means[cell], method) for cell in cells)]
            for method in METHODS
            if any(method in means[cell] for cell in cells)
        ]
        rows.append(["wanted", *(f"{CELLS[cell]:.3f}" for cell in cells)])
        rows.append(["data sets", *(str(max(n["n"] for n in means[c].values())) for c in cells)])
        print_table(title, [unit, *(cell.partition(", ")[2] or "error" for cell in cells)], rows)
    counts = [one["controllers"] for one in found if one["cell"] == "1" and "controllers" in one]
    if counts:
        print_note(f"Example 1, how many controllers ours finds: {_shares(counts)}.")
    keep("means", means)


def _se(errors: Sequence[float]) -> float:
    return float(np.std(errors, ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else 0.0


def _text(means: dict[str, dict[str, float]], method: str) -> str:
    if method not in means:
        return "–"
    own = means[method]
    text = f"{own['mean']:.3f} ± {own['se']:.3f}"
    if own["n"] < max(one["n"] for one in means.values()):
        text += f" ({own['n']} sets)"
    return f"**{text}**" if own["mean"] == min(one["mean"] for one in means.values()) else text


def _shares(controllers: list[list[int]]) -> str:
    total = np.zeros(max(map(len, controllers)))
    for counts in controllers:
        total[: len(counts)] += np.array(counts) / sum(counts) / len(controllers)
    return ", ".join(f"{k}: {share:.0%}" for k, share in enumerate(total) if share >= 0.01)


def main() -> None:
    """Measure what is not there yet and print the tables."""
    parser = argparse.ArgumentParser(description="Errors of controllers over all behaviours.")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first data set")
    parser.add_argument("--only", choices=CELLS, nargs="*", default=list(CELLS))
    parser.add_argument("--methods", choices=METHODS, nargs="+", default=METHODS)
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin nothing after these")
    parser.add_argument(
        "--kept", type=Path, default=_results.ROOT / ".benchmarks" / "repertoires.jsonl"
    )
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    began = time.monotonic()
    options.kept.parent.mkdir(parents=True, exist_ok=True)
    kept = {(one["cell"], one["run"], one["method"]) for one in read(options.kept)}
    for number, name in itertools.product(range(options.runs), options.only):
        run = options.first + number
        left = [m for m in methods_of(name, options.methods) if (name, run, m) not in kept]
        if number >= FEWER.get(name, options.runs) or not left:
            continue
        if time.monotonic() - began > 60 * options.minutes:
            break
        for one in errors(name, run, left):
            line = {"cell": name, "run": run, **one}
            with options.kept.open("a") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            print(
                name, run, one["method"], f"{one['error']:.3f} {one['seconds']:.0f} s", flush=True
            )
    found = read(options.kept)
    show(found)
    if options.save:
        entry = {
            "date": _results.now(),
            "seconds": sum(one["seconds"] for one in found),
            "machine": _results.machine(),
            **RECORD,
        }
        _results.save(_results.RESULTS, "repertoires", entry)


if __name__ == "__main__":
    main()
