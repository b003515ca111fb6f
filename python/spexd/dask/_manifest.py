"""What a night has written so far."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Sequence
from typing import Any

from spexd.dask._rows import Row
from spexd.errors import FailedPreconditionError, InvalidArgumentError

_BEGIN = b'{"output": "'  # of every line
# A file of partial_of, or the one that Frame.to_fits writes for it first.
_PARTIAL = re.compile(r"\.[0-9a-f]{32}\.partial\.(.+)|\.\.[0-9a-f]{32}\.partial\.(.+)\.spexd-[0-9a-f]+", re.DOTALL)


def partial_of(output: str, unique: str) -> str:
    """Where a file is written before it gets its name: beside it, with its ending, hidden."""
    folder, name = os.path.split(output)
    return os.path.join(folder, f".{unique}.partial.{name}")


def default_path(rows: Sequence[Row]) -> str:
    """The manifest in the folder that all outputs share."""
    if not rows:
        raise InvalidArgumentError("the table has no rows, and no manifest is named")
    return os.path.join(os.path.commonpath([os.path.dirname(row.output) for row in rows]), "spexd-night.jsonl")


class Manifest:
    """A file of records, one JSON object a line; of an output the last counts. One process uses it at a time."""

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)

    def __enter__(self) -> Manifest:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        self._file = open(self._path, "a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise FailedPreconditionError(f"manifest {self._path} is in use by another call") from error
        self._records = self._read()
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def _read(self) -> dict[str, dict[str, Any]]:
        self._file.seek(0)
        content = self._file.read()
        lines = content.split(b"\n")
        torn = lines.pop()  # a writer was killed in the middle of a line
        records: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                records[record["output"]] = record
            except (ValueError, TypeError, KeyError) as error:
                raise self._no_record(number) from error
        if not torn.startswith(_BEGIN[: len(torn)]):
            raise self._no_record(len(lines) + 1)
        self._file.truncate(len(content) - len(torn))
        return records

    def _no_record(self, number: int) -> InvalidArgumentError:
        return InvalidArgumentError(f"manifest {self._path}, line {number}: not a record of a night")

    def get(self, output: str) -> dict[str, Any] | None:
        """The record of an output."""
        return self._records.get(output)

    def add(self, record: dict[str, Any]) -> None:
        """Adds a record, which is on disk when this returns."""
        self._file.write(json.dumps(record).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._records[record["output"]] = record

    def publish(self, record: dict[str, Any]) -> None:
        """Gives the file of a record its name."""
        os.replace(record["partial"], record["output"])

    def tidy(self, rows: Sequence[Row]) -> None:
        """Removes what workers that were lost left beside the outputs, but not what a record waits to publish."""
        waiting = {record["partial"] for record in self._records.values()}
        outputs = {row.output for row in rows}
        for folder in {os.path.dirname(output) for output in outputs}:
            for name in os.listdir(folder) if os.path.isdir(folder) else []:
                match = _PARTIAL.fullmatch(name)
                path = os.path.join(folder, name)
                if match and os.path.join(folder, match[1] or match[2]) in outputs and path not in waiting:
                    os.unlink(path)
