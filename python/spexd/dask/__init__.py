"""Many frames on a Dask cluster, by engines in its workers or by spexd servers. Needs distributed.

::

    night = extract_night(dask_client, table, wavelength=(5760, 7620, 0.8))
    print(night)
    for result in night.failed:
        print(result.output, result.error)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import distributed

from spexd._job import Progress, progress_of
from spexd.dask._manifest import Manifest, default_path
from spexd.dask._rows import Row, read_table
from spexd.dask._worker import Settled, Target, settle
from spexd.errors import SpexdError, StatusCode

__all__ = ["Night", "Result", "extract_night"]

# What may go well at another time, or on another worker.
_PASSING = {
    StatusCode.ABORTED,
    StatusCode.DATA_LOSS,
    StatusCode.RESOURCE_EXHAUSTED,
    StatusCode.UNAVAILABLE,
}


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of one row of the table."""

    output: str
    state: str  #: "written", "kept" (an earlier call wrote it) or "failed"
    sha256: str = ""  #: of the file
    seconds: float = 0.0  #: that the job took
    engine: str = ""
    failed_bundles: Sequence[str] = ()  #: their bins are NODATA
    warnings: Sequence[str] = ()
    error: str = ""


@dataclasses.dataclass(frozen=True)
class Night:
    """Results in the order of the table."""

    results: Sequence[Result]

    @property
    def failed(self) -> list[Result]:
        """Rows without a file."""
        return [result for result in self.results if result.state == "failed"]

    def __str__(self) -> str:
        states = [result.state for result in self.results]
        counts = ", ".join(f"{states.count(state)} {state}" for state in ("written", "kept", "failed"))
        return f"{len(states)} frames: {counts}"


def extract_night(
    client: distributed.Client,
    table: Iterable[Any],
    *,
    manifest: str | None = None,
    server: str | None = None,
    upload: bool = False,
    device: str = "auto",
    threads: int = 0,
    overwrite: bool = False,
    attempts: int = 3,
    progress: Progress = None,
    **options: Any,
) -> Night:
    """Extracts every frame of a table. The same call again goes on where an earlier one ended, however it ended.

    Each file appears whole and once: a worker writes it under another name, and this process, alone, notes its checksum
    in the manifest and then gives it its name. What a lost worker was doing is done by another.

    Args:
        client: of a Dask cluster whose workers have spexd installed and see the same files as this process.
        table: mappings, or an astropy Table, with the columns "image", "psf" and "output" (paths; output may end in
            ".gz"); any other column is an option of :func:`spexd.extract` for that row, such as "wavelength".
        manifest: file of the results so far, one JSON object a line; default: spexd-night.jsonl in the folder that all
            outputs share. A row is done if the manifest has its inputs (by size and time of change) and options, and
            the output its checksum.
        server: address of servers (see :class:`spexd.Client`); default: an engine in each worker.
        upload: send the files' bytes to the server, not their paths.
        device: of the workers' engines: "auto", "cpu" or "cuda".
        threads: of each worker's engine; 0: as many as the worker has.
        overwrite: replace outputs that no earlier call wrote; default: such a row fails.
        attempts: how often a job is tried whose workers die (each time as many as Dask allows,
            ``distributed.scheduler.allowed-failures``), or whose server is full or gone.
        progress: True for a bar (needs tqdm), or a function of (rows done, rows in all). What it raises is raised here.
        options: of :func:`spexd.extract`, for rows that do not have the column.

    Raises:
        spexd.InvalidArgumentError: the table, or an option. A row that fails does not raise: see :class:`Night`.
        spexd.FailedPreconditionError: another call uses the manifest.
    """
    rows = read_table(table, options)
    target = Target(server, upload, device, threads, overwrite)
    path = default_path(rows) if manifest is None else manifest
    with Manifest(path) as records, progress_of(progress, "frame") as report:
        records.tidy(rows)
        run = _Run(client, rows, target, records, attempts)
        try:
            for done in run:
                if report is not None:
                    report(done, len(rows))
        finally:
            run.cancel()
            records.tidy(rows)
    return Night([run.results[row.output] for row in rows])


class _Run:
    """The jobs of a night on their way. Iterating carries them out and counts the rows that are done."""

    def __init__(
        self, client: distributed.Client, rows: Sequence[Row], target: Target, records: Manifest, attempts: int
    ) -> None:
        self._client, self._target, self._records = client, target, records
        self._left = {row.output: attempts for row in rows}
        self._rows = {self._submit(row): row for row in rows}
        self.results: dict[str, Result] = {}

    def _submit(self, row: Row) -> distributed.Future:
        self._left[row.output] -= 1
        return self._client.submit(settle, row, self._records.get(row.output), self._target, pure=False)

    def __iter__(self) -> Iterator[int]:
        completed = distributed.as_completed(list(self._rows))
        for future in completed:
            row = self._rows.pop(future)
            try:
                self.results[row.output] = self._finish(future.result())
            except Exception as error:
                if self._left[row.output] > 0 and _may_pass(error):
                    again = self._submit(row)
                    self._rows[again] = row
                    completed.add(again)
                    continue
                self.results[row.output] = Result(row.output, "failed", error=_text(error))
            yield len(self.results)

    def _finish(self, settled: Settled) -> Result:
        if settled.state == "new":
            self._records.add(settled.record)
        if settled.state != "kept":
            self._records.publish(settled.record)
        record = settled.record
        return Result(
            output=record["output"],
            state="kept" if settled.state == "kept" else "written",
            sha256=record["sha256"],
            seconds=record["seconds"],
            engine=record["engine"],
            failed_bundles=record["failed_bundles"],
            warnings=record["warnings"],
        )

    def cancel(self) -> None:
        """Stops what is under way."""
        self._client.cancel(list(self._rows))


def _may_pass(error: Exception) -> bool:
    if isinstance(error, SpexdError):
        return error.code in _PASSING
    return isinstance(error, (distributed.KilledWorker, distributed.CancelledError))


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, SpexdError) else f"{type(error).__name__}: {error}"
