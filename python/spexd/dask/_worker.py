"""What a worker does with a row."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import threading
import uuid
from typing import Any

import distributed

from spexd.dask._manifest import partial_of
from spexd.dask._rows import FILES, Row
from spexd.engine import Engine, Psf
from spexd.errors import AlreadyExistsError, NotFoundError
from spexd.frame import Frame

_making = threading.Lock()
_MAX_PSFS = 4  # that a worker keeps


@dataclasses.dataclass(frozen=True)
class Target:
    """Where jobs run, and what they may do."""

    server: str | None
    upload: bool
    device: str
    threads: int
    overwrite: bool


@dataclasses.dataclass(frozen=True)
class Settled:
    """A row whose file is there, under its own name ("kept") or under that of its record ("new", "waiting")."""

    state: str
    record: dict[str, Any]


def settle(row: Row, record: dict[str, Any] | None, target: Target) -> Settled:
    """Extracts the frame unless ``record`` and the files say that this was done. Leaves the output alone."""
    job = _describe(row)
    if record is not None and record["job"] == job:
        if _has(row.output, record):
            return Settled("kept", record)
        if _has(record["partial"], record):
            return Settled("waiting", record)
    if record is None and not target.overwrite and os.path.lexists(row.output):
        raise AlreadyExistsError(f"{row.output} is there, and the manifest does not have it; see overwrite")
    return Settled("new", _extract(row, job, target))


def _describe(row: Row) -> dict[str, Any]:
    """What the result depends on."""
    job: dict[str, Any] = {"image": _state(row.image), "psf": _state(row.psf), "options": dict(row.options)}
    for name in FILES:
        if row.options.get(name) is not None:
            job[name] = _state(row.options[name])
    answer: dict[str, Any] = json.loads(json.dumps(job))
    return answer


def _state(path: str) -> dict[str, Any]:
    try:
        status = os.stat(path)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from error
    return {"path": path, "bytes": status.st_size, "changed_ns": status.st_mtime_ns}


def _extract(row: Row, job: dict[str, Any], target: Target) -> dict[str, Any]:
    frame = _frame(row, job, target)
    os.makedirs(os.path.dirname(row.output), exist_ok=True)
    partial = partial_of(row.output, uuid.uuid4().hex)
    frame.to_fits(partial)
    return {
        "output": row.output,
        "job": job,
        "sha256": _sha256(partial),
        "bytes": os.path.getsize(partial),
        "partial": partial,
        "engine": frame.job.engine,
        "seconds": frame.job.run_seconds,
        "failed_bundles": list(frame.failed_bundles),
        "warnings": list(frame.warnings),
    }


def _frame(row: Row, job: dict[str, Any], target: Target) -> Frame:
    if target.server is not None:
        answer: Frame = _client(target.server).extract(row.image, psf=row.psf, upload=target.upload, **row.options)
        return answer
    threads = target.threads or distributed.get_worker().state.nthreads
    with _making:  # one engine for all threads of the worker
        engine = _engine(target.device, threads)
    psf = _psf(row.psf, job["psf"]["bytes"], job["psf"]["changed_ns"])
    return engine.extract(row.image, psf=psf, **row.options)


@functools.cache
def _engine(device: str, threads: int) -> Engine:
    return Engine(device, threads=threads)


@functools.lru_cache(_MAX_PSFS)
def _psf(path: str, _size: int, _changed: int) -> Psf:
    return Psf(path)


@functools.cache
def _client(server: str) -> Any:
    from spexd.client import Client  # needs grpcio

    return Client(server)


def _has(path: str, record: dict[str, Any]) -> bool:
    """Whether a file is that of a record."""
    try:
        return bool(os.path.getsize(path) == record["bytes"] and _sha256(path) == record["sha256"])
    except FileNotFoundError:
        return False


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
