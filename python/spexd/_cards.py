"""Header cards and tables of FITS as Python values."""

from __future__ import annotations

import collections.abc
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spexd import _native
from spexd.errors import InvalidArgumentError

_CARD = 80
_MAX_TEXT = 1000  # characters of a string
_TEXTS = ("COMMENT", "HISTORY")
_NUMPY_OF = {"L": "S1", "B": "u1", "I": ">i2", "J": ">i4", "K": ">i8", "E": ">f4", "D": ">f8", "A": "S"}


def format_cards(keyword: str, value: object) -> list[str]:
    """Returns header cards of 80 characters: one, or several for a long string or the lines of COMMENT and HISTORY.

    >>> format_cards("EXPTIME", 900.5)[0].rstrip()
    'EXPTIME =                900.5'
    >>> [card.rstrip() for card in format_cards("COMMENT", ("first line", "second"))]
    ['COMMENT first line', 'COMMENT second']
    """
    key = keyword.upper()
    if key in _TEXTS:
        lines = (value,) if isinstance(value, str) else value
        for line in lines:  # type: ignore[attr-defined]
            _check_text(key, line, _CARD - 8)
        return [f"{key:<8}{line}".ljust(_CARD) for line in lines]  # type: ignore[attr-defined]
    if not re.fullmatch("[A-Z0-9_-]{1,8}", key):
        raise InvalidArgumentError(f"header keyword {keyword!r} must have 1 to 8 of A-Z, 0-9, - and _")
    if isinstance(value, (bool, np.bool_)):
        text = "T" if value else "F"
    elif isinstance(value, (int, np.integer)):
        text = str(int(value))
    elif isinstance(value, (float, np.floating)):
        if not np.isfinite(value):
            raise InvalidArgumentError(f"header keyword {key} is {value}, must be finite")
        text = repr(float(value)).upper()
    elif isinstance(value, str):
        return _format_string(key, value)
    elif value is None:
        text = ""
    else:
        raise InvalidArgumentError(
            f"header keyword {key} is a {type(value).__name__}, must be bool, int, float, str or None"
        )
    return [f"{key:<8}= {text:>20}".ljust(_CARD)]


def _format_string(key: str, value: str) -> list[str]:
    """Returns the cards of a string. A string that is too long for one card continues in CONTINUE cards."""
    _check_text(key, value, _MAX_TEXT)
    room = _CARD - len("CONTINUE  ''&")
    pieces = [""]
    for character in value:
        quoted = "''" if character == "'" else character
        if len(pieces[-1]) + len(quoted) > room:
            pieces.append("")
        pieces[-1] += quoted
    more = ["&"] * (len(pieces) - 1) + [""]
    starts = [f"{key:<8}= "] + ["CONTINUE  "] * (len(pieces) - 1)
    return [
        f"{start}'{piece + end:<8}'".ljust(_CARD) for start, piece, end in zip(starts, pieces, more, strict=True)
    ]


def _check_text(key: str, text: str, most: int) -> None:
    if len(text) > most or not text.isascii() or not text.isprintable():
        raise InvalidArgumentError(
            f"header keyword {key} is {text!r}, must be printable ASCII of at most {most} characters"
        )


def cards_of(header: object) -> list[str]:
    """Returns the cards of a mapping, of an astropy Header (by its ``tostring``), or of a sequence of cards."""
    if header is None:
        return []
    if hasattr(header, "tostring"):
        text = header.tostring(endcard=False, padding=False)
        return [text[k : k + _CARD] for k in range(0, len(text), _CARD)]
    if isinstance(header, collections.abc.Mapping):
        return [card for key, value in header.items() for card in format_cards(key, value)]
    return [str(card).ljust(_CARD) for card in header]  # type: ignore[attr-defined]


def header_of(cards: Sequence[str]) -> dict[str, object]:
    """Returns keywords and values of cards. The first card of each keyword counts; all lines of COMMENT and of
    HISTORY make a tuple."""
    header: dict[str, object] = {}
    texts: dict[str, list[str]] = {}
    for keyword, value in _native.parse_cards(list(cards)):
        if keyword in _TEXTS:
            texts.setdefault(keyword, []).append(value)
        else:
            header.setdefault(keyword, value)
    header.update((keyword, tuple(lines)) for keyword, lines in texts.items())
    return header


