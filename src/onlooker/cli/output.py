"""Output of the commands: messages, tables, JSON and CSV files."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd


def echo(text: str, err: bool = False) -> None:
    """Print; what files call things cannot steer the terminal."""
    from onlooker.checks import printable

    click.echo(printable(text), err=err)


def printer(as_json: bool) -> Callable[[str], None]:
    """Prints messages on standard output, or on standard error beside JSON."""

    def notify(text: str) -> None:
        echo(text, err=as_json)

    return notify


def print_json(value: Any) -> None:
    """Strict JSON; what is not finite becomes null."""
    echo(json.dumps(plain(value), allow_nan=False, indent=1, ensure_ascii=False))


def plain(value: Any) -> Any:
    """Lists, dictionaries, text and numbers, as JSON knows them."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side; numbers to the right."""
    columns = list(zip(header, *rows, strict=True))
    lines = []
    right = [all(_is_number(cell) for cell in column[1:]) for column in columns]
    widths = [max(len(cell) for cell in column) for column in columns]
    for row in [header, *rows]:
        cells = [
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _is_number(cell: str) -> bool:
    try:
        float(cell.rstrip("%").replace(",", "") or "0")
    except ValueError:
        return cell in ("-", "")
    return True


def number(value: Any, digits: int = 4) -> str:
    """A number with few digits; a dash where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value:.{digits}g}"


def has_browser() -> bool:
    """Whether a page can be shown; on Linux without a display xdg-open only complains."""
    wanted = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform != "linux" or any(os.environ.get(name) for name in wanted)


def require_folder(path: Path | None) -> None:
    """Refuse a file that could not be written, before hours of work."""
    if path is not None and not path.absolute().parent.is_dir():
        raise click.ClickException(f"there is no directory {str(path.parent)!r} to write to")
    if path is not None and path.is_dir():
        raise click.ClickException(f"{str(path)!r} is a directory; name a file to write")


def write_csv(path: Path, frame: pd.DataFrame, index: bool = False) -> None:
    """Write a table as a file that appears whole or not at all.

    Text that a spreadsheet would compute (it starts with = + - or @) gets an apostrophe before it.
    """
    from onlooker.files import write_atomically

    table = (frame.reset_index() if index else frame).rename(columns=as_text)
    for name in table.select_dtypes(exclude="number"):
        table[name] = table[name].map(as_text)
    text = table.to_csv(index=False)
    write_atomically(path, lambda file: file.write(text.encode()))


def as_text(cell: Any) -> Any:
    """A cell that is shown, not computed; numbers stay numbers."""
    if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell if _is_number(cell) else f"'{cell}"
    return cell
