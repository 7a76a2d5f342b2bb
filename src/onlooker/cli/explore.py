"""``onlooker explore``: a stored run as a page that answers questions."""

from __future__ import annotations

from pathlib import Path

import click

from onlooker.cli.output import echo, has_browser


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--no-browser", is_flag=True, help="Only print the address of the page.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port.  [default: any free one]"
)
def explore(runs: tuple[Path, ...], no_browser: bool, port: int) -> None:
    """Explore a stored run in the browser; two or more to compare them.

    RUN is a directory that `onlooker fit --output` or `sample(store=...)` wrote, also while the
    run is still in progress: the page is updated. It is served to this machine only, until Ctrl-C.
    """
    from onlooker.findings.opened import require_run

    for run in runs:
        if not run.is_dir():  # a directory may hold a run soon
            require_run(run)
    from onlooker.explorer.server import Explorer

    explorer = Explorer(runs, port)
    thread = explorer.start()
    echo(f"{explorer.url}\nPress Ctrl-C to stop.")
    try:
        if not no_browser and has_browser():
            click.launch(explorer.url)
        while thread.is_alive():
            thread.join(1.0)
    except KeyboardInterrupt:
        echo("")
    finally:
        explorer.close()
