"""``click-commands``: a command line as a reference, from the help that click has anyway."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import click
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


class ClickCommands(SphinxDirective):
    """One section a command: how it is called, what it does, its options."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, name = self.arguments[0].split(":")
        group = getattr(importlib.import_module(module), name)
        program = module.partition(".")[0]
        context = click.Context(group, info_name=program)
        lines = [f"## {program}", "", *_described(group, context)]
        for child in sorted(group.commands):
            command = group.commands[child]
            lines += [f"## {program} {child}", ""]
            lines += _described(command, click.Context(command, info_name=child, parent=context))
        return self.parse_text_to_nodes(
            StringList(lines, source=module), allow_section_headings=True
        )


def _described(command: click.Command, context: click.Context) -> Iterator[str]:
    yield from _fenced(["$ " + context.command.get_usage(context).removeprefix("Usage: ")])
    yield from _help(command.help or "")
    options = [p for p in command.get_params(context) if isinstance(p, click.Option)]
    yield from ["| option | meaning |", "|---|---|"]
    for option in options:
        record = option.get_help_record(context)
        if record is not None:
            name, meaning = map(_cell, record)
            yield f"| `{name}` | {_with_code(meaning)} |"
    yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _with_code(text: str) -> str:
    """Options in a sentence as code: dashes would be joined otherwise."""
    return re.sub(r"(?<![`\w])(--[a-z][a-z-]*)", r"`\1`", text)


def _help(text: str) -> Iterator[str]:
    """Paragraphs; one that starts with ``\\b`` is kept as it is, for click and here."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            first, *rest = paragraph.removeprefix("\b\n").splitlines()
            yield from ["", first, *_fenced(inspect.cleandoc("\n".join(rest)).splitlines())]
        else:
            yield from ["", *_with_code(paragraph).splitlines()]
    yield ""


def _fenced(lines: list[str]) -> list[str]:
    return ["", "```console", *lines, "```", ""]


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("click-commands", ClickCommands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
