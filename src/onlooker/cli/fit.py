"""``onlooker fit``: from a file of tracks to a stored posterior."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from onlooker.cli.options import TracksCommand, reading_options
from onlooker.cli.output import print_json, teller

_POSITIVE = click.FloatRange(min=0, min_open=True)


@click.command(cls=TracksCommand)
@click.argument("file", type=click.Path(path_type=Path))
@reading_options
@click.option("--geographic", is_flag=True, help="States are longitude and latitude in degrees.")
@click.option("--directions", type=click.IntRange(min=2), help="Directions.  [default: 16]")
@click.option("--speeds", type=click.IntRange(min=1), help="Speeds, at most.  [default: 2]")
@click.option("--step", type=_POSITIVE, help="One length of all steps, instead of speeds.")
@click.option("--sigma", type=_POSITIVE, help="Noise of a step.  [default: from the tracks]")
@click.option(
    "--prior",
    type=click.Choice(["ddcrp", "crp", "potts", "mixing"]),
    help="Prior over partitions.  [default: ddcrp]",
)
@click.option("--clusters", type=click.IntRange(min=1), help="Of potts and mixing.  [default: 10]")
@click.option("--scale", type=_POSITIVE, help="Reach of the prior.  [default: a typical step]")
@click.option("--draws", type=click.IntRange(min=1), help="Draws of each chain.  [default: 1000]")
@click.option("--tune", type=click.IntRange(min=0), help="Sweeps to discard.  [default: 500]")
@click.option("--chains", type=click.IntRange(min=1), help="Chains.  [default: 4]")
@click.option("--jobs", type=click.IntRange(min=1), help="Threads.  [default: one a core]")
@click.option("--scheduler", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed.  [default: 0]")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="TOML",
    help="File with all the rest: dynamics, prior, features. Options win over it.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default="run",
    show_default=True,
    help="Directory to store the draws in while they are made.",
)
@click.option("--resume", is_flag=True, help="Go on with the run in the output directory.")
@click.option("--json", "as_json", is_flag=True, help="Print the finding as JSON, the rest aside.")
def fit(
    file: Path,
    model: Path | None,
    output: Path,
    resume: bool,
    as_json: bool,
    geographic: bool,
    **given: Any,
) -> None:
    """Recognise the policy behind tracks of states.

    FILE holds one state a row: CSV, TSV (also packed as .gz), parquet, NPZ, NPY or GPX. Actions
    are proposed from the tracks. Draws are stored while they are made: a command that was stopped
    goes on with --resume, and a finished one gets more with --draws.

    \b
    Example:
      onlooker fit tracks.csv --trajectory id --states x,y
      onlooker report run
    """
    from onlooker.fitting.model_file import Model, read_model, with_flags
    from onlooker.fitting.run import fit as fit_tracks

    say = teller(as_json)
    wanted = with_flags(
        Model() if model is None else read_model(model),
        dynamics={name: given[name] for name in ("directions", "speeds", "step", "sigma")},
        prior={"kind": given["prior"], "clusters": given["clusters"], "scale": given["scale"]},
    )
    wanted = replace(
        wanted,
        data=wanted.data
        | _given(given, "states", "trajectory", "time")
        | ({"geographic": True} if geographic else {}),
        cleaning=wanted.cleaning | _given(given, "missing", "duplicates", "gaps"),
        sampling=wanted.sampling
        | _given(given, "draws", "tune", "chains", "jobs", "scheduler", "seed"),
    )
    try:
        run = fit_tracks(file, wanted, output, resume=resume, say=say)
    except KeyboardInterrupt:
        click.echo("Go on with the same command and --resume.", err=True)
        raise
    _tell(run, say, as_json)


def _given(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if options[name] is not None}


def _tell(run: Any, say: Any, as_json: bool) -> None:
    from onlooker.findings import words

    found = words.findings(run)
    for note in run.notes:
        say(f"Note: {note}")
    say(words.format_controllers(found["controllers"]))
    for line in words.format_regions(run, found["regions"]):
        say(line)
    say(words.format_convergence(found["convergence"]))
    for line in words.format_bounds(run, found["at_bounds"]):
        say(line)
    say(f"Stored in {run.path}. Next: onlooker report {run.path}")
    if as_json:
        about = {"account": run.record.account, "explained": run.record.explained}
        print_json({"run": str(run.path), **about, **found})
