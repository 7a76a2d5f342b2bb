"""``onlooker anomaly``: do new tracks behave as a run has learned?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onlooker.cli.options import TracksCommand, reading_options
from onlooker.cli.output import echo, print_json, printer, require_folder, table, write_csv

if TYPE_CHECKING:
    import pandas as pd

    from onlooker import Demonstrations
    from onlooker.anomaly import AnomalyScores

ANOMALOUS = 3  # exit code
_MAX_ALARMS = 10
_P_VALUES = {
    "p_value": "unusual actions",
    "p_too_noisy": "more noise than expected",
    "p_too_exact": "less noise than expected",
    "p_stopped": "a long stop",
    "p_change": "a change of behaviour",
}


@click.command(cls=TracksCommand)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Nominal tracks that the run has not seen, for the p-values.  [default: those that the "
    "fit set aside]",
)
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
    default=100,
    show_default=True,
    help="Simulations of each trajectory, for p_model.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write a CSV file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; messages go to stderr.")
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
    reference: Path | None,
    top: int,
    replicates: int,
    seed: int,
    csv_file: Path | None,
    as_json: bool,
    level: float | None,
    states: list[str] | None,
    trajectory: str | None,
    time: str | None,
    encoding: str | None,
    **cleaning: str | float | None,
) -> None:
    """Rank tracks by how far they are from the behaviour of a stored run.

    RUN is a directory that `onlooker fit` wrote; FILE holds the tracks to score, not those of the
    fit. Columns and cleaning are those of the fit unless given. A p-value is the share of nominal
    tracks as odd: of --reference, or of those that the fit set aside; where these are fewer than
    20, tracks of the fit join them, scored by short chains without them. A q-value is a p-value
    adjusted for the number of trajectories. p_model trusts the model instead.

    \b
    Example:
      onlooker anomaly run new_tracks.csv --top 10
      onlooker anomaly run new_tracks.csv --reference nominal.csv
      onlooker anomaly run new_tracks.csv --fail-if-anomalous 0.01 || echo "see the alarms"
    """
    require_folder(csv_file)
    from onlooker import anomaly as scoring
    from onlooker.cli.calibration import ENOUGH, Reader, reference_scores
    from onlooker.findings.opened import OpenedRun
    from onlooker.fitting.run import notes
    from onlooker.reading.tracks import counted

    notify = printer(as_json)
    opened = OpenedRun.read(run)
    for note in opened.notes:
        notify(f"Note: {note}")
    given = {name: value for name, value in cleaning.items() if value is not None}
    reading = opened.record.reading.changed(
        given, states=states, trajectory=trajectory, time=time, encoding=encoding
    )
    reader = Reader(opened, reading, notify)
    demos = reader.read(file)
    reader.note_seen(demos)
    nominal = reference_scores(reader, reference, seed)
    if nominal is not None:
        least = 1 / (1 + len(nominal))
        few = f"; {ENOUGH} allow p-values below 0.05 (--reference)" if len(nominal) < ENOUGH else ""
        notify(f"The smallest p-value that {len(nominal)} tracks allow is {least:.3g}{few}.")
        if level is not None and level < least:
            raise ValueError(
                f"--fail-if-anomalous {level:g} would never fail: with {len(nominal)} reference "
                f"tracks no p-value is below {least:.3g}; it takes {math.ceil(1 / level) - 1} of "
                "them, by --reference"
            )
    with notes(notify):
        scores = scoring.score(
            opened.posterior, demos, reference=nominal, n_replicates=replicates, random_state=seed
        )
    ranking = scores.ranking(by="p_combined")
    if csv_file is not None:
        write_csv(csv_file, ranking, index=True)
        notify(f"{csv_file}: {counted(len(ranking), 'trajectory')}.")
    anomalous = (
        [] if level is None else [str(n) for n in ranking.index[ranking["q_combined"] <= level]]
    )
    if as_json:
        _print_json(run, scores, demos, ranking, level, anomalous)
    else:
        _print(scores, demos, ranking.head(top), len(ranking))
    if anomalous:
        notify(
            f"Anomalous (q_combined <= {level:g}): {len(anomalous)} of {len(ranking)} trajectories."
        )
        click.get_current_context().exit(ANOMALOUS)


def _print_json(
    run: Path,
    scores: AnomalyScores,
    demos: Demonstrations,
    ranking: pd.DataFrame,
    level: float | None,
    found: list[str],
) -> None:
    print_json(
        {
            "run": str(run),
            "ranking": ranking.reset_index().to_dict("records"),
            "unexplained": _unexplained(scores, demos).to_dict("records"),
            "changes": scores.changes(_level(scores)).reset_index().to_dict("records"),
            "settings": scores.settings,
            "level": level,
            "anomalous": found,
        }
    )


def _print(scores: AnomalyScores, demos: Demonstrations, ranking: pd.DataFrame, total: int) -> None:
    rows = [
        [
            str(name),
            str(int(row["n_steps"])),
            f"{row['score']:.2f}",
            f"{row['p_combined']:.3g}",
            f"{row['q_combined']:.3g}",
            f"{row['p_model']:.3g}",
            str(int(row["n_unexplained"]) or "-"),
            _reason(row, _level(scores)),
        ]
        for name, row in ranking.iterrows()
    ]
    header = ["trajectory", "steps", "score", "p", "q", "p_model", "unexplained", "main deviation"]
    echo(table(header, rows))
    if total > len(rows):
        echo(f"and {total - len(rows):,} more: see --top, --csv or --json")
    _print_behaviours(ranking)
    _print_alarms(scores, demos)
    _print_changes(scores, demos, len(rows))


def _print_behaviours(ranking: pd.DataFrame) -> None:
    """What deviating trajectories do instead."""
    found = ranking[ranking["behaviour"] != ""]
    if len(found):
        echo("Best explanations of the tracks that deviate:")
    for name, row in found.iterrows():
        echo(f"  {name}: {row['behaviour']} ({row['gain']:.0f} nats better than the run's policy)")


def _level(scores: AnomalyScores) -> float:
    """5 %, or the smallest p-value that there can be."""
    n_reference = scores.settings["n_reference"]
    return max(0.05, 1 / (1 + n_reference)) if n_reference else 0.05


def _reason(row: Any, level: float) -> str:
    """The oddest respect, if all of them together are odd: of five, some respect often is."""
    name = min(_P_VALUES, key=lambda key: float(row[key]))
    return _P_VALUES[name] if row["p_combined"] <= level else "none"


def _unexplained(scores: AnomalyScores, demos: Demonstrations) -> pd.DataFrame:
    """The steps that no action explains, worst first, with the place of each in the file."""
    steps = scores.to_frame("steps")
    steps["place"] = ""
    odd = ~scores.steps.explained
    starts = demos.offsets[scores.steps.trajectory[odd]] + scores.steps.step[odd]
    steps.loc[odd, "place"] = [demos.place(int(start)) for start in starts]
    return steps[odd].sort_values("misfit", ascending=False, kind="stable")


def _print_alarms(scores: AnomalyScores, demos: Demonstrations) -> None:
    from onlooker.reading.tracks import counted

    odd, n_steps = _unexplained(scores, demos), len(scores.steps.step)
    if len(odd) == 0:
        echo("Every step is explained by some action.")
        return
    rows = "; rows count from 0" if demos.rows is not None else ""
    text = f"Alarm: no action explains {len(odd):,} of {counted(n_steps, 'step')}"
    echo(f"{text}; the worst first{rows}:")
    for _, step in odd.head(_MAX_ALARMS).iterrows():
        echo(f"  {step['place']}: {step['misfit']:.3g} sigma off")
    if len(odd) > _MAX_ALARMS:
        echo(f"  and {len(odd) - _MAX_ALARMS:,} more")


def _print_changes(scores: AnomalyScores, demos: Demonstrations, most: int) -> None:
    import numpy as np

    level = _level(scores)
    changes: pd.DataFrame = scores.changes(level)
    if len(changes) == 0:
        echo(f"No change points ({100 * level:.2g} % level).")
        return
    echo(f"Change points ({100 * level:.2g} % level):")
    # as `changes` sorts them; names may repeat
    order = np.argsort(scores.trajectories.p_change, kind="stable")
    for k, (_, row) in zip(order, changes.head(most).iterrows(), strict=False):
        what = "other actions" if row["changed"] == "action_surprise" else "noisier steps"
        echo(
            f"  {demos.place(int(demos.offsets[k] + max(0, row['onset'])))}: {what} from there "
            f"(steps {row['onset_low']} to {row['onset_high']}) to step {row['end']}, "
            f"p {row['p_change']:.3g}"
        )
    if len(changes) > most:
        echo(f"  and {len(changes) - most:,} more")
