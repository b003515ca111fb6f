"""The table of a night."""

from __future__ import annotations

import collections.abc
import dataclasses
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from spexd._job import OPTIONS
from spexd.errors import InvalidArgumentError

_PATHS = ("image", "psf", "output")
FILES = ("fibermap", "trace_reference")  # options that are paths
_OPTIONS = (
    *(option.name for option in OPTIONS if option.name != "model" and not option.for_server_only),
    *FILES,
    "timeout",
)


@dataclasses.dataclass(frozen=True)
class Row:
    """One frame: absolute paths, and options of spexd.extract as JSON has them."""

    image: str
    psf: str
    output: str
    options: Mapping[str, Any]


def read_table(table: Iterable[Any], defaults: Mapping[str, Any]) -> list[Row]:
    """The rows of mappings or of an astropy Table. InvalidArgumentError names row and column.

    >>> read_table([{"image": "/a", "psf": "/p", "output": "/o", "psferr": 0.02}], {"psferr": 0.01, "bundle_size": 25})
    [Row(image='/a', psf='/p', output='/o', options={'psferr': 0.02, 'bundle_size': 25})]
    """
    columns = getattr(table, "colnames", None)
    mappings = [dict(zip(columns, row, strict=True)) for row in table] if columns is not None else list(table)
    rows = [_row(f"row {index}", mapping, defaults) for index, mapping in enumerate(mappings)]
    first: dict[str, int] = {}
    for index, row in enumerate(rows):
        if first.setdefault(row.output, index) != index:
            raise InvalidArgumentError(f"row {index}: output {row.output} is that of row {first[row.output]} too")
    return rows


def _row(name: str, mapping: Any, defaults: Mapping[str, Any]) -> Row:
    if not isinstance(mapping, collections.abc.Mapping):
        raise InvalidArgumentError(f"{name} is a {type(mapping).__name__}, must be a mapping")
    missing = [column for column in _PATHS if column not in mapping]
    if missing:
        raise InvalidArgumentError(f"{name} has no column {missing[0]!r}")
    options = {**defaults, **{column: value for column, value in mapping.items() if column not in _PATHS}}
    for column in options:
        if column not in _OPTIONS:
            raise InvalidArgumentError(f"{name}: {column!r} is neither one of {_PATHS} nor of {_OPTIONS}")
    plain = {column: _plain(name, column, value) for column, value in options.items()}
    paths = {column: _path(name, column, mapping[column]) for column in _PATHS}
    return Row(**paths, options=plain)


def _path(name: str, column: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidArgumentError(f"{name}: {column} is a {type(value).__name__}, must be a path")
    return os.path.abspath(os.fspath(str(value)))


def _plain(name: str, column: str, value: Any) -> Any:
    """A value as JSON reads it back, as manifests are compared."""
    if column in FILES and value is not None:
        return _path(name, column, value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (tuple, list, np.ndarray)):
        return [_plain(name, column, item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise InvalidArgumentError(f"{name}: {column} is a {type(value).__name__}, must be a number, text or a sequence")
