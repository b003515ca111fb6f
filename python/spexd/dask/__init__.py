"""Extracts many frames on a Dask cluster, by ``spex night`` in its workers. Needs distributed.

::

    night = extract_night(dask_client, table, wavelength=(5760, 7620, 0.8), products=("sky", "sframe"))
    print(night)
    for result in night.failed:
        print(result.output, result.error)
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import distributed

from spexd._job import Path, Progress, Report, progress_of
from spexd.dask._list import list_of, outputs_in, write_list
from spexd.dask._record import Record
from spexd.dask._worker import End, run_night
from spexd.errors import InternalError, InvalidArgumentError

__all__ = ["Night", "Result", "extract_night"]

_LOOK_SECONDS = 0.1  # between checks of workers and records
_INVALID, _LOST, _INTERRUPTED = 2, 3, 130  # exit codes of spex


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a row of the table, or of an exposure."""

    output: str
    state: str  #: "written", "kept" (an earlier run wrote it) or "failed"
    error: str = ""
    record: Mapping[str, Any] = dataclasses.field(default_factory=dict)  #: the line of spex-night.jsonl

    @property
    def sha256(self) -> str:
        """SHA-256 of the file."""
        return str(self.record.get("files", {}).get("frame", ""))

    @property
    def seconds(self) -> float:
        """Seconds that the job took."""
        return float(self.record.get("seconds", 0.0))

    @property
    def engine(self) -> str:
        """The engine that extracted the frame."""
        return str(self.record.get("engine", ""))

    @property
    def failed_bundles(self) -> Sequence[str]:
        """Bundles that failed; their bins are NODATA."""
        return list(self.record.get("failed_bundles", []))

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings of the extraction."""
        return list(self.record.get("warnings", []))

    @property
    def products(self) -> Mapping[str, Any]:
        """The numbers of each product, or its "error", by the product's name."""
        return dict(self.record.get("products", {}))


@dataclasses.dataclass(frozen=True)
class Night:
    """Results in the order of the table, and results of exposures if products of exposures were asked for."""

    results: Sequence[Result]
    exposures: Sequence[Result] = ()

    @property
    def failed(self) -> list[Result]:
        """Rows and exposures without files."""
        return [result for result in (*self.results, *self.exposures) if result.state == "failed"]

    def __str__(self) -> str:
        states = [result.state for result in self.results]
        counts = ", ".join(f"{states.count(state)} {state}" for state in ("written", "kept", "failed"))
        return f"{len(states)} frames: {counts}"


def extract_night(
    client: distributed.Client,
    table: Iterable[Any] | Path,
    *,
    products: Sequence[str] = (),
    fiberflats: Sequence[Path] = (),
    templates: Path | None = None,
    server: str | None = None,
    upload: bool = False,
    device: str = "auto",
    threads: int = 0,
    flags: Sequence[str] = (),
    list_folder: Path | None = None,
    attempts: int = 3,
    progress: Progress = None,
    **options: Any,
) -> Night:
    """Extracts every frame of a table. Repeating the call continues where an earlier one ended, however it ended.

    Each worker, including those that join later, runs ``spex night`` on the same list. These runs share the frames by
    locks, record what they finish in spex-night.jsonl beside the outputs, and keep what is recorded, as docs/nights.md
    describes. ``spex night`` without Dask can continue the same list. If a worker is killed, others extract its frames.
    Ctrl-C, or an exception from ``progress``, stops the runs.

    Args:
        client: client of a Dask cluster whose workers have spexd installed and see the same files as this process, on a
            file system with locks.
        table: mappings, or an astropy Table, with the columns of the list: "image", "psf" and "output" (paths),
            "model", "expid", "fibermap", "trace_reference", and options of :func:`spexd.extract` for the row, such as
            "wavelength". None or a masked value: not given. Or the path of a list.
        products: products of the frames and exposures: "sky", "sframe", "velocities", "redshifts",
            "exposure-velocities", "exposure-redshifts".
        fiberflats: paths: one file for all frames, or one for each CAMERA.
        templates: stellar templates, for velocities.
        server: addresses of servers, separated by commas; default: an engine in each worker.
        upload: whether to send the files' bytes to the server instead of their paths.
        device: device of the workers' engines: "auto", "cpu" or "cuda".
        threads: threads of each worker's run; 0: as many as the worker has.
        flags: more flags of ``spex night``, such as ``("--timeout", "600")``.
        list_folder: folder for the list of a table (spex-night-DIGEST.txt); default: the folder that all outputs share.
        attempts: how often in a row workers or servers may be lost before a frame is finished; after that the missing
            frames fail.
        progress: True for a bar (needs tqdm), or a function of (rows done, rows in all). Rows that are kept count at
            the end. Exceptions of the function are raised here.
        options: options of rows that do not have the column.

    Raises:
        spexd.InvalidArgumentError: the table, the list, a flag or an option is wrong. A row that fails does not raise:
            see :class:`Night`.
        spexd.FailedPreconditionError: a worker has no program spex.
    """
    if isinstance(table, (str, os.PathLike)):
        if options or list_folder is not None:
            raise InvalidArgumentError(f"{[*options, 'list_folder'][0]}: a list has its own options; see flags")
        path = os.path.abspath(table)
        outputs = outputs_in(path)
    else:
        outputs, text = list_of(table, options)
        shared = os.path.commonpath([os.path.dirname(output) for output in outputs])
        path = write_list(text, shared if list_folder is None else os.path.abspath(list_folder))
    arguments = [path, "--server", server or ""]
    arguments += ["--upload"] if upload else []
    arguments += ["--device", device] if server is None else []
    arguments += ["--products", ",".join(products)] if products else []
    for fiberflat in fiberflats:
        arguments += ["--fiberflat", os.path.abspath(fiberflat)]
    arguments += [] if templates is None else ["--velocity", os.path.abspath(templates)]
    with progress_of(progress, "frame") as report:
        return _Run(client, [*arguments, *flags], threads, outputs, attempts).until_done(report)


