"""``onlooker anomaly``: are new tracks still the behaviour that was learned?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onlooker.cli.options import TracksCommand, reading_options
from onlooker.cli.output import print_json, require_folder, table, teller, write_csv

if TYPE_CHECKING:
    import pandas as pd

    from onlooker.anomaly import AnomalyScores

ANOMALOUS = 3  # exit code
_MOST_ALARMS = 10
_P_VALUES = {
    "p_value": "other actions than usual",
    "p_too_noisy": "steps that fit no action well",
    "p_too_exact": "less noise than expected",
    "p_stopped": "stands still for too long",
    "p_change": "changed on the way",
}


@click.command(cls=TracksCommand)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@reading_options
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Trajectories to list; --csv and --json hold all.",
)
@click.option(
    "--replicates",
    type=click.IntRange(min=20),
    default=200,
    show_default=True,
    help="Simulations of each trajectory; more where p-values are small.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write a CSV file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else.")
@click.option(
    "--fail-if-anomalous",
    "level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="LEVEL",
    help="End with exit code 3 if any adjusted p-value (q_combined) is at most this.",
)
def anomaly(
    run: Path,
    file: Path,
    top: int,
    replicates: int,
    seed: int,
    csv_file: Path | None,
    as_json: bool,
    level: float | None,
    states: list[str] | None,
    trajectory: str | None,
    time: str | None,
    **cleaning: str | None,
) -> None:
    """Rank tracks by how far they are from the behaviour of a stored run.

    RUN is a directory that `onlooker fit` wrote; FILE holds tracks to judge, best not those of the
    fit. Columns and cleaning are those of the fit unless given. A q-value is a p-value adjusted
    for the number of trajectories.

    \b
    Example:
      onlooker anomaly run new_tracks.csv --top 10
      onlooker anomaly run new_tracks.csv --fail-if-anomalous 0.01 || echo "look at them"
    """
    require_folder(csv_file)
    from onlooker import Demonstrations
    from onlooker import anomaly as scoring
    from onlooker.findings.opened import OpenedRun
    from onlooker.fitting.run import notes
    from onlooker.fitting.wording import as_option

    say = teller(as_json)
    opened = OpenedRun.read(run)
    for note in opened.notes:
        say(f"Note: {note}")
    given = {name: value for name, value in cleaning.items() if value is not None}
    reading = opened.record.reading.changed(given, states=states, trajectory=trajectory, time=time)
    with notes(say):
        demos = Demonstrations.from_tracks(reading.read(file))
    if demos.reading is not None:
        say(demos.reading.describe(as_option))
    with notes(say):
        scores = scoring.score(
            opened.posterior,
            opened.with_features(demos),
            n_replicates=replicates,
            random_state=seed,
        )
    ranking = scores.ranking(by="p_combined")
    if csv_file is not None:
        write_csv(csv_file, ranking.to_csv())
        say(f"{csv_file}: {len(ranking):,} trajectories.")
    anomalous = (
        [] if level is None else [str(n) for n in ranking.index[ranking["q_combined"] <= level]]
    )
    if as_json:
        _print_json(run, scores, ranking, level, anomalous)
    else:
        _print(scores, ranking.head(top), len(ranking))
    if anomalous:
        say(
            f"{len(anomalous)} of {len(ranking)} trajectories are anomalous "
            f"(q_combined <= {level:g})."
        )
        click.get_current_context().exit(ANOMALOUS)


def _print_json(
    run: Path, scores: AnomalyScores, ranking: pd.DataFrame, level: float | None, found: list[str]
) -> None:
    steps = scores.to_frame("steps")
    print_json(
        {
            "run": str(run),
            "ranking": ranking.reset_index().to_dict("records"),
            "unexplained": steps[~steps["explained"]].to_dict("records"),
            "changes": scores.changes().reset_index().to_dict("records"),
            "settings": scores.settings,
            "level": level,
            "anomalous": found,
        }
    )


def _print(scores: AnomalyScores, ranking: pd.DataFrame, total: int) -> None:
    rows = [
        [
            str(name),
            str(int(row["n_steps"])),
            f"{row['score']:.2f}",
            f"{row['p_combined']:.3g}",
            f"{row['q_combined']:.3g}",
            str(int(row["n_unexplained"]) or "-"),
            _reason(row),
        ]
        for name, row in ranking.iterrows()
    ]
    header = ["trajectory", "steps", "score", "p", "q", "unexplained", "oddest about it"]
    click.echo(table(header, rows))
    if total > len(rows):
        click.echo(f"and {total - len(rows):,} more: --top, --csv or --json tell them")
    _print_alarms(scores)
    _print_changes(scores, len(rows))


def _reason(row: Any) -> str:
    name = min(_P_VALUES, key=lambda key: float(row[key]))
    return _P_VALUES[name] if row[name] <= 0.05 else "nothing"


def _print_alarms(scores: AnomalyScores) -> None:
    steps = scores.to_frame("steps")
    odd = steps[~steps["explained"]].sort_values("misfit", ascending=False, kind="stable")
    if len(odd) == 0:
        click.echo("No step is without an action that explains it.")
        return
    click.echo(f"Alarm: {len(odd):,} of {len(steps):,} steps that no action explains, worst first:")
    for _, step in odd.head(_MOST_ALARMS).iterrows():
        click.echo(f"  {step['trajectory']}, step {step['step']}: {step['misfit']:.3g} sigma off")
    if len(odd) > _MOST_ALARMS:
        click.echo(f"  and {len(odd) - _MOST_ALARMS:,} more")


def _print_changes(scores: AnomalyScores, most: int) -> None:
    changes: pd.DataFrame = scores.changes()
    if len(changes) == 0:
        click.echo("No trajectory changed its ways (at a false alarm in 20).")
        return
    click.echo("Changes of behaviour within a trajectory (a false alarm in 20):")
    for name, row in changes.head(most).iterrows():
        what = "other actions" if row["changed"] == "action_surprise" else "steps that fit worse"
        click.echo(
            f"  {name}: {what} from step {row['onset']} ({row['onset_low']} to "
            f"{row['onset_high']}) to {row['end']}, p {row['p_change']:.3g}"
        )
    if len(changes) > most:
        click.echo(f"  and {len(changes) - most:,} more")
