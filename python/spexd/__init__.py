"""Spectra from CCD frames of multi-fibre spectrographs, in this process or on a spexd server.

In this process::

    frame = spexd.extract("preproc-r0.fits", psf="psf-r0.fits", wavelength=(5760, 7620, 0.8))
    frame.to_fits("frame.fits")

On a server, with the same result (needs grpcio and protobuf)::

    with spexd.Client("node7:50051") as client:
        frame = client.extract("preproc-r0.fits", psf="psf-r0.fits", upload=True)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from spexd._native import version as __version__
from spexd._products import Products, Sky, Templates
from spexd._spectra import Analysis, Spectra, SpectraArm, read_spectra
from spexd._spots import psf_from_spots
from spexd._sums import Coadd, SkyPca, coadd, pca
from spexd._traces import AxisShifts, TraceShifts
from spexd.engine import Engine, Psf, default_engine, extract, trace_shifts, write_shifted_psf
from spexd.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    SpexdError,
    StatusCode,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)
from spexd.frame import (
    ALLBADPIX,
    BAD2DFIT,
    BADFIBER,
    BADFIBERFLAT,
    BADSKY,
    NODATA,
    SOMEBADPIX,
    Frame,
    JobInfo,
)

if TYPE_CHECKING:
    from spexd._calls import Submitted
    from spexd._events import Bundle
    from spexd._retry import RetryPolicy
    from spexd.aio import AsyncClient, AsyncStream
    from spexd.client import Client, Stream

# Names that need grpcio. They are imported on first use.
_REMOTE = {
    "AsyncClient": "aio",
    "AsyncStream": "aio",
    "Bundle": "_events",
    "Client": "client",
    "RetryPolicy": "_retry",
    "Stream": "client",
    "Submitted": "_calls",
}

__all__ = [
    "ALLBADPIX",
    "BAD2DFIT",
    "BADFIBER",
    "BADFIBERFLAT",
    "BADSKY",
    "NODATA",
    "SOMEBADPIX",
    "AbortedError",
    "AlreadyExistsError",
    "Analysis",
    "AsyncClient",
    "AsyncStream",
    "AxisShifts",
    "Bundle",
    "CancelledError",
    "Client",
    "Coadd",
    "DataLossError",
    "DeadlineExceededError",
    "Engine",
    "FailedPreconditionError",
    "Frame",
    "InternalError",
    "InvalidArgumentError",
    "JobInfo",
    "NotFoundError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "Products",
    "Psf",
    "ResourceExhaustedError",
    "RetryPolicy",
    "Sky",
    "SkyPca",
    "Spectra",
    "SpectraArm",
    "SpexdError",
    "StatusCode",
    "Stream",
    "Submitted",
    "Templates",
    "TraceShifts",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "__version__",
    "coadd",
    "default_engine",
    "extract",
    "pca",
    "psf_from_spots",
    "read_spectra",
    "trace_shifts",
    "write_shifted_psf",
]


def __getattr__(name: str) -> Any:
    if name in _REMOTE:
        return getattr(importlib.import_module("spexd." + _REMOTE[name]), name)
    raise AttributeError(f"module 'spexd' has no attribute {name!r}")