class _Run:
    """The runs of the workers. Each run is pinned to its worker, so that this process sees which workers are lost."""

    def __init__(
        self, client: distributed.Client, arguments: Sequence[str], threads: int, outputs: Sequence[str], attempts: int
    ) -> None:
        self._client, self._attempts = client, attempts
        self._call = (arguments, threads, os.getcwd())
        self._outputs, self._record = outputs, Record(outputs)
        self._runs: dict[str, tuple[distributed.Future, float]] = {}  # by worker: its run, and when it began
        self._errors: dict[str, str] = {}  # of frames and exposures that runs have reached; "": files exist
        self._exposures: dict[str, None] = {}  # in order
        self._ends = False  # whether no more runs begin
        self._complete = False  # whether all frames are done, so that the remaining runs need not be waited for
        self._losses, self._last_loss, self._why = 0, 0.0, ""
        self._recorded_then = -1

    def until_done(self, report: Report | None) -> Night:
        """Returns the night. Stops the runs if ``report`` raises."""
        total, reported = len(self._outputs), -1
        try:
            while not self._complete and (self._runs or not self._ends):
                self._look_after_workers()
                if report is not None and reported < (recorded := self._recorded()):
                    reported = recorded
                    report(recorded, total)
                self._wait()
        finally:
            self._client.cancel([future for future, _ in self._runs.values()])
        if report is not None and reported < total:
            report(total, total)
        self._record.read()
        return Night(list(map(self._result, self._outputs)), list(map(self._result, self._exposures)))

    def _recorded(self) -> int:
        self._record.read()
        return sum(map(self._record.is_new, self._outputs))

    def _wait(self) -> None:
        if not self._runs:
            time.sleep(_LOOK_SECONDS)  # until there is a worker
            return
        with contextlib.suppress(distributed.TimeoutError):
            distributed.wait([future for future, _ in self._runs.values()], _LOOK_SECONDS, "FIRST_COMPLETED")

    def _look_after_workers(self) -> None:
        workers = self._client.nthreads()
        for worker, (future, begun) in list(self._runs.items()):
            if future.done():
                del self._runs[worker]
                self._take(future, begun)
            elif worker not in workers:
                del self._runs[worker]
                self._client.cancel([future])
                self._lose(begun, f"worker {worker} was lost")
        for worker in workers:
            if not self._ends and worker not in self._runs:
                key = f"spexd-night-{uuid.uuid4().hex}"
                future = self._client.submit(run_night, key, *self._call, key=key, workers=[worker], pure=False)
                self._runs[worker] = (future, time.monotonic())

    def _take(self, future: distributed.Future, begun: float) -> None:
        try:
            end: End = future.result()
        except (distributed.KilledWorker, distributed.CancelledError, OSError) as error:
            return self._lose(begun, f"{type(error).__name__}: {error}")
        if end.frames is None and end.code not in (_LOST, _INTERRUPTED) and end.code >= 0:
            raise (InvalidArgumentError if end.code == _INVALID else InternalError)(end.message)
        self._exposures.update(dict.fromkeys(end.exposures))
        for output, failure in {**(end.frames or {}), **end.exposures}.items():
            if self._errors.get(output) != "":
                self._errors[output] = failure
        if end.frames is None or end.code == _LOST:
            return self._lose(begun, end.message)
        # The run has reached all frames, and has waited for those of other runs.
        self._ends = True
        self._complete = not any(self._errors.values())

    def _lose(self, begun: float, why: str) -> None:
        """Notes a loss, after which this worker or another one begins again. Simultaneous losses count as one."""
        self._why = why
        recorded = self._recorded()
        if recorded > self._recorded_then:
            self._recorded_then, self._losses = recorded, 0
        elif begun < self._last_loss:
            return
        self._losses += 1
        self._last_loss = time.monotonic()
        if self._losses >= self._attempts:
            self._ends = True

    def _result(self, output: str) -> Result:
        error = self._errors.get(output, self._why)
        if self._record.is_new(output):
            return Result(output, "written", record=self._record.of(output))
        if output in self._errors and not error:
            return Result(output, "kept", record=self._record.of(output))
        return Result(output, "failed", error or "not reached")
