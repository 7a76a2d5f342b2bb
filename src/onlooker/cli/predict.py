"""``onlooker predict``: the policy at any state."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onlooker.cli.options import TracksCommand, states_option
from onlooker.cli.output import echo, number, print_json, printer, require_folder, table, write_csv

if TYPE_CHECKING:
    from onlooker.findings.opened import OpenedRun

_MAX_ROWS = 50
_MIN_PROBABILITY = 0.005  # of an action that is shown


@click.command(cls=TracksCommand)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--at",
    multiple=True,
    metavar="X,Y",
    help="A state, as comma-separated numbers; repeatable.",
)
@click.option("--states-file", type=click.Path(path_type=Path), help="File with one state per row.")
@states_option("Its columns, as in x,y.  [default: those of the fit]")
@click.option(
    "--interval",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Probability of the credible intervals.",
)
@click.option(
    "--extrapolate",
    type=click.Choice(["map", "average", "local"]),
    help="How unvisited states are assigned.  [default: depends on the prior]",
)
@click.option(
    "--behaviours", is_flag=True, help="Behaviours, such as heading for a place, not actions."
)
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write a CSV file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; messages go to stderr.")
def predict(
    run: Path,
    at: tuple[str, ...],
    states_file: Path | None,
    states: list[str] | None,
    interval: float,
    extrapolate: str | None,
    behaviours: bool,
    csv_file: Path | None,
    as_json: bool,
) -> None:
    """Predict the actions at given states: their probabilities, with intervals.

    RUN is a directory that `onlooker fit` wrote, or a file of `Posterior.save`. Where the state has
    features, give the position alone (as at the start of a trajectory) or the whole state.

    \b
    Example:
      onlooker predict run --at 1.0,2.0
      onlooker predict run --at 1.0,2.0 --behaviours
      onlooker predict run --states-file points.csv --csv actions.csv
    """
    if bool(at) == (states_file is not None):
        raise click.UsageError("give states by --at, or a file by --states-file")
    require_folder(csv_file)
    from onlooker.findings.opened import OpenedRun
    from onlooker.reading.tracks import counted

    opened = OpenedRun.read(run)
    notify = printer(as_json)
    if states_file is None:
        points = _points(at)
    else:
        points = opened.record.reading.changed({}, states=states).read_points(states_file)
    word = "behaviour" if behaviours else "action"
    rows = _rows(opened, points, interval, extrapolate, word)
    for note in opened.notes:
        notify(f"Note: {note}")
    if csv_file is not None:
        _write(csv_file, opened, rows, word)
        notify(f"{csv_file}: {counted(len(rows), 'state')}.")
    if as_json:
        print_json(
            {
                "run": str(run),
                "interval": interval,
                f"{word}s": rows[0]["names"],
                "columns": opened.columns,
                "states": rows,
            }
        )
    elif csv_file is None:
        echo(
            _one(opened, rows[0], interval, word)
            if len(rows) == 1
            else _many(opened, rows, interval, word)
        )


def _points(at: tuple[str, ...]) -> Any:
    import numpy as np

    found: list[Any] = []
    for text in at:
        try:
            state = [float(part) for part in re.split(r"[,\s]+", text.strip().strip("()[]"))]
        except ValueError:
            raise click.BadParameter(
                f"{text!r} is not a state; write numbers such as 1.0,2.0", param_hint="--at"
            ) from None
        if not np.isfinite(state).all():
            raise click.BadParameter(f"{text!r} is not finite", param_hint="--at")
        if found and len(state) != len(found[0]):
            raise click.BadParameter(
                f"{at[0]!r} and {text!r} have different lengths", param_hint="--at"
            )
        found.append(state)
    return np.array(found)


def _rows(
    run: OpenedRun, points: Any, interval: float, extrapolate: Any, word: str
) -> list[dict[str, Any]]:
    states = run.as_states(points)
    run.load_consensus()
    posterior = run.posterior
    ask = posterior.policy if word == "action" else posterior.behaviours
    policy = ask(states, interval=interval, extrapolate=extrapolate)
    names = run.action_names if word == "action" else posterior.problem.behaviours
    cluster = posterior.assign(states)
    away = run.nearest_seen(states)
    rows = []
    for i, state in enumerate(states):
        best = int(policy.mean[i].argmax())
        rows.append(
            {
                "state": state.tolist(),
                "nearest_seen": None if away is None else float(away[i]),
                "controller": int(cluster[i]) + 1 or None,
                word: best,
                "name": names[best],
                "probability": policy.mean[i].tolist(),
                "low": policy.low[i].tolist(),
                "high": policy.high[i].tolist(),
                "names": names,
            }
        )
    return rows


def _one(run: OpenedRun, row: dict[str, Any], interval: float, word: str) -> str:
    """The likely actions of one state."""
    from onlooker.reading.tracks import counted

    order = sorted(range(len(row["names"])), key=lambda j: -row["probability"][j])
    shown = [j for j in order if row["probability"][j] >= _MIN_PROBABILITY]
    cells = [
        [row["names"][j], *(f"{row[part][j]:.3f}" for part in ("probability", "low", "high"))]
        for j in shown
    ]
    of = f"controller {row['controller']}" if row["controller"] else "a new controller"
    rest = 1 - sum(row["probability"][j] for j in shown)
    left = len(order) - len(shown)
    text = table([word, "probability", f"low ({100 * interval:.0f} %)", "high"], cells)
    end = f"\n{counted(left, f'other {word}')} together: {rest:.3f}" if left else ""
    away = row["nearest_seen"]
    unit = " km" if run.geographic else ""
    seen = "" if away is None else f", nearest seen state {away:.4g}{unit} away"
    return f"State {_state(run, row['state'])}, of {of}{seen}:\n{text}{end}"


def _many(run: OpenedRun, rows: list[dict[str, Any]], interval: float, word: str) -> str:
    """One line per state."""
    cells = []
    for row in rows[:_MAX_ROWS]:
        j = row[word]
        numbers = (f"{row[part][j]:.3f}" for part in ("probability", "low", "high"))
        cells.append(
            [_state(run, row["state"]), str(row["controller"] or "-"), row["name"], *numbers]
        )
        if row["nearest_seen"] is not None:
            cells[-1].append(number(row["nearest_seen"]))
    header = [", ".join(run.columns), "controller", word, "probability"]
    last = [] if run.is_discrete else [f"nearest seen{' [km]' if run.geographic else ''}"]
    text = table([*header, f"low ({100 * interval:.0f} %)", "high", *last], cells)
    more = len(rows) - len(cells)
    return f"{text}\nand {more:,} more: see --csv or --json" if more > 0 else text


def _state(run: OpenedRun, state: Any) -> str:
    import numpy as np

    if not isinstance(state, list):
        return str(state)
    digits = [max(d, 3) if abs(x) < 1000 else d for d, x in zip(run.decimals, state, strict=True)]
    return run.text_of(np.array(state), digits)


def _write(path: Path, run: OpenedRun, rows: list[dict[str, Any]], word: str) -> None:
    import pandas as pd

    names = [*run.columns, *run.axes[run.n_position :]]  # as the file calls them
    columns: dict[str, list[Any]] = {}
    for dim, name in enumerate(names):
        columns[name] = [
            row["state"][dim] if isinstance(row["state"], list) else row["state"] for row in rows
        ]
    if not run.is_discrete:
        columns["nearest seen"] = [row["nearest_seen"] for row in rows]
    columns["controller"] = pd.array([row["controller"] for row in rows], dtype="Int64")  # type: ignore[assignment]
    columns |= {word: [r[word] for r in rows], "name": [r["name"] for r in rows]}
    for j, name in enumerate(rows[0]["names"]):
        for part, word in (("probability", "p"), ("low", "low"), ("high", "high")):
            columns[f"{word} {j} {name}"] = [row[part][j] for row in rows]
    write_csv(path, pd.DataFrame(columns))
