"""``onlooker demo``: the paper's Example 1, from simulation to figure."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Directory for the figure; made if missing.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed.")
@click.option("--draws", type=click.IntRange(min=1), help="Draws of each chain.  [default: 500]")
@click.option("--tune", type=click.IntRange(min=0), help="Sweeps to discard.  [default: 300]")
@click.option("--chains", type=click.IntRange(min=1), help="Chains.  [default: 4]")
@click.option("--jobs", type=click.IntRange(min=1), help="Threads.  [default: one a core]")
@click.option("--quick", is_flag=True, help="Two short chains: a look in seconds, not a result.")
@click.option("--show", is_flag=True, help="Open the figure when done.")
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
    from onlooker import demo as example

    wanted = {"draws": draws, "tune": tune, "chains": chains}
    given = {name: number for name, number in wanted.items() if number is not None}
    size = (example.QUICK if quick else example.FULL) | given
    findings = example.recognise(seed, n_jobs=jobs, say=click.echo, **size)
    figure = example.draw(findings, output)
    example.report(findings, figure)
    if show:
        click.launch(str(figure))
