"""``onlooker check``: is a stored run sound?"""

from __future__ import annotations

from pathlib import Path

import click

from onlooker.cli.output import echo


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--repair", is_flag=True, help="Set aside what is damaged, so that it is redrawn.")
def check(run: Path, repair: bool) -> None:
    """Check every file of a stored run: what it holds, and that it fits the rest.

    RUN is a directory that `onlooker fit --output` or `sample(store=...)` wrote, or a file of
    `Posterior.save`. A part of a chain that cannot be read is lost with the draws after it;
    --repair renames these files (.broken), and `onlooker fit --resume` draws them again.

    \b
    Example:
      onlooker check run
      onlooker check run --repair
    """
    from onlooker.findings.opened import require_run
    from onlooker.findings.record import Record
    from onlooker.reading.tracks import counted
    from onlooker.runs.verifying import verify_run

    require_run(run)
    verdict = verify_run(run, repair)
    for line in verdict.lost:
        echo(f"Lost: {line}.")
    if not Record.readable(run):
        echo("Lost: names of columns and actions (fit.json); fit --resume writes them again.")
    sound = f"{counted(verdict.chains, 'chain')} of {counted(verdict.draws, 'draw')}"
    if not verdict.lost:
        echo(f"{run}: {sound}, all sound.")
    elif repair:
        echo(f"{run}: {sound} are sound; resuming the run draws the rest again.")
    else:
        raise click.ClickException(
            f"{run} is damaged: {sound} are sound; onlooker check --repair sets the rest aside"
        )
