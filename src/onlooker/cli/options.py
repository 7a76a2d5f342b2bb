"""Options that several commands share, and options that take a list of names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


class Names(click.Option):
    """An option that takes names until the next option: ``--states x y``.

    ``--states x,y`` and ``--states x --states y`` mean the same.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        options |= {"multiple": True, "callback": _split}
        super().__init__(*args, **options)


def _split(ctx: click.Context, param: click.Parameter, given: Any) -> list[str] | None:
    names = [part.strip() for item in given or () for part in item.split(",")]
    if any(not name for name in names):
        raise click.BadParameter("a name is empty", ctx=ctx, param=param)
    return names or None


class CommandWithNames(click.Command):
    """A command whose `Names` options eat values until the next option.

    If an argument would be left without a value, the last ones eaten are given back: in
    ``fit --states x y tracks.csv`` the file is the last word.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write every value with an option of its own, which is what click can read."""
        return super().parse_args(ctx, self._spread(list(args)))

    def _spread(self, args: list[str]) -> list[str]:
        options = {name: p for p in self.params for name in p.opts if isinstance(p, click.Option)}
        done: list[str] = []
        n_words, eaten, given_back, at = 0, 0, len(args), 0
        while at < len(args):
            word = args[at]
            at += 1
            if word == "--":
                n_words += len(args) - at
                done += [word, *args[at:]]
                break
            option = options.get(word if word.startswith("--") else word[:2])
            done.append(word)
            if option is None:
                n_words += not _is_option(word)
            elif isinstance(option, Names):
                start = at
                while at < len(args) and not _is_option(args[at]):
                    at += 1
                for number, value in enumerate(args[start:at]):
                    done += [value] if number == 0 else [word, value]
                if at - start > 1:
                    eaten, given_back = at - start - 1, len(done)
            elif not option.is_flag and (word.startswith("--") or word == word[:2]):
                done += args[at : at + option.nargs]
                at += option.nargs
        wanted = sum(isinstance(p, click.Argument) and p.required for p in self.params)
        missing = min(max(wanted - n_words, 0), eaten)
        back = done[given_back - 2 * missing : given_back]
        return done[: given_back - 2 * missing] + back[1::2] + done[given_back:]


def _is_option(word: str) -> bool:
    return word.startswith("-") and len(word) > 1


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Columns of a file of tracks, and what to do with what is wrong with it."""
    choices = {
        "missing": (
            ["error", "drop", "split", "interpolate", "infer"],
            "states not seen",
        ),
        "duplicates": (["error", "first", "last", "mean"], "rows that share a time"),
        "gaps": (["keep", "split", "resample", "error"], "gaps in time"),
    }
    for name, (allowed, what) in reversed(choices.items()):
        command = click.option(
            f"--{name}", type=click.Choice(allowed), help=f"What to do with {what}."
        )(command)
    columns = {
        "time": "Column to sort each trajectory by.",
        "trajectory": "Column that tells trajectories apart.",
    }
    for name, told in columns.items():
        command = click.option(f"--{name}", metavar="COLUMN", help=told)(command)
    return click.option(
        "--states", cls=Names, metavar="COLUMN...", help="Columns of the state: x y, or x,y."
    )(command)
