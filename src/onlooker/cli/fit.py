"""``onlooker fit``: from a file of tracks to a stored posterior."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from onlooker.cli.options import TracksCommand, reading_options
from onlooker.cli.output import echo, print_json, printer

_POSITIVE = click.FloatRange(min=0, min_open=True)


@click.command(cls=TracksCommand)
@click.argument("file", type=click.Path(path_type=Path))
@reading_options
@click.option("--geographic", is_flag=True, help="States are longitude and latitude in degrees.")
@click.option(
    "--hold-out",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="SHARE",
    help="Trajectories to set aside, which calibrate the p-values of `onlooker anomaly`.  "
    "[default: 0.2 if there are ten or more]",
)
@click.option(
    "--directions", type=click.IntRange(min=2), help="Number of directions.  [default: 16]"
)
@click.option("--speeds", type=click.IntRange(min=1), help="Most speeds to propose.  [default: 2]")
@click.option("--step", type=_POSITIVE, help="One length for all steps, instead of --speeds.")
@click.option("--sigma", type=_POSITIVE, help="Noise of a step.  [default: from the tracks]")
@click.option(
    "--features",
    metavar="NAMES",
    help="What to add to the position: none, heading or heading,speed.  [default: what predicts "
    "left-out trajectories best]",
)
@click.option(
    "--prior",
    metavar="KIND",
    help="Prior over partitions, such as crp or potts.  [default: regions]",
)
@click.option(
    "--clusters", type=click.IntRange(min=1), help="Clusters of potts and mixing.  [default: 10]"
)
@click.option("--scale", type=_POSITIVE, help="Length scale.  [default: a typical step]")
@click.option(
    "--repertoire",
    type=click.Choice(["auto", "actions"]),
    help="What controllers do: all behaviours that apply, or bare actions.  [default: auto with "
    "the default prior, else actions]",
)
@click.option("--draws", type=click.IntRange(min=1), help="Draws per chain.  [default: 1000]")
@click.option(
    "--until-converged",
    is_flag=True,
    help="Sample until the chains have converged, instead of --draws.",
)
@click.option(
    "--max-minutes",
    type=_POSITIVE,
    help="Time that --until-converged may take.  [default: 30]",
)
@click.option("--tune", type=click.IntRange(min=0), help="Sweeps to discard.  [default: 500]")
@click.option("--chains", type=click.IntRange(min=1), help="Chains.  [default: 4]")
@click.option("--jobs", type=click.IntRange(min=1), help="Threads.  [default: one per core]")
@click.option("--scheduler", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed.  [default: 0]")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="TOML",
    help="File with all other settings, or 'paper' for those of the paper; options override it.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default="run",
    show_default=True,
    help="Directory for the draws, stored while sampling.",
)
@click.option("--resume", is_flag=True, help="Continue the run in the output directory.")
@click.option("--force", is_flag=True, help="Replace the run in the output directory.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; messages go to stderr.")
def fit(
    file: Path,
    model: Path | None,
    output: Path,
    resume: bool,
    force: bool,
    as_json: bool,
    geographic: bool,
    until_converged: bool,
    **given: Any,
) -> None:
    """Recognise the policy behind tracks of states.

    FILE holds one state per row: CSV, TSV (also .gz), parquet, NPZ, NPY or GPX. Actions are
    proposed from the tracks. Draws are stored while sampling: --resume continues a run that was
    stopped, and with more --draws or --until-converged extends a finished one.

    \b
    Example:
      onlooker fit tracks.csv --trajectory id --states x,y
      onlooker report run
    """
    from onlooker.fitting.model_file import Model, joined_features, read_model, with_flags
    from onlooker.fitting.run import fit as fit_tracks

    notify = printer(as_json)
    chosen = with_flags(
        Model() if model is None else read_model(model),
        dynamics={name: given[name] for name in ("directions", "speeds", "step", "sigma")},
        prior={"kind": given["prior"], "clusters": given["clusters"], "scale": given["scale"]},
    )
    chosen = replace(
        chosen,
        repertoire=given["repertoire"] or chosen.repertoire,
        data=chosen.data
        | _given(given, "states", "trajectory", "time", "hold_out", "encoding")
        | ({"geographic": True} if geographic else {}),
        cleaning=chosen.cleaning | _given(given, "missing", "duplicates", "gaps", "max_speed"),
        sampling=chosen.sampling
        | _given(given, "draws", "tune", "chains", "jobs", "scheduler", "seed", "max_minutes")
        | ({"draws": "auto"} if until_converged else {}),
    )
    if resume and force:
        raise click.UsageError("--resume and --force exclude each other")
    if given["features"] is not None:
        chosen = replace(chosen, features=joined_features(given["features"], "--features"))
    if until_converged and given["draws"] is not None:
        raise click.UsageError("--draws and --until-converged exclude each other")
    if given["max_minutes"] is not None and chosen.sampling.get("draws") != "auto":
        raise click.UsageError("--max-minutes applies to --until-converged only")
    try:
        run = fit_tracks(file, chosen, output, resume=resume, notify=notify, replace_run=force)
    except KeyboardInterrupt:
        echo("To continue, repeat the command with --resume.", err=True)
        raise
    _print_findings(run, notify, as_json)


def _given(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if options[name] is not None}


def _print_findings(run: Any, notify: Any, as_json: bool) -> None:
    from onlooker.findings import words
    from onlooker.reading.tracks import counted

    found = words.findings(run, progress=True)
    for note in run.notes:
        if note not in run.record.advice:  # which was given before sampling
            notify(f"Note: {note}")
    notify(found["in_short"])
    for line in words.format_done(run, found):
        notify(line)
    notify(words.format_convergence(found["convergence"]))
    for line in words.format_bounds(run, found["at_bounds"]):
        notify(line)
    n_draws, n_stored = run.posterior.n_draws, run.n_stored
    if n_stored >= n_draws:
        notify(f"Stored in {run.path}. Next: onlooker report {run.path}")
    if as_json:
        record = run.record
        about = {"account": record.account, "explained": record.explained}
        about |= {"held_out": record.held_out, "state": record.state, "advice": record.advice}
        print_json({"run": str(run.path), **about, **found})
    if n_stored < n_draws:
        raise click.ClickException(
            f"{run.path} holds {n_stored:,} of {counted(n_draws, 'draw')} per chain: the rest "
            "could not be stored. With space on the disk, the same command with --resume draws "
            "them again"
        )
