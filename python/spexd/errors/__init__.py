"""Exceptions: one class for each status code of spexd, whether a job ran in this process or on a server.

>>> try:
...     raise error_of(3, "psferr is -1, must be 0 to 1000")
... except InvalidArgumentError as error:
...     print(int(error.code), error.code.name, error)
3 INVALID_ARGUMENT psferr is -1, must be 0 to 1000
"""

from __future__ import annotations

import enum


class StatusCode(enum.IntEnum):
    """Status codes, as gRPC numbers them. docs/spexd.md says what to do about each."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class SpexdError(Exception):
    """The base of all errors of spexd."""

    code: StatusCode = StatusCode.UNKNOWN
    #: Seconds after which the server asks to be called again; None if it does not ask.
    retry_delay: float | None = None


class CancelledError(SpexdError):
    """The job was cancelled."""

    code = StatusCode.CANCELLED


class UnknownError(SpexdError):
    """An error without a code of its own."""


class InvalidArgumentError(SpexdError, ValueError):
    """A field, file or HDU is wrong; the message names it, its value and the limit."""

    code = StatusCode.INVALID_ARGUMENT


class DeadlineExceededError(SpexdError, TimeoutError):
    """The job did not end in time."""

    code = StatusCode.DEADLINE_EXCEEDED


class NotFoundError(SpexdError, LookupError):
    """A file or job does not exist."""

    code = StatusCode.NOT_FOUND


class AlreadyExistsError(SpexdError):
    """Another job has this request id, or a file exists already."""

    code = StatusCode.ALREADY_EXISTS


class PermissionDeniedError(SpexdError):
    """A file cannot be read, or the caller lacks a role."""

    code = StatusCode.PERMISSION_DENIED


class ResourceExhaustedError(SpexdError):
    """The queue is full, or the job needs more memory than is available."""

    code = StatusCode.RESOURCE_EXHAUSTED


class FailedPreconditionError(SpexdError):
    """The job cannot run here at present: there is no CUDA, a PSF is not loaded, or the server keeps no detached
    jobs."""

    code = StatusCode.FAILED_PRECONDITION


class AbortedError(SpexdError):
    """The call was aborted."""

    code = StatusCode.ABORTED


class OutOfRangeError(SpexdError):
    """The requested results were released, or never existed."""

    code = StatusCode.OUT_OF_RANGE


class UnimplementedError(SpexdError):
    """The PSF is of an unknown type, or the server does not know the call."""

    code = StatusCode.UNIMPLEMENTED


class InternalError(SpexdError):
    """A defect of the program."""

    code = StatusCode.INTERNAL


class UnavailableError(SpexdError):
    """The server cannot be reached or takes no jobs, or a device has failed."""

    code = StatusCode.UNAVAILABLE


class DataLossError(SpexdError):
    """Data that arrived over the network is damaged or incomplete."""

    code = StatusCode.DATA_LOSS


class UnauthenticatedError(SpexdError):
    """The server requires authentication, and this caller is not known to it."""

    code = StatusCode.UNAUTHENTICATED


_CLASSES: dict[int, type[SpexdError]] = {kind.code: kind for kind in SpexdError.__subclasses__()}


def error_of(code: int, message: str, retry_delay: float | None = None) -> SpexdError:
    """Returns the exception for a status code; UnknownError for codes that are not known here."""
    error = _CLASSES.get(code, UnknownError)(message)
    error.retry_delay = retry_delay
    return error
