"""``onlooker summary``: a stored run on a page of text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onlooker.cli.output import echo, number, print_json, printer, table

if TYPE_CHECKING:
    from onlooker.findings.opened import OpenedRun

_SHOWN = ("mean", "sd", "q5", "q95", "ess", "r_hat")


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON; messages go to stderr.")
def summary(run: Path, as_json: bool) -> None:
    """Summarise a stored run: data, model, findings and convergence.

    RUN is a directory that `onlooker fit` or `sample(store=...)` wrote, finished or not, or a file
    of `Posterior.save`.

    \b
    Example:
      onlooker summary run
      onlooker summary run --json | jq .convergence.level
    """
    from onlooker.findings.opened import OpenedRun

    opened = OpenedRun.read(run)
    report = describe(opened)
    notify = printer(as_json)
    for note in report["notes"]:
        notify(f"Note: {note}")
    if as_json:
        print_json(report)
    else:
        _print(opened, report)


def describe(run: OpenedRun) -> dict[str, Any]:
    """All of it, for JSON."""
    import numpy as np

    from onlooker.findings.names import short_repr
    from onlooker.findings.verdict import table_rows
    from onlooker.findings.words import findings

    posterior = run.posterior
    problem, paths = posterior.problem, posterior.problem.paths
    hyper = {
        name: {
            "inferred": bool((values != values[0, 0]).any()),
            "mean": float(values.mean()),
            "low": float(np.quantile(values, 0.05)),
            "high": float(np.quantile(values, 0.95)),
        }
        for name, values in posterior.hyper.items()
    }
    found = findings(run, progress=True)
    return {
        "run": str(run.path),
        "notes": run.notes,
        "data": {
            "file": run.record.file,
            "columns": run.record.reading.to_dict(),
            "trajectories": None if paths is None else len(paths.offsets) - 1,
            "states": problem.n_nodes,
            "transitions": problem.n_transitions,
            "account": run.record.account,
            "held_out": run.record.held_out,
        },
        "model": {
            "dynamics": None if problem.dynamics is None else repr(problem.dynamics),
            "actions": run.action_names,
            "explained": run.record.explained,
            "prior": short_repr(posterior.prior),
            "concentration": repr(posterior.target.concentration),
            "seed": str(posterior.schedule.seed),
            "chains": posterior.n_chains,
            "draws": posterior.n_draws,
            "ended": posterior.ended,
            "tune": posterior.schedule.tune,
            "thin": posterior.schedule.thin,
        },
        "hyper": hyper,
        "diagnostics": table_rows(run),
        **found,
    }


def _print(run: OpenedRun, report: dict[str, Any]) -> None:
    from onlooker.findings import words
    from onlooker.findings.model import concentration_words, dynamics_words, prior_words
    from onlooker.reading.tracks import counted

    echo(report["in_short"])
    data, model = report["data"], report["model"]
    n_tracks = data["trajectories"]
    tracks = "" if n_tracks is None else f"{counted(n_tracks, 'trajectory')}, "
    source = "" if data["file"] is None else f"{data['file']}: "
    each = "" if run.step_time is None else f" of {run.step_time}"
    echo(
        f"Data: {source}{tracks}{counted(data['states'], 'distinct state')}, "
        f"{counted(data['transitions'], 'step')}{each}."
    )
    if data["held_out"]:
        n_aside = counted(len(data["held_out"]), "trajectory")
        echo(f"Set aside for calibration: {n_aside}.")
    explained = model["explained"]
    share = "" if explained is None else f"; they explain {100 * explained['share']:.2f} % of steps"
    target = run.posterior.target
    echo(f"Actions: {dynamics_words(target.problem.dynamics)}{share}.")
    echo(f"Prior: {prior_words(target.prior)}.")
    echo(f"Concentration of the controllers: {concentration_words(target.concentration)}.")
    echo(
        f"Draws: {counted(model['chains'], 'chain')} of {counted(model['draws'], 'draw')} after "
        f"{counted(model['tune'], 'sweep')} of tuning, seed {model['seed']}."
    )
    echo("\n".join(words.format_done(run, report)))
    rows = [
        [
            run.hyper_words(name),
            f"{one['mean']:.4g}",
            *(
                [f"{one['low']:.4g}", f"{one['high']:.4g}", ""]
                if one["inferred"]
                else ["-", "-", "fixed"]
            ),
        ]
        for name, one in report["hyper"].items()
    ]
    echo("\n" + table(["hyper-parameter", "mean", "5 %", "95 %", ""], rows))
    rows = [
        [one["meaning"], *(number(one[name]) for name in _SHOWN)]
        for one in report["diagnostics"]
        if one["r_hat"] is not None or not one["fine"]
    ]
    if rows:
        echo("\n" + table(["convergence", "mean", "sd", "5 %", "95 %", "ESS", "R-hat"], rows))
    echo("\n" + words.format_convergence(report["convergence"]))
    for line in words.format_bounds(run, report["at_bounds"]):
        echo(line)
