"""From finished runs to files: table, figure, record, comparison."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlooker._version import __version__
from onlooker.experiments.experiment import Comparison, Config, Experiment, compare
from onlooker.experiments.runner import Finished, run_all
from onlooker.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

_LIBRARIES = ("numpy", "scipy", "numba", "pandas", "scikit-learn", "POT")


@dataclass(frozen=True)
class Outcome:
    """What `reproduce` made."""

    folder: Path
    table: pd.DataFrame
    failures: list[Finished]
    comparisons: list[Comparison]


def reproduce(
    experiment: Experiment,
    config: Config,
    output: Path,
    *,
    jobs: int = 1,
    progress: bool = True,
    fresh: bool = False,
) -> Outcome:
    """Run an experiment and write its results into a folder of its own below `output`.

    Runs that are stored there already are taken as they are. Parameters as of `run_all`.
    """
    import pandas as pd

    folder = output / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    finished = run_all(experiment, config, folder, jobs=jobs, progress=progress, fresh=fresh)
    minutes = (time.monotonic() - began) / 60
    failures = [one for one in finished if one.rows is None]
    rows = [{"run": one.run, **row} for one in finished for row in one.rows or []]
    if not rows:
        raise RuntimeError(f"all runs of {experiment.name} failed; the first:\n{failures[0].error}")
    table = pd.DataFrame(rows)
    comparisons = compare_all(experiment, config, table)
    write_table(table, folder)
    experiment.plot(table, folder, config)
    record = _record(experiment, config, finished, minutes, jobs)
    _write(folder / "info.json", json.dumps(record, indent=2) + "\n")
    _write(folder / "comparison.md", comparison_table(comparisons))
    return Outcome(folder, table, failures, comparisons)


def compare_all(experiment: Experiment, config: Config, table: pd.DataFrame) -> list[Comparison]:
    """Every reference beside our figure; none if the configuration is not the paper's."""
    references = experiment.references if config.is_the_papers else ()
    return [found for reference in references if (found := compare(reference, table))]


def write_table(table: pd.DataFrame, folder: Path) -> None:
    """``results.csv``, and ``results.parquet`` where pyarrow is installed."""
    _write(folder / "results.csv", table.to_csv(index=False))
    if util.find_spec("pyarrow"):
        write_atomically(
            folder / "results.parquet", lambda file: table.to_parquet(file, index=False)
        )


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))


def _record(
    experiment: Experiment,
    config: Config,
    finished: list[Finished],
    minutes: float,
    jobs: int,
) -> dict[str, Any]:
    good = [one for one in finished if one.rows is not None]
    return {
        "experiment": experiment.name,
        "config": dataclasses.asdict(config),
        "seed": config.seed,
        "fingerprint": config.fingerprint(experiment.name),
        "runs": len(good),
        "failed": [
            {"run": one.run, "spawn_key": [one.run], "error": last_line(one.error)}
            for one in finished
            if one.rows is None
        ],
        "processor_minutes": _minutes(good),
        "minutes_of_this_command": minutes,
        "jobs": jobs,
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions(),
    }


def _minutes(finished: list[Finished]) -> float | None:
    """Processor time of all runs; None where that of some is not known."""
    known = [one.seconds for one in finished if one.seconds is not None]
    return sum(known) / 60 if len(known) == len(finished) else None


def versions() -> dict[str, str]:
    """What the numbers depend on."""
    found = {"onlooker": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def last_line(text: str) -> str:
    """The line of a traceback that says what went wrong."""
    return (text.strip().splitlines() or ["unknown"])[-1]


def comparison_table(comparisons: list[Comparison]) -> str:
    """Markdown: ours, the reference, and whether they agree."""
    lines = [
        "| what | here | runs | reference | runs | difference / standard error | agrees |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in comparisons:
        digits = one.reference.digits
        here, there = (f"{value:.{digits}f}" for value in (one.value, one.reference.value))
        if math.isfinite(one.sd):
            here += f" ± {one.sd:.{digits}f}"
        if one.reference.sd is not None:
            there += f" ± {one.reference.sd:.{digits}f}"
        error = one.standard_error
        ratio = f"{one.difference / error:+.1f}" if error > 0 else "–"
        verdict = {True: "yes", False: "**no**", None: "one run cannot tell"}[one.agrees]
        lines.append(
            f"| {one.reference.what} | {here} | {one.runs} | {there} | {one.reference.runs} "
            f"| {ratio} | {verdict} |"
        )
    return "\n".join(lines) + "\n"
