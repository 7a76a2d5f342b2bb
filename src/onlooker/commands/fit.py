"""``onlooker fit``: from a file of tracks to a stored posterior."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--states", required=True, metavar="X,Y", help="The two columns of the state.")
@click.option("--trajectory", metavar="COLUMN", help="Column that tells trajectories apart.")
@click.option("--time", metavar="COLUMN", help="Column to sort each trajectory by.")
@click.option("--directions", type=click.IntRange(min=2), default=16, show_default=True)
@click.option("--step", type=float, help="Length of a step.  [default: the median seen]")
@click.option("--sigma", type=float, help="Noise of a step.  [default: a fifth of it]")
@click.option("--scale", type=float, help="Reach of the partition prior.  [default: a step]")
@click.option("--draws", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--tune", type=click.IntRange(min=0), default=500, show_default=True)
@click.option("--chains", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), help="Threads.  [default: one a core]")
@click.option("--scheduler", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("run"),
    show_default=True,
    help="Directory to store the draws in while they are made.",
)
@click.option("--resume", is_flag=True, help="Go on with the run in the output directory.")
def fit(
    file: Path,
    states: str,
    trajectory: str | None,
    time: str | None,
    directions: int,
    step: float | None,
    sigma: float | None,
    scale: float | None,
    scheduler: str | None,
    seed: int,
    output: Path,
    resume: bool,
    jobs: int | None,
    **size: int,
) -> None:
    """Recognise the policy behind tracks in the plane.

    FILE is a CSV or parquet file with one state a row. Draws are stored while they are made: a
    command that was stopped goes on with --resume, and a finished one gets more with --draws.
    """
    from onlooker import fit as fitting

    def say(text: str) -> None:
        click.echo(text)

    columns = [name.strip() for name in states.split(",")]
    demos = fitting.read(file, columns, trajectory, time)
    say(f"Read {len(demos)} trajectories, {len(demos.states):,} states.")
    posterior = fitting.fit(
        demos,
        fitting.Compass(directions, step, sigma, scale),
        say,
        random_state=seed,
        n_jobs=jobs,
        store=output,
        resume=resume,
        client=scheduler,
        **size,
    )
    fitting.tell(posterior, output, say)
