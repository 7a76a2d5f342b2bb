"""How a CSV file is written: its encoding, separator and decimal sign, where nothing is said."""

from __future__ import annotations

import lzma
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from onlooker.reading.csv import OPENERS

_HEAD = 1 << 16  # bytes that are looked at
_LINES = 20
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
_NAMES = {"cp1252": "Windows-1252", "utf-16": "UTF-16"}
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE)
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+(e[+-]?\d+)?", re.IGNORECASE)


class Sniffed(NamedTuple):
    """Options of `pandas.read_csv` that a file asks for, and what to say about them."""

    options: dict[str, Any]
    notes: list[str]


def sniff(path: Path, given: dict[str, Any]) -> Sniffed:
    """What is unusual about a file; what is `given` is not looked for."""
    options: dict[str, Any] = {}
    notes: list[str] = []
    encoding = given.get("encoding")
    try:
        head = _head(path)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile):
        return Sniffed({}, [])  # reading says what is wrong with it
    binary = b"\0" in head and not head.startswith((_MARKS[0][0], _MARKS[1][0]))
    if encoding is None and not binary:
        encoding = _encoding(head)
        if encoding not in ("utf-8", "utf-8-sig"):
            options["encoding"] = encoding
            notes.append(f"The text is not UTF-8: read as {_NAMES.get(encoding, encoding)}.")
    try:
        text = head.decode(encoding or "utf-8", errors="replace")
    except LookupError:
        return Sniffed(options, notes)
    lines = text.splitlines()
    if len(head) == _HEAD and len(lines) > 1:
        del lines[-1]  # of which there is only a part
    lines = [line for line in lines[:_LINES] if line.strip()]
    separator = given.get("sep", given.get("delimiter"))
    if separator is None and lines:
        separator = _separator(lines)
        if separator != ",":
            options["sep"] = separator
            notes.append(f"Columns are separated by {_SEPARATORS[separator]}.")
    if separator in _SEPARATORS and "decimal" not in given and _has_decimal_comma(lines, separator):
        options["decimal"] = ","
        notes.append("Numbers have a decimal comma.")
    return Sniffed(options, notes)


def _head(path: Path) -> bytes:
    with OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
        return bytes(file.read(_HEAD))


def _encoding(head: bytes) -> str:
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        cut = len(head) == _HEAD and error.start > len(head) - 4  # a character, by the end
        return "utf-8" if cut else "cp1252"
    return "utf-8"


def _separator(lines: list[str]) -> str:
    """The comma, unless the header has none of it and every line has one other sign as often."""
    header = lines[0]
    for sign in _SEPARATORS:
        n = header.count(sign)
        if n > header.count(",") and all(line.count(sign) == n for line in lines):
            return sign
    return ","


def _has_decimal_comma(lines: list[str], separator: str) -> bool:
    fields = [field.strip().strip('"') for line in lines[1:] for field in line.split(separator)]
    with_comma = any(_COMMA_NUMBER.fullmatch(field) for field in fields)
    return with_comma and not any(_POINT_NUMBER.fullmatch(field) for field in fields)
