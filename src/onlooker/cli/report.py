"""``onlooker report``: a stored run as one page to send to anyone."""

from __future__ import annotations

from pathlib import Path

import click

from onlooker.cli.output import echo, has_browser


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default="report.html",
    show_default=True,
    help="File to write.",
)
@click.option("--force", is_flag=True, help="Replace the file even if it is not a report.")
@click.option("--show", is_flag=True, help="Open the report when done.")
def report(run: Path, output: Path, force: bool, show: bool) -> None:
    """Write a report of a stored run: one self-contained file that needs no network.

    RUN is a directory that `onlooker fit --output` or `sample(store=...)` wrote, finished or not,
    or a file of `Posterior.save`.
    """
    from onlooker.findings.opened import require_run

    require_run(run)
    if not output.parent.is_dir():
        raise click.ClickException(f"there is no directory {str(output.parent)!r} to write to")
    from onlooker.explorer.report import is_report, write_report
    from onlooker.reading.tracks import counted

    if output.exists() and not force and not is_report(output):
        raise click.ClickException(f"{output} is not a report; --force replaces it")
    written = write_report(run, output, progress=True)
    echo(
        f"{output}: {written['bytes'] / 1e6:.1f} MB with {counted(written['frames'], 'draw')}. "
        f"{written['text']}"
    )
    if show and has_browser():
        click.launch(str(output))
    if not written["readable"]:
        raise click.ClickException("the run could not be read; the page says why")
