"""The command line. Commands import what they need, so that ``onlooker --help`` is quick."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import click

from onlooker._version import __version__

_STOPPED = 130  # what shells expect of a command that Ctrl-C ended


class _Cli(click.Group):
    """Commands whose errors are one clear line; a traceback only on request."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Stopped by Ctrl-C.", err=True)
            ctx.exit(_STOPPED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if ctx.params["debug"] or getattr(error, "errno", None) == errno.EPIPE:
                raise
            raise click.ClickException(_one_line(error)) from error


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, ValueError | TypeError | OSError | ImportError):
        return text
    return f"{type(error).__name__}: {text} (onlooker --debug shows where)"


@click.group(cls=_Cli, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="onlooker")
@click.option("--debug", is_flag=True, envvar="ONLOOKER_DEBUG", help="Show tracebacks of errors.")
def main(debug: bool) -> None:
    """Watch a system move through its states and recognise the policy behind it."""


@main.command()
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
    from rich.console import Console

    from onlooker import plot

    plot.require_matplotlib()
    from onlooker import demo as example

    wanted = {"draws": draws, "tune": tune, "chains": chains}
    given = {name: number for name, number in wanted.items() if number is not None}
    size = (example.QUICK if quick else example.FULL) | given
    console = Console(highlight=False)
    findings = example.recognise(seed, n_jobs=jobs, say=console.print, **size)
    figure = example.draw(findings, output)
    example.report(findings, figure, console)
    if show:
        click.launch(str(figure))


@main.command()
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


@main.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--runs", type=click.IntRange(min=1), help="Monte Carlo runs.  [default: the paper's]"
)
@click.option("--quick", is_flag=True, help="Small sizes: a taste in a minute, not a result.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@click.option("--scheduler", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Directory for the results, a folder an experiment; finished runs there are kept.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed.")
@click.option("--fresh", is_flag=True, help="Repeat runs that are finished.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write all results in the output directory as one Markdown page.",
)
def reproduce(
    names: tuple[str, ...],
    runs: int | None,
    quick: bool,
    jobs: int,
    scheduler: str | None,
    output: Path,
    seed: int,
    fresh: bool,
    report: Path | None,
) -> None:
    """Repeat experiments of the paper: tables, figures, and a comparison.

    NAME is learning-curves, controllers, partition (Example 1), grid-circular, grid-mdp,
    robustness (Example 2 a, b, c) or all. A command that was stopped goes on where it was when
    called again; no finished run is repeated.
    """
    from onlooker import experiments, plot

    chosen = experiments.NAMES if "all" in names else names
    unknown = [name for name in chosen if name not in experiments.NAMES]
    if unknown:
        raise click.BadParameter(
            f"there is no experiment {unknown[0]!r}; there are {', '.join(experiments.NAMES)}, all",
            param_hint="NAME",
        )
    plot.require_matplotlib()
    if quick and report is not None:
        raise click.UsageError("--report is for results; --quick gives none")
    output = output / "quick" if quick else output
    output.mkdir(parents=True, exist_ok=True)
    from onlooker.experiments.command import run_and_tell

    n_failed = run_and_tell(
        chosen, output, runs=runs, quick=quick, seed=seed, jobs=jobs, scheduler=scheduler,
        fresh=fresh,
    )  # fmt: skip
    if report is not None:
        from onlooker.experiments.report import write_report

        write_report(output, report)
        click.echo(f"Report: {report}")
    if n_failed:
        raise click.ClickException(f"{n_failed} runs failed; see above")


if __name__ == "__main__":
    main()