def table_of(raw: _native.RawTable | None) -> np.ndarray | None:
    """Returns a table as a structured array [row], in the byte order of the file. Columns that are neither numbers
    nor strings (bits, complex numbers, arrays of variable length) are left out. Scaled columns keep their stored
    values."""
    if raw is None:
        return None
    header = header_of(raw.cards)
    names, formats, offsets, offset = [], [], [], 0
    for k in range(1, int(str(header.get("TFIELDS", 0))) + 1):
        cell = _cell_of(str(header.get(f"TFORM{k}", "")))
        if cell is None:
            return None
        cell_format, item = cell
        if cell_format is not None:
            names.append(str(header.get(f"TTYPE{k}", f"COLUMN{k}")))
            formats.append(cell_format)
            offsets.append(offset)
        offset += item
    dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": raw.row_bytes})
    return np.frombuffer(raw.data, dtype, count=raw.rows)


def column_of(form: str, rows: int, cells: bytes, cards: Sequence[str]) -> np.ndarray | None:
    """Returns the values of a column's cells, which follow each other as in FITS, in native byte order and scaled by
    TSCAL and TZERO. Logicals are bool; strings have no trailing blanks. None for columns of other types.

    >>> column_of("2A", 2, b"G3 G", [])
    array([b'G3', b' G'], dtype='|S2')
    >>> column_of("1I", 1, bytes([128, 0]), ["TZERO   = 32768".ljust(80)])
    array([0])
    """
    cell = _cell_of(form)
    if cell is None or cell[0] is None:
        return None
    stored = np.ndarray((rows,), np.dtype([("cell", cell[0])]), cells)["cell"]
    return _values_of(form, stored, header_of(cards), "")


def columns_of(raw: _native.RawTable) -> list[tuple[str, np.ndarray]]:
    """Returns the columns of a table, each as :func:`column_of` does. Columns of other types are left out."""
    table, header = table_of(raw), header_of(raw.cards)
    columns = []
    for k in range(1, int(str(header.get("TFIELDS", 0))) + 1):
        name = str(header.get(f"TTYPE{k}", f"COLUMN{k}"))
        if table is not None and name in (table.dtype.names or ()):
            columns.append((name, _values_of(str(header[f"TFORM{k}"]), table[name], header, str(k))))
    return columns


def _values_of(form: str, stored: np.ndarray, header: Mapping[str, object], number: str) -> np.ndarray:
    """Returns the values of cells. ``number``: the column's number in the header's keywords."""
    if stored.dtype.kind == "S":
        return stored == b"T" if "L" in form else np.char.rstrip(stored).astype(stored.dtype)
    values: np.ndarray = stored.astype(stored.dtype.newbyteorder("="))
    scale, zero = (float(str(header.get(name + number, default))) for name, default in (("TSCAL", 1), ("TZERO", 0)))
    if scale == 1 and zero == 0:
        return values
    if scale == 1 and values.dtype.kind in "iu" and zero == int(zero):
        if abs(zero) < 2**62:
            return values.astype(np.int64) + int(zero)
        return values.astype(np.uint64) + np.uint64(int(zero) % 2**64)
    return values.astype(np.float64) * scale + zero


def _cell_of(form: str) -> tuple[Any, int] | None:
    """Returns numpy's format of a cell with this TFORM, or None if it is neither number nor string, and the cell's
    bytes. Returns None if ``form`` is no TFORM."""
    match = re.match(r"\s*(\d*)([LXBIJKAEDCMPQ])", form)
    if match is None:
        return None
    repeat, kind = int(match[1] or 1), match[2]
    if kind == "A":
        return (f"S{repeat}" if repeat > 0 else None), repeat
    if kind == "X":
        return None, (repeat + 7) // 8
    if kind not in _NUMPY_OF:
        return None, repeat * {"C": 8, "M": 16, "P": 8, "Q": 16}[kind]
    kind_format = _NUMPY_OF[kind]
    item = repeat * np.dtype(kind_format).itemsize
    if item == 0:
        return None, 0
    return (kind_format if repeat == 1 else (kind_format, (repeat,))), item
