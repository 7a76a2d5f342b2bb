"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


class TracksCommand(click.Command):
    """A command with ``--states x,y``; ``--states x y`` is refused with the remedy."""

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse words that no argument takes."""
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            remedy = "; join names of columns with commas: --states x,y"
            ctx.fail(f"unexpected argument {rest[0]!r}{remedy if ctx.params['states'] else ''}")
        return rest


def states_option(help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--states x,y`` as a list of names."""
    return click.option("--states", multiple=True, callback=_split, metavar="COLUMN,...", help=help)


def _split(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> list[str] | None:
    names = [name.strip() for item in given for name in item.split(",")]
    if any(not name for name in names):
        raise click.BadParameter("a name is empty", ctx=ctx, param=param)
    return names or None


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Columns of a file of tracks, and what to do with what is wrong with it."""
    choices = {
        "missing": (["error", "drop", "split", "interpolate", "infer"], "missing states"),
        "duplicates": (["error", "first", "last", "mean"], "rows that share a time"),
        "gaps": (["keep", "split", "resample", "error"], "gaps in time"),
    }
    for name, (allowed, what) in reversed(choices.items()):
        command = click.option(
            f"--{name}", type=click.Choice(allowed), help=f"What to do with {what}."
        )(command)
    command = click.option(
        "--max-speed",
        type=click.FloatRange(min=0, min_open=True),
        help="Treat states that are reached faster as missing: per hour for dates, km on Earth.",
    )(command)
    command = click.option(
        "--encoding", metavar="NAME", help="Encoding of a CSV file.  [default: detected]"
    )(command)
    columns = {
        "time": "Column to sort each trajectory by.",
        "trajectory": "Column that identifies the trajectory.",
    }
    for name, text in columns.items():
        command = click.option(f"--{name}", metavar="COLUMN", help=text)(command)
    return states_option("Columns of the state, as in x,y.")(command)
