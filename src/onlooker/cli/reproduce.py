"""``onlooker reproduce``: the paper's experiments."""

from __future__ import annotations

from pathlib import Path

import click

from onlooker.cli.output import echo


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--runs", type=click.IntRange(min=1), help="Monte Carlo runs.  [default: the paper's]"
)
@click.option("--quick", is_flag=True, help="Small sizes: a quick look, not a result.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default="reproduction",
    show_default=True,
    help="Directory for the results, one folder per experiment; finished runs are kept.",
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
    output: Path,
    seed: int,
    fresh: bool,
    report: Path | None,
) -> None:
    """Repeat experiments of the paper: tables, figures, and a comparison.

    NAME is learning-curves, controllers, partition (Example 1), grid-circular, grid-mdp,
    robustness (Example 2 a, b, c) or all. After an interruption, the same command continues
    where it stopped; no finished run is repeated.
    """
    from onlooker import experiments, plot

    chosen = experiments.NAMES if "all" in names else names
    unknown = [name for name in chosen if name not in experiments.NAMES]
    if unknown:
        raise click.BadParameter(
            f"there is no experiment {unknown[0]!r}; choose {', '.join(experiments.NAMES)} or all",
            param_hint="NAME",
        )
    plot.require_matplotlib()
    if quick and report is not None:
        raise click.UsageError("--report needs full results, which --quick does not give")
    output = output / "quick" if quick else output
    output.mkdir(parents=True, exist_ok=True)
    from onlooker.experiments.command import run_and_print

    n_failed = run_and_print(
        chosen, output, runs=runs, quick=quick, seed=seed, jobs=jobs, fresh=fresh,
    )  # fmt: skip
    if report is not None:
        from onlooker.experiments.report import write_report

        write_report(output, report)
        echo(f"Report: {report}")
    if n_failed:
        from onlooker.reading.tracks import counted

        raise click.ClickException(f"{counted(n_failed, 'run')} failed; see above")
