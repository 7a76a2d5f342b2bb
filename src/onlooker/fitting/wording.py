"""Messages of the library as the command line writes them: arguments are options."""

from __future__ import annotations

import json

from onlooker.checks import Advice, Setting, alternatives

_OPTIONS = {"store": "output"}
_KEYS = {
    **dict.fromkeys(("gap", "interval", "max_gap", "periodic"), "cleaning"),
    "n_neighbors": "prior",
    "nodes": "sampling",
    "thin": "sampling",
}
"""Tables of the model file that hold what has no option."""


def as_option(setting: Setting) -> str:
    """``--missing drop or --missing split``; a flag where the value is true.

    What has no option is a key of the model file: ``interval of [cleaning] in the model file``.
    """
    if setting.argument in _KEYS:
        key = {"n_neighbors": "neighbors"}.get(setting.argument, setting.argument)
        given = [json.dumps(value, default=str) for value in setting.values]
        text = f"{key} = {alternatives(given)}" if given else key
        return f"{text} of [{_KEYS[setting.argument]}] in the model file"
    option = f"--{_OPTIONS.get(setting.argument, setting.argument).replace('_', '-')}"
    if setting.values in ((), (True,)):
        return option
    values = [f"{v:.12g}" if isinstance(v, float) else str(v) for v in setting.values]
    return alternatives([f"{option} {value}" for value in values])


def worded(message: object) -> str:
    """An error or a warning, with options where it names settings."""
    return message.worded(as_option) if isinstance(message, Advice) else str(message)
