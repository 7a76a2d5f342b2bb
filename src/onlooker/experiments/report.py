"""One Markdown page of all results: counts, claims, figures, comparisons."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlooker.experiments import NAMES, load
from onlooker.experiments.experiment import Claim, Config, Experiment
from onlooker.experiments.results import compare_all, comparison_table
from onlooker.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

_VERDICTS = {True: "holds", False: "**does not hold**", None: "cannot tell from these runs"}


@dataclass(frozen=True)
class Result:
    """What an experiment left in its folder."""

    experiment: Experiment
    config: Config
    info: dict[str, Any]
    table: pd.DataFrame
    folder: Path


def write_report(output: Path, path: Path) -> None:
    """Write `path`, and its pictures beside it, from the results below `output`."""
    results = list(read_results(output))
    if not results:
        raise ValueError(f"there are no results in {output}; run an experiment first")
    pictures = path.parent / "images" / "reproduction"
    pictures.mkdir(parents=True, exist_ok=True)
    for result in results:
        name = f"{result.experiment.name}.png"
        shutil.copyfile(result.folder / name, pictures / name)
    where = Path(os.path.relpath(pictures, path.parent)).as_posix()
    parts = [_opening(results), _claims(results)]
    parts += [_section(result, where) for result in results]
    text = "\n".join(parts)
    write_atomically(path, lambda file: file.write(text.encode()))


def read_results(output: Path) -> Iterator[Result]:
    """The results of all experiments below `output`, in the paper's order."""
    import pandas as pd

    for name in NAMES:
        folder = output / name
        if not (folder / "info.json").exists():
            continue
        info = json.loads((folder / "info.json").read_text(encoding="utf-8"))
        experiment = load(name)
        settings: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in info["config"].items()
        }
        table = pd.read_csv(folder / "results.csv")
        yield Result(experiment, experiment.config(**settings), info, table, folder)


def _opening(results: list[Result]) -> str:
    versions = results[0].info["versions"]
    lines = [
        "# The paper's experiments, repeated",
        "",
        "This page was written by `onlooker reproduce NAME... --report docs/reproduction.md` from "
        "the results that it found; no result was typed in. Each experiment consists of "
        "independent Monte Carlo runs, with data (and in Example 2 (b) and (c) a world) "
        "of their own.",
        "",
        "| experiment | runs | default | failed | seed | processor minutes | date "
        "| agree with the reference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        verdicts = [found.agrees for found in _compared(one)]
        lines.append(
            f"| [{one.experiment.name}](#{one.experiment.name}) | {one.info['runs']} "
            f"| {one.experiment.config().runs} | {len(one.info['failed'])} | {one.info['seed']} "
            f"| {_number(one.info.get('processor_minutes'))} | {one.info['date']} "
            f"| {verdicts.count(True)} of {len(verdicts)} |"
        )
    fewer = [one for one in results if one.info["runs"] < one.experiment.config().runs]
    if fewer:
        names = ", ".join(one.experiment.name for one in fewer)
        lines += [
            "",
            f"**Fewer runs than the default were made of: {names}.** Spreads are estimated from "
            "those few runs, so that agreement and disagreement are both less sure than they "
            "look; the same command with more runs goes on from here.",
        ]
    lines += [
        "",
        "Versions: " + ", ".join(f"{name} {number}" for name, number in versions.items()) + ".",
        "",
    ]
    return "\n".join(lines)


def _number(minutes: float | None) -> str:
    return "not recorded" if minutes is None else f"{minutes:.1f}"


def _claims(results: list[Result]) -> str:
    lines = [
        "## The paper's claims",
        "",
        "| experiment | claim | verdict | what came out |",
        "|---|---|---|---|",
    ]
    for one in results:
        claims: list[Claim] = one.experiment.claims(one.table, one.config)
        lines += [
            f"| {one.experiment.name} | {claim.text} | {_VERDICTS[claim.holds]} "
            f"| {claim.evidence} |"
            for claim in claims
        ]
    lines += [
        "",
        "Where errors of two methods are compared, the difference is taken run by run, and a mean "
        "difference within two standard errors is called neither way; variances, and rises of "
        "errors, are compared as they are, without regard to their own uncertainty.",
        "",
    ]
    return "\n".join(lines)


def _section(result: Result, pictures: str) -> str:
    name = result.experiment.name
    return "\n".join(
        [
            f"## {name}",
            "",
            f"{result.experiment.title}, {result.info['runs']} runs.",
            "",
            f"![{result.experiment.title}]({pictures}/{name}.png)",
            "",
            result.experiment.caption,
            "",
            "Beside the figures of an independent reproduction of the paper; ± is the standard "
            "deviation of a run. They agree if the means differ by less than three standard "
            "errors and the rounding of the reference. Where the spread of the reference is not "
            "known it is taken to be ours.",
            "",
            comparison_table(_compared(result)),
            *([result.experiment.remarks, ""] if result.experiment.remarks else []),
        ]
    )


def _compared(result: Result) -> list[Any]:
    return compare_all(result.experiment, result.config, result.table)
