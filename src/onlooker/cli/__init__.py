"""The command line: how commands are found and how they fail."""

from __future__ import annotations

import errno
from typing import Any

import click

from onlooker._version import __version__
from onlooker.cli.anomaly import anomaly
from onlooker.cli.check import check
from onlooker.cli.demo import demo
from onlooker.cli.explore import explore
from onlooker.cli.fit import fit
from onlooker.cli.output import echo
from onlooker.cli.predict import predict
from onlooker.cli.report import report
from onlooker.cli.reproduce import reproduce
from onlooker.cli.summary import summary

_STOPPED, _TERMINATED = 130, 143  # what shells expect of commands that signals 2 and 15 ended


class _Cli(click.Group):
    """Commands whose errors are one clear line; a traceback only on request."""

    def invoke(self, ctx: click.Context) -> Any:
        from onlooker.stopping import Terminated, terminable

        try:
            with terminable():
                return super().invoke(ctx)
        except Terminated:
            echo("Stopped by SIGTERM.", err=True)
            ctx.exit(_TERMINATED)
        except KeyboardInterrupt:
            echo("Stopped by Ctrl-C.", err=True)
            ctx.exit(_STOPPED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if ctx.params["debug"] or getattr(error, "errno", None) == errno.EPIPE:
                raise
            raise click.ClickException(_one_line(error)) from error


def _one_line(error: Exception) -> str:
    from onlooker.checks import Advice, printable
    from onlooker.fitting.wording import worded

    text = printable(" ".join(worded(error).split())) or type(error).__name__
    if isinstance(error, Advice | ValueError | TypeError | OSError | ImportError):
        return text
    return f"{type(error).__name__}: {text} (onlooker --debug shows where)"


@click.group(cls=_Cli, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="onlooker")
@click.option("--debug", is_flag=True, envvar="ONLOOKER_DEBUG", help="Show tracebacks of errors.")
def main(debug: bool) -> None:
    """Watch a system move through its states and recognise the policy behind it."""


# Short enough for 80 columns; the rest is in each command's help.
for command, short_help in (
    (anomaly, "Find tracks that deviate from what a run has learned."),
    (check, "Check every file of a stored run, and repair it."),
    (demo, "Recognise the policy of a simulated expert and draw it."),
    (explore, "Explore a stored run in the browser, or compare several."),
    (fit, "Recognise the policy behind tracks of states."),
    (predict, "Predict the actions at given states, with intervals."),
    (report, "Write a stored run as a self-contained HTML file."),
    (reproduce, "Repeat the paper's experiments: tables, figures, a comparison."),
    (summary, "Summarise a stored run: findings and convergence."),
):
    command.short_help = short_help
    main.add_command(command)


if __name__ == "__main__":
    main()
