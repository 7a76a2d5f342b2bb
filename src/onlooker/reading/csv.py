"""CSV files, read piece by piece."""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from onlooker.checks import Setting, SettingError
from onlooker.files import Unpacked, open_regular
from onlooker.reading.cleaning import clean
from onlooker.reading.tables import TableReader
from onlooker.reading.tracks import Cleaning, Table, Tracks

if TYPE_CHECKING:
    import pandas as pd

_CHUNK = 1 << 16


def _open_zip(path: str, mode: Literal["rb"]) -> IO[bytes]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if len(names) != 1:
            raise zipfile.BadZipFile(f"it holds {len(names)} files, not one")
        try:
            return archive.open(names[0])
        except RuntimeError as error:  # it needs a password, or another way to unpack
            raise zipfile.BadZipFile(str(error)) from error


OPENERS: dict[str, Callable[[Any, Literal["rb"]], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zip": _open_zip,
}
_PACKED = {*OPENERS, ".zst", ".tar"}
_CLEAR = {"sep", "delimiter", "decimal", "dtype", "encoding", "na_values", "nrows"}
"""Options that leave the lines where they are."""
_TOO_MANY = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
_SHIFTS_LINES = {"skiprows", "comment", "header", "names", "skip_blank_lines", "encoding"}


def read_csv(
    path: str | os.PathLike[str],
    states: str | Sequence[str],
    trajectory: str | None,
    time: str | None,
    options: dict[str, Any],
) -> Tracks:
    """Read and clean; `options` are those of `Cleaning` and of `pandas.read_csv`."""
    cleaning, others = Cleaning.among(options)
    return clean(load_csv(path, states, trajectory, time, **others), cleaning)


def load_csv(
    path: str | os.PathLike[str],
    states: str | Sequence[str],
    trajectory: str | None,
    time: str | None,
    **read_csv: Any,
) -> Table:
    """The columns of a CSV file as arrays, never more than a piece of it as text."""
    import pandas as pd

    name = os.fspath(path)
    for option in ("chunksize", "iterator"):
        if read_csv.get(option):
            raise ValueError(f"{option} reads a CSV file in pieces; leave it out")
    refuse_other_kinds(name, read_csv)
    reader = TableReader(states, trajectory, time, where=_Lines(name, read_csv))
    try:
        for piece in _pieces(path, trajectory, read_csv):
            if not reader.n_rows:
                _check_header(name, piece, reader.wanted, read_csv)
            reader.add(piece)
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{name} is empty") from error
    except UnicodeDecodeError as error:
        encoding = read_csv.get("encoding", "UTF-8")
        raise SettingError(
            f"{name} is not a CSV file in {encoding}: byte {error.object[error.start]:#04x} is no "
            "character there; if it is text in another encoding, give ",
            Setting("encoding"),
        ) from error
    except LookupError as error:
        raise SettingError(
            f"{error}; ", Setting("encoding"), " is a name such as utf-8, latin-1 or utf-16"
        ) from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise ValueError(f"{name} is not a CSV file: {_in_plain_words(error)}") from error
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise ValueError(f"{name} cannot be unpacked: {error}") from error
    return reader.table()


def _in_plain_words(error: Exception) -> str:
    """What pandas says of lines with too many fields, as a clause; the rest as it is."""
    text = str(error).strip()
    if found := _TOO_MANY.search(text):
        expected, line, saw = map(int, found.groups())
        return f"line {line} has {saw} fields, those before it have {expected}"
    return text


def _pieces(path: Any, trajectory: Any, read_csv: dict[str, Any]) -> Iterator[pd.DataFrame]:
    import pandas as pd

    # Whole numbers with holes stay whole numbers as "nullable" types.
    options: dict[str, Any] = {"dtype_backend": "numpy_nullable"} | read_csv
    separator = read_csv.get("sep", read_csv.get("delimiter", ","))
    if read_csv.get("engine", "c") == "c" and isinstance(separator, str) and len(separator) == 1:
        options.setdefault("low_memory", False)  # one type per column and piece
    dtype = read_csv.get("dtype", {})
    if trajectory is not None and isinstance(dtype, dict):
        # As text, names are what the file says, whichever numbers stand in the same piece.
        options["dtype"] = {trajectory: "str"} | dtype
    suffix = Path(path).suffix if isinstance(path, str | os.PathLike) else ""
    with contextlib.ExitStack() as stack:
        if suffix in OPENERS and "compression" not in options and os.path.exists(path):
            packed = OPENERS[suffix](path, "rb")
            unpacked = io.BufferedReader(Unpacked(packed, path), 1 << 20)
            path = stack.enter_context(unpacked)
        yield from stack.enter_context(pd.read_csv(path, chunksize=_CHUNK, **options))


def _check_header(
    name: str, frame: pd.DataFrame, wanted: list[Any], read_csv: dict[str, Any]
) -> None:
    import pandas as pd

    for column in wanted:
        if column not in frame.columns:
            found = ", ".join(map(str, frame.columns))
            raise ValueError(f"{name} has no column {column!r}; it has {found}")
        # pandas calls the second of two equal columns "x.1"
        if f"{column}.1" in frame.columns and _header(name, read_csv).count(str(column)) > 1:
            raise ValueError(f"{name} has several columns {column!r}; rename all but one")
    if read_csv.get("index_col") is None and not isinstance(frame.index, pd.RangeIndex):
        raise ValueError(
            f"{name} has rows with more fields than its header; name all columns, or give "
            "index_col=False if the rows end in a separator"
        )


def _header(name: str, read_csv: dict[str, Any]) -> list[str]:
    """The header as it is written; empty where options make that unclear."""
    import pandas as pd

    if _SHIFTS_LINES & set(read_csv):
        return []
    row = pd.read_csv(name, **(read_csv | {"header": None, "nrows": 1, "dtype": str}))
    return [str(field) for field in row.iloc[0]]


def refuse_other_kinds(name: str, read_csv: dict[str, Any]) -> None:
    """Say what a file is rather than which column it does not have."""
    if Path(name).suffix in _PACKED or "compression" in read_csv or not os.path.exists(name):
        return
    with open_regular(name) as file:
        head = file.read(4096)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        raise ValueError(f"{name} is not a CSV file: it starts with '<', as HTML and XML do")
    if b"\0" in head and "encoding" not in read_csv:
        raise SettingError(
            f"{name} is not a CSV file: byte {head.index(0)} is zero, as in binary files; if it is "
            "text in that encoding, give ",
            Setting("encoding", ("utf-16",)),
        )


class _Lines:
    """Says where a row is, with its line in the file where that is certain."""

    def __init__(self, name: str, read_csv: dict[str, Any]) -> None:
        self.name, self.options = name, read_csv

    def __call__(self, row: int) -> str:
        line = self._line(row)
        place = "counted from 0 below the header" if line is None else f"line {line} of the file"
        return f"row {row} ({place})"

    def _line(self, row: int) -> int | None:
        """Lines differ from rows by the header, blank lines and line breaks in quotes."""
        suffix = Path(self.name).suffix
        unclear = set(self.options) - _CLEAR
        if unclear or (suffix in _PACKED and suffix not in OPENERS):
            return None
        separator = self.options.get("sep", self.options.get("delimiter", ","))
        opener = OPENERS.get(suffix, open)
        try:
            encoding = self.options.get("encoding", "utf-8")
            binary = opener(self.name, "rb")
            with io.TextIOWrapper(binary, encoding=encoding, newline="") as file:
                lines = csv.reader(file, delimiter=separator)
                count = -2  # the header comes first
                for fields in lines:
                    count += bool(fields)
                    if count == row:
                        return lines.line_num
        except (OSError, ValueError, TypeError, csv.Error):
            pass
        return None
