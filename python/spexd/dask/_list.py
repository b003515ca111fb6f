"""The list that ``spex night`` reads, made from a table."""

from __future__ import annotations

import collections.abc
import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spexd._job import OPTIONS, Spec, check_spec
from spexd.errors import InvalidArgumentError, NotFoundError, SpexdError

_REQUIRED = ("image", "psf", "output")
_PATHS = (*_REQUIRED, "model", "fibermap", "trace_reference")
_OPTIONS = tuple(option.name for option in OPTIONS if option.name != "model" and not option.for_server_only)
_COLUMNS = (*_PATHS, "expid", *_OPTIONS)


def list_of(table: Iterable[Any], defaults: Mapping[str, Any]) -> tuple[list[str], str]:
    """Returns the outputs of a table's rows, and the text of its list. InvalidArgumentError names row and column.

    >>> outputs, text = list_of([{"image": "/a", "psf": "/p", "output": "/o"}], {"wavelength": (5760, 7620, 0.8)})
    >>> print(text, end="")
    image psf output wavelength
    /a /p /o 5760,7620,0.8
    """
    names = getattr(table, "colnames", None)
    mappings = list(table) if names is None else [dict(zip(names, row, strict=True)) for row in table]
    if not mappings:
        raise InvalidArgumentError("the table has no rows")
    rows = [_row(f"row {index}", mapping, defaults) for index, mapping in enumerate(mappings)]
    outputs = [row["output"] for row in rows]
    first: dict[str, int] = {}
    for index, output in enumerate(outputs):
        if first.setdefault(output, index) != index:
            raise InvalidArgumentError(f"row {index}: output {output} is that of row {first[output]} too")
    columns = [column for column in _COLUMNS if any(column in row for row in rows)]
    lines = [columns, *([row.get(column, "-") for column in columns] for row in rows)]
    return outputs, "".join(" ".join(line) + "\n" for line in lines)


def _row(name: str, mapping: Any, defaults: Mapping[str, Any]) -> dict[str, str]:
    """Returns the words of a row by column, without columns that are not given."""
    if not isinstance(mapping, collections.abc.Mapping):
        raise InvalidArgumentError(f"{name} is a {type(mapping).__name__}, must be a mapping")
    values = {column: value for column, value in {**defaults, **mapping}.items() if not _is_none(value)}
    for column in _REQUIRED:
        if column not in values:
            raise InvalidArgumentError(f"{name} has no column {column!r}")
    for column in values:
        if column not in _COLUMNS:
            raise InvalidArgumentError(f"{name}: no column is called {column!r}; there are {', '.join(_COLUMNS)}")
    try:
        options = {column: value for column, value in values.items() if column in _OPTIONS}
        check_spec(Spec(**options), values.get("trace_reference"))
    except SpexdError as error:
        raise InvalidArgumentError(f"{name}: {error}") from error
    return {column: _word(name, column, value) for column, value in values.items()}


def _is_none(value: Any) -> bool:
    return value is None or value is np.ma.masked


def _word(name: str, column: str, value: Any) -> str:
    if column in _PATHS:
        if not isinstance(value, (str, os.PathLike)):
            raise InvalidArgumentError(f"{name}: {column} is a {type(value).__name__}, must be a path")
        word = os.path.abspath(os.fspath(str(value)))
    else:
        word = _text(value)
    if re.search(r"[ \t\r\n#]|^-?$", word):
        raise InvalidArgumentError(f"{name}: {column} is {word!r}; a list can have no blanks and no '#' in names")
    return word


def _text(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list, np.ndarray)):
        return ",".join(_text(item) for item in value)
    return str(value)


def write_list(text: str, folder: str) -> str:
    """Writes a list under a name derived from its content, and returns its path. Other calls may read it meanwhile."""
    path = os.path.join(folder, f"spex-night-{hashlib.sha256(text.encode()).hexdigest()[:8]}.txt")
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, prefix=".spex-night-", delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o644)  # workers may run as other users
    os.replace(file.name, path)
    return path


def outputs_in(path: str) -> list[str]:
    """Returns the outputs that a list names, as absolute paths. ``spex night`` reports other errors of the list."""
    try:
        with open(path, encoding="utf-8") as file:
            lines: Sequence[list[str]] = [words for line in file if (words := line.split("#")[0].split())]
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from error
    if not lines or "output" not in lines[0]:
        raise InvalidArgumentError(f"{path}: the first line must name the columns image, psf and output")
    column = lines[0].index("output")
    return [os.path.abspath(words[column]) for words in lines[1:] if len(words) > column]
