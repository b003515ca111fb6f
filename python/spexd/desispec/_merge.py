"""Merges parts of a frame that were extracted separately."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spexd import _native
from spexd._processes import process
from spexd.frame import BAD2DFIT, Frame, JobInfo, Source

_PLANES = ("flux", "ivar", "mask", "resolution", "chi2pix")


def merge(parts: Sequence[Frame]) -> Frame:
    """Returns the frame of a job that was divided into parts of whole bundles, equal to the undivided job's to the bit.

    Args:
        parts: frames of the same job, except for ``first_fibre`` and ``fibre_count``, with consecutive fibres.
    """
    planes = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _PLANES}
    planes["mask"] &= ~np.uint32(BAD2DFIT)  # it depends on all fibres
    whole = Frame._make(_source_of([part._source for part in parts]), planes)
    native = whole._to_native()
    process.call(native.summarise, bool(parts[0].scores))
    return Frame._from_native(
        native,
        model=_sum([part.model for part in parts]),
        failed_bundles=tuple(text for part in parts for text in part.failed_bundles),
        warnings=tuple(dict.fromkeys(text for part in parts for text in part.warnings)),
        job=_job_of([part.job for part in parts]),
    )


def _source_of(sources: Sequence[Any]) -> Source:
    origin = _native.Origin(sources[0].origin)
    for name in ("flux_residual", "root_error"):
        numbers = [getattr(source.origin, name) for source in sources]
        setattr(origin, name, None if None in numbers else max(numbers))
    if origin.fibermap is not None:
        origin.fibermap = _joined([source.origin.fibermap for source in sources])
    return Source(sources[0].grid, origin, None, sources[0].first_fibre)


def _joined(tables: Sequence[Any]) -> Any:
    """Returns the rows of all tables; each table has the whole heap."""
    table = _native.RawTable()
    size = tables[0].row_bytes
    table.rows, table.row_bytes = sum(part.rows for part in tables), size
    data = [part.data for part in tables]
    rows = [bytes_[: part.rows * size] for part, bytes_ in zip(tables, data, strict=True)]
    table.data = b"".join([*rows, data[0][len(rows[0]) :]])
    count = f"NAXIS2  = {table.rows:>20}"
    table.cards = [count + card[len(count) :] if card.startswith("NAXIS2  =") else card for card in tables[0].cards]
    return table


def _sum(models: Iterable[np.ndarray | None]) -> np.ndarray | None:
    """Returns the sum of models. Each pixel is the sum of at most two bundles: a sum of three would depend on the
    division."""
    whole = None
    for model in models:
        if model is not None:
            whole = model.copy() if whole is None else np.add(whole, model, out=whole)
    return whole


def _job_of(jobs: Sequence[JobInfo]) -> JobInfo:
    stages: Counter[str] = Counter()
    for job in jobs:
        stages.update(job.stages)
    return dataclasses.replace(
        jobs[0],
        run_seconds=max(job.run_seconds for job in jobs),
        engine_seconds=max(job.engine_seconds for job in jobs),
        stages=dict(stages),
    )
