"""What ``onlooker reproduce`` does and prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from onlooker.experiments import load
from onlooker.experiments.results import Outcome, last_line, reproduce


def run_and_print(
    names: Sequence[str],
    output: Path,
    *,
    runs: int | None,
    quick: bool,
    seed: int,
    jobs: int,
    fresh: bool,
) -> int:
    """Run the experiments one after the other; return how many runs failed."""
    n_failed = 0
    for name in names:
        experiment = load(name)
        config = experiment.config.quick() if quick else experiment.config()
        given = {"seed": seed} | ({} if runs is None else {"runs": runs})
        config = dataclasses.replace(config, **given)
        try:
            outcome = reproduce(experiment, config, output, jobs=jobs, fresh=fresh)
        except KeyboardInterrupt:
            print(f"{name}: finished runs are kept; the same command continues from there.")
            raise
        _print_outcome(name, outcome)
        n_failed += len(outcome.failures)
    return n_failed


def _print_outcome(name: str, outcome: Outcome) -> None:
    for failure in outcome.failures:
        print(
            f"{name}: run {failure.run} failed (its seed: spawn_key ({failure.run},)): "
            f"{last_line(failure.error)}",
        )
    agree = [one.agrees for one in outcome.comparisons]
    n_runs = outcome.table["run"].nunique()
    verdict = (
        f"{agree.count(True)} of {len(agree)} figures agree with the reference"
        if agree
        else "sizes are not the paper's, so nothing is compared"
    )
    print(f"{name}: {n_runs} runs; {verdict}. {outcome.folder}")
