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
    """What went wrong, as gRPC numbers it; docs/spexd.md tells what to do about each."""

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
    """Base of all errors of spexd."""

    code: StatusCode = StatusCode.UNKNOWN
    #: Seconds after which the server asks to be called again; None where it asks for nothing.
    retry_delay: float | None = None


class CancelledError(SpexdError):
    """The job was stopped."""

    code = StatusCode.CANCELLED


class UnknownError(SpexdError):
    """An error without a code of its own."""


class InvalidArgumentError(SpexdError, ValueError):
    """A field, file or HDU is wrong; the message names it, its value and the limit."""

    code = StatusCode.INVALID_ARGUMENT


class DeadlineExceededError(SpexdError, TimeoutError):
    """The job was not done in time."""

    code = StatusCode.DEADLINE_EXCEEDED


class NotFoundError(SpexdError, LookupError):
    """A file or job is not there."""

    code = StatusCode.NOT_FOUND


class AlreadyExistsError(SpexdError):
    """Another job has this request id, or a file is there already."""

    code = StatusCode.ALREADY_EXISTS


class PermissionDeniedError(SpexdError):
    """A file cannot be read, or the caller lacks a role."""

    code = StatusCode.PERMISSION_DENIED


class ResourceExhaustedError(SpexdError):
    """The queue is full, or the job needs more memory than there is."""

    code = StatusCode.RESOURCE_EXHAUSTED


class FailedPreconditionError(SpexdError):
    """The job cannot run here as things are: no CUDA, a PSF that is not loaded, a server without jobs."""

    code = StatusCode.FAILED_PRECONDITION


class AbortedError(SpexdError):
    """The call was given up."""

    code = StatusCode.ABORTED


class OutOfRangeError(SpexdError):
    """Results that were released, or never were."""

    code = StatusCode.OUT_OF_RANGE


class UnimplementedError(SpexdError):
    """A PSF of an unknown type, or a call that the server does not know."""

    code = StatusCode.UNIMPLEMENTED


class InternalError(SpexdError):
    """A fault of the program."""

    code = StatusCode.INTERNAL


class UnavailableError(SpexdError):
    """A server that is not there or takes no jobs, or a device that failed."""

    code = StatusCode.UNAVAILABLE


class DataLossError(SpexdError):
    """What came over the network is damaged or incomplete."""

    code = StatusCode.DATA_LOSS


class UnauthenticatedError(SpexdError):
    """The server knows its callers, and this is none of them."""

    code = StatusCode.UNAUTHENTICATED


_CLASSES: dict[int, type[SpexdError]] = {kind.code: kind for kind in SpexdError.__subclasses__()}


def error_of(code: int, message: str, retry_delay: float | None = None) -> SpexdError:
    """The exception of a status code. Codes that are not known here become UnknownError."""
    error = _CLASSES.get(code, UnknownError)(message)
    error.retry_delay = retry_delay
    return error
