"""Messages of the library as the command line writes them: arguments are options."""

from __future__ import annotations

from onlooker.checks import Advice, Setting, alternatives

_OPTIONS = {"store": "output"}


def as_option(setting: Setting) -> str:
    """``--missing drop or --missing split``; a flag where the value is true."""
    option = f"--{_OPTIONS.get(setting.argument, setting.argument).replace('_', '-')}"
    if setting.values in ((), (True,)):
        return option
    return alternatives([f"{option} {value}" for value in setting.values])


def worded(message: object) -> str:
    """An error or a warning, with options where it names settings."""
    return message.worded(as_option) if isinstance(message, Advice) else str(message)
