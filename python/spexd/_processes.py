"""Processes: what a forked process may call, and how values of the extension are passed between processes (pickle).

A forked process has none of its parent's threads. A lock that one of them held at the fork stays held for ever, and a
GPU that the parent used cannot be used. Instead of hanging, such a process gets an error here. A process that was
forked between calls may use the extension with engines of its own.
"""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable
from typing import Any, TypeVar

from spexd import _native
from spexd.errors import FailedPreconditionError

T = TypeVar("T")

_ADVICE = 'start processes with multiprocessing\'s "spawn" or "forkserver"'


class Process:
    """The rules of this process for calls of the extension."""

    def __init__(self) -> None:
        self._under_way: set[object] = set()  # running calls; adding and removing need no lock of ours
        self._cut_off = False
        self._cuda = False
        self._cuda_lost = False

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Calls a function of the extension that starts threads or takes locks, and returns its result.
        FailedPreconditionError: another such call was running when this process was forked."""
        if self._cut_off:
            raise FailedPreconditionError(
                f"this process was forked while its parent was inside of spexd, and cannot use it; {_ADVICE}"
            )
        token = object()
        self._under_way.add(token)
        try:
            return function(*arguments)
        finally:
            self._under_way.discard(token)

    def check_device(self, device: str) -> None:
        """FailedPreconditionError: the device is a GPU, and one was used before this process was forked."""
        if device != "cpu" and self._cuda_lost:
            raise FailedPreconditionError(
                f"CUDA was used before the fork of this process, and cannot be used in it; {_ADVICE}, or take the "
                'device "cpu"'
            )

    def uses_cuda(self) -> None:
        """Notes that a GPU is in use."""
        self._cuda = True

    def forked(self) -> None:
        """Runs in the new process before anything else does."""
        self._cut_off |= bool(self._under_way)
        self._under_way = set()
        self._cuda_lost |= self._cuda
        self._cuda = False


process = Process()
os.register_at_fork(after_in_child=process.forked)


_FIELDS: dict[type, tuple[str, ...]] = {
    _native.RawTable: ("cards", "rows", "row_bytes", "data"),
    _native.Scores: ("band", "sum_counts", "median_counts", "median_snr", "median_chi2pix", "outliers_chi2pix"),
    _native.Origin: (
        "image_cards",
        "original_psf",
        "input_image",
        "input_psf",
        "heliocentric_factor",
        "psferr",
        "flux_residual",
        "root_error",
        "chi2pix_median",
        "chi2pix_outliers",
        "fine_grid_prior",
        "version",
        "traces",
        "fibermap",
    ),
    _native.AxisShifts: ("status", "series", "covariance", "corner_error", "mean", "min", "max", "used", "clipped"),
    _native.TraceReport: ("x", "y", "reason", "passes", "lines", "moved", "reference", "wave_min", "wave_max", "u"),
}


def _made(kind: type, fields: dict[str, Any]) -> Any:
    value = kind()
    for name, field in fields.items():
        setattr(value, name, field)
    return value


def _fields_of(value: Any) -> tuple[Any, ...]:
    fields = {name: getattr(value, name) for name in _FIELDS[type(value)]}
    return _made, (type(value), {name: field for name, field in fields.items() if field is not None})


def register_values() -> None:
    """Registers the extension's classes with pickle. Classes of _FIELDS are pickled as their fields; unset fields
    are left out, because they are unset in a new value."""
    copyreg.pickle(_native.Grid, lambda grid: (_native.Grid, (grid.first, grid.step, grid.count)))
    for kind in _FIELDS:
        copyreg.pickle(kind, _fields_of)
