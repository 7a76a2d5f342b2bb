"""``onlooker demo``: the paper's Example 1, from simulation to figure."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onlooker.cli.output import echo, has_browser

if TYPE_CHECKING:
    from onlooker.experiments.example1 import Example


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default="demo",
    show_default=True,
    help="Directory for figure, run and report; made if missing.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed.")
@click.option(
    "--draws", type=click.IntRange(min=1), help="Draws per chain.  [default: until converged]"
)
@click.option("--tune", type=click.IntRange(min=0), help="Sweeps to discard.  [default: 300]")
@click.option("--chains", type=click.IntRange(min=1), help="Chains.  [default: 4]")
@click.option("--jobs", type=click.IntRange(min=1), help="Threads.  [default: one per core]")
@click.option("--quick", is_flag=True, help="Two short chains: a look in seconds, not a result.")
@click.option("--show", is_flag=True, help="Open the report when done.")
def demo(
    output: Path,
    seed: int,
    draws: int | None,
    tune: int | None,
    chains: int | None,
    jobs: int | None,
    quick: bool,
    show: bool,
) -> None:
    """Recognise the policy of a simulated expert and draw it.

    The expert is that of the paper's Example 1: it circles the origin, one way inside a radius and
    the other way outside. Only its states are seen, 10 trajectories of 100.
    """
    # Rather fail now than after a minute of sampling.
    output.mkdir(parents=True, exist_ok=True)
    from onlooker import plot

    plot.require_matplotlib()
    from onlooker.experiments import example1
    from onlooker.explorer.report import write_report

    began = time.monotonic()
    chosen = {"draws": draws, "tune": tune, "chains": chains}
    given = {name: number for name, number in chosen.items() if number is not None}
    size = (example1.QUICK if quick else example1.FULL) | given
    example = example1.recognise(seed, n_jobs=jobs, say=echo, **size)
    figure = example1.draw(example, output)
    echo("Writing the report ...")
    run, report = output / "run.npz", output / "report.html"
    example.posterior.save(run)
    write_report(example.posterior, report, progress=True)
    for paragraph in _report(example):
        echo(f"\n{paragraph}")
    posterior = example.posterior
    echo(
        f"\nTook {time.monotonic() - began:.0f} s: {posterior.n_chains} chains of "
        f"{posterior.n_draws + size['tune']:,} sweeps, {posterior.n_draws:,} draws kept of each.\n"
        f"Figure: {figure} (and {figure.with_suffix('.svg').name})\n"
        f"Report: {report} (open it in a browser: it needs no network)\n"
        f"Try next: onlooker explore {run}, another expert with --seed 1, surer numbers with "
        "--draws 3000 --tune 1000, or your own data: see the README."
    )
    if show and has_browser():
        click.launch(str(report))


def _report(example: Example) -> Iterator[str]:
    """What was recognised, beside the truth, and whether the chains agree."""
    import numpy as np
    from sklearn.metrics import adjusted_rand_score

    from onlooker.cli.output import table
    from onlooker.findings.opened import OpenedRun
    from onlooker.findings.verdict import verdict
    from onlooker.findings.words import format_convergence
    from onlooker.metrics import circular_emd

    world, posterior = example.config.world(), example.posterior
    states = posterior.problem.states
    expert = world.policy(states)
    untrained = circular_emd(np.full_like(expert, 1 / world.n_actions), expert).mean()
    compared = f"{untrained:.3f} rad if untrained"
    seen, grid = (example.table[example.table["kind"] == kind] for kind in ("seen", "grid"))
    near = grid[grid["distance"] <= example.config.reach]
    rand = adjusted_rand_score(world.controllers(states), seen["cluster"])
    counts = np.bincount(posterior.n_controllers.ravel())
    likely = [
        f"{k} ({100 * counts[k] / counts.sum():.0f} %)"
        for k in np.argsort(-counts)[:4]
        if counts[k]
    ]
    nu = posterior.hyper["nu"]
    rows = [
        ("number of controllers", likely[0], f"{example.n_controllers} of the expert"),
        ("  or else", ", ".join(likely[1:]) or "none", ""),
        ("partition (Rand index)", f"{rand:.2f}", "1 if it were exact"),
        ("policy error where seen", _angle(seen["error"].mean()), compared),
        ("  at unseen points near", _angle(near["error"].mean()), compared),
        ("self-link weight nu", f"{nu.mean():.3f} ± {nu.std():.3f}", "0.1 ± 0.1 a priori"),
    ]
    yield table(["", "recognised", "to compare with"], rows)
    yield (
        f"The expert has {2 * world.n_sectors} regions, {world.n_sectors} sectors inside the "
        f"radius {world.radius:g} and {world.n_sectors} outside, but only {world.n_sectors} "
        "controllers: opposite sectors, one inside and one outside, want the same direction. "
        "Errors are circular earth mover's distances from the expert's action probabilities."
    )
    yield f"Convergence: {format_convergence(verdict(OpenedRun.of(posterior)))}"


def _angle(radians: float) -> str:
    return f"{radians:.3f} rad ({math.degrees(radians):.0f}°)"
