"""The parts that both clients share: channels, errors of calls, and the state of a watch. Nothing here waits."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import grpc

from spexd import _native
from spexd._events import AnalysisAssembler, Assembler, Bundle
from spexd._job import Path, Spec, arrays_of
from spexd._request import AskedAnalysis, AskedProducts, RemoteAnalysis, RemoteJob, Sending, make_job
from spexd._retry import RetryPolicy, Then, then_of
from spexd._servers import Endpoint, Servers, from_environment, make_servers
from spexd._spectra import Analysis
from spexd.engine import PsfLike
from spexd.errors import (
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    SpexdError,
    UnavailableError,
    UnknownError,
    error_of,
)
from spexd.frame import Frame
from spexd.v1 import (
    analysis_pb2,
    analysis_pb2_grpc,
    extraction_pb2,
    extraction_pb2_grpc,
    jobs_pb2,
    jobs_pb2_grpc,
    registry_pb2_grpc,
    rpc_details_pb2,
)

ANSWER_PATIENCE = 10.0  # seconds for short calls
_MAX_DELAY = 86400.0  # seconds; the longest delay that is accepted from a server
_RETRY_INFO = "/google.rpc.RetryInfo"
_HEALTH = "/grpc.health.v1.Health/Check"
_NOT_SERVING = b"\x08\x02"

T = TypeVar("T")


class Services:
    """A channel of ``grpc`` or ``grpc.aio``, and the stubs of its services."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.calls = 0  # number of calls that have not ended
        self.extraction = extraction_pb2_grpc.ExtractionStub(channel)
        self.analysis = analysis_pb2_grpc.AnalysisStub(channel)
        self.jobs = jobs_pb2_grpc.JobsStub(channel)
        self.registry = registry_pb2_grpc.PsfRegistryStub(channel)
        # An empty message of grpc.health.v1 asks for the whole server.
        self.health = channel.unary_unary(_HEALTH, request_serializer=None, response_deserializer=None)


class Connection:
    """The connection to one server. Threads may share it.

    A channel on which the server could not be reached gets no further calls; the next call makes a new one. The old
    channel would repeat its last error for some time, and with grpcio 1.62 to 1.76 it reconnects only while a call
    waits.
    """

    def __init__(
        self,
        address: str,
        make_channel: Callable[[], Any],
        metadata: tuple[tuple[str, str], ...],
        discard: Callable[[Any], None] | None = None,
    ) -> None:
        """``discard``: closes a channel that gets no further calls, once its calls have ended; None: the channel
        closes when it is garbage-collected."""
        self.address = address
        self.metadata = metadata
        self._make_channel = make_channel
        self._discard = discard
        self._lock = threading.RLock()  # reentrant: the end of a dropped call may interrupt any code
        self._closed = False
        self._left = False
        self._open: list[Services] = []
        self._current: Services | None = None  # the one of these that gets new calls; None: not made yet

    @contextlib.contextmanager
    def services(self) -> Iterator[Services]:
        """Provides the services for one call, which ends in the block and whose error leaves it."""
        services = self._begin_call()
        reached = True
        try:
            yield services
        except grpc.RpcError as error:
            # A server that sent a retry delay was reached.
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                reached = _retry_delay(error.trailing_metadata()) is not None
            raise
        finally:
            self._end_call(services, reached)

    def _begin_call(self) -> Services:
        with self._lock:
            if self._current is None:
                if self._closed:
                    raise ValueError("the client is closed")
                self._current = Services(self._make_channel())
                self._open.append(self._current)
            self._current.calls += 1
            return self._current

    def _end_call(self, services: Services, reached: bool) -> None:
        with self._lock:
            services.calls -= 1
            if services is self._current and (self._left or not reached):
                self._current = None
        self._discard_unused()

    def leave(self) -> None:
        """Marks the server as no longer found: a channel closes once it has no calls. Calls can still be made."""
        with self._lock:
            self._left = True
            self._current = None
        self._discard_unused()

    def _discard_unused(self) -> None:
        with self._lock:
            if self._closed:
                return
            unused = [services for services in self._open if services.calls == 0 and services is not self._current]
            for services in unused:
                self._open.remove(services)
        for services in unused:
            if self._discard is not None:
                self._discard(services.channel)

    def channels_to_close(self) -> list[Any]:
        """Returns all open channels; no others are made afterwards. Takes no lock, because after a fork it might
        never be released."""
        self._closed = True
        return [services.channel for services in self._open]

    def error_of(self, error: grpc.RpcError) -> SpexdError:
        """Converts a call's error to one of this package."""
        code, message = error.code().value[0], error.details() or ""
        if code == grpc.StatusCode.UNAVAILABLE.value[0]:
            message = f"spexd at {self.address}: {message}"
        return error_of(code, message, _retry_delay(error.trailing_metadata()))

    def check_health(self, answer: bytes) -> None:
        """Raises UnavailableError if the server takes no jobs."""
        if answer == _NOT_SERVING:
            raise UnavailableError(f"spexd at {self.address}: NOT_SERVING")

    def check_health_error(self, error: grpc.RpcError) -> None:
        """Raises UnavailableError if the server cannot be reached or does not answer; returns if it does not know
        the call."""
        if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            raise UnavailableError(f"spexd at {self.address}: no answer") from error
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            raise self.error_of(error) from error


class Directory:
    """Connections to the servers of an address. A name is looked up again for each call, because in a cluster
    servers are replaced by others at other addresses. A server that is found again keeps its connection. Threads may
    share it."""

    def __init__(self, servers: Servers, kind: Any, discard: Callable[[Any], None] | None = None) -> None:
        """Looks names up for the first time, and raises the errors of that. ``kind``: the module ``grpc`` or
        ``grpc.aio``; ``discard``: as in Connection."""
        self._servers = servers
        self._kind = kind
        self._discard = discard
        self._lock = threading.Lock()
        self._found: dict[Endpoint, Connection] = {}
        self._made: weakref.WeakSet[Connection] = weakref.WeakSet()  # calls may use some that are no longer found
        self.names = servers.names
        self.take(servers.find())

    def look_up(self) -> Sequence[Endpoint]:
        """Returns the current servers; none while the name has none or cannot be looked up."""
        try:
            return self._servers.find()
        except UnavailableError:
            return ()

    def take(self, endpoints: Sequence[Endpoint]) -> list[Connection]:
        """Returns connections to these servers; if there are none, to those that were found last."""
        with self._lock:
            if endpoints:
                before = self._found
                self._found = {endpoint: before.get(endpoint) or self._connect(endpoint) for endpoint in endpoints}
                for endpoint in before.keys() - self._found.keys():
                    before[endpoint].leave()
            return list(self._found.values())

    def _connect(self, endpoint: Endpoint) -> Connection:
        make_channel = self._servers.channel_maker(self._kind, endpoint)
        connection = Connection(endpoint.target, make_channel, self._servers.metadata, self._discard)
        self._made.add(connection)
        return connection

    def channels_to_close(self) -> list[Any]:
        """Returns the open channels of all connections, as Connection.channels_to_close does."""
        return [channel for connection in list(self._made) for channel in connection.channels_to_close()]


def _retry_delay(metadata: Any) -> float | None:
    trailers = {item[0]: item[1] for item in metadata or ()}
    status = rpc_details_pb2.RpcStatus()
    try:
        status.ParseFromString(trailers.get("grpc-status-details-bin", b""))
    except Exception:  # protobuf's versions define DecodeError in different places; details that cannot be read are
                       # ignored
        status = rpc_details_pb2.RpcStatus()
    for detail in status.details:
        if detail.type_url.endswith(_RETRY_INFO):
            delay = rpc_details_pb2.RetryInfo.FromString(detail.value).retry_delay
            seconds: float = delay.seconds + delay.nanos * 1e-9
            return min(max(seconds, 0.0), _MAX_DELAY)
    pushback = trailers.get("grpc-retry-pushback-ms", "")
    if str(pushback).isdecimal():
        return min(int(pushback) / 1000, _MAX_DELAY)
    return None


def servers_of(
    address: str | None,
    tls_ca: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    token_file: str | None,
) -> Servers:
    """Returns the servers of a client's arguments; the environment replaces arguments that are None."""
    name = from_environment(address, "SPEXD_SERVER")
    if not name:
        raise InvalidArgumentError("server address is missing: give one, or set SPEXD_SERVER")
    return make_servers(
        name,
        from_environment(tls_ca, "SPEXD_TLS_CA"),
        from_environment(tls_cert, "SPEXD_TLS_CERT"),
        from_environment(tls_key, "SPEXD_TLS_KEY"),
        from_environment(token_file, "SPEXD_TOKEN_FILE"),
    )


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The inputs of a call, not yet checked."""

    image: Any
    ivar: Any = None
    mask: Any = None
    psf: PsfLike | None = None
    fibermap: Path | None = None
    trace_reference: Path | None = None
    header: object = None
    name: str = "array"
    upload: bool = False

    def job(self, spec: Spec, products: AskedProducts) -> RemoteJob:
        """Returns the job as it is sent."""
        arrays = arrays_of(self.image, self.ivar, self.mask, self.header)
        image = self.image if arrays is None else self.name
        files = self.psf, self.fibermap, self.trace_reference
        return make_job(spec, arrays, image, *files, upload=self.upload, products=products)


_OWNERS = {field.name: kind for kind in (Inputs, Spec, AskedProducts) for field in dataclasses.fields(kind)}


def job_of(image: Any, ivar: Any, mask: Any, psf: Any, options: dict[str, Any]) -> RemoteJob:
    """Returns the job of a call's arguments. TypeError: an unknown option."""
    given: dict[type, dict[str, Any]] = {Inputs: {}, Spec: {}, AskedProducts: {}}
    for name, value in options.items():
        if name not in _OWNERS:
            raise TypeError(f"unknown option {name!r}")
        given[_OWNERS[name]][name] = value
    inputs = Inputs(image, ivar, mask, psf, **given[Inputs])
    return inputs.job(Spec(**given[Spec]), AskedProducts(**given[AskedProducts]))


def deadline_of(timeout: float | None) -> float | None:
    """Returns the end of a call, in the time of time.monotonic."""
    if timeout is None:
        return None
    if not 0 < timeout < 1e9:
        raise InvalidArgumentError(f"timeout is {timeout}, must be more than 0 and less than 1e9 seconds")
    return time.monotonic() + timeout


def time_left(deadline: float | None, most: float | None = None) -> float | None:
    """Returns the seconds that are left for a call."""
    if deadline is None:
        return most
    left = max(deadline - time.monotonic(), 0.001)
    return left if most is None else min(left, most)


@dataclasses.dataclass
class Attempt(Generic[T]):
    """One call of Extract or Analyse: its messages and its results."""

    method: Callable[[Services], Any]
    messages: Sending
    assembler: Assembler | AnalysisAssembler
    finish: Callable[[str], T]  # takes the server's address; see the assembler's finish

    def failure(self, error: Exception, connection: Connection) -> tuple[SpexdError, Then]:
        """Returns the error of the call, and how to continue."""
        failed = self._error(error, connection)
        if isinstance(failed, CancelledError) and not self.assembler.accepted:
            # gRPC answers so if a call arrives while its server shuts down.
            failed = UnavailableError(f"the call was cancelled before the job was taken: {failed}")
        if self.assembler.arrived:
            return failed, Then.END
        return failed, then_of(failed, self.assembler.accepted)

    def _error(self, error: Exception, connection: Connection) -> SpexdError:
        if self.messages.error is not None:
            return self.messages.error
        return connection.error_of(error) if isinstance(error, grpc.RpcError) else error  # type: ignore[return-value]


def extract_attempt(job: RemoteJob) -> Attempt[Frame]:
    """Makes an attempt at a job."""
    assembler, sending = Assembler(), Sending(job.uploads, extraction_pb2.ExtractRequest, job.header)
    return Attempt(lambda on: on.extraction.Extract, sending, assembler, lambda server: assembler.finish(job, server))


def analysis_attempt(analysis: RemoteAnalysis) -> Attempt[Analysis]:
    """Makes an attempt at an analysis."""
    sending = Sending(analysis.uploads, analysis_pb2.AnalyseRequest, analysis.header)
    assembler = AnalysisAssembler(analysis)
    return Attempt(lambda on: on.analysis.Analyse, sending, assembler, assembler.finish)


@dataclasses.dataclass(frozen=True)
class Submitted:
    """A detached job that a server has stored on disk."""

    job_id: str
    request_id: str
    server: str
    existed: bool  #: whether an earlier call had submitted it


class Submission:
    """The attempts of one submission."""

    def __init__(self, job: RemoteJob, request_id: str | None, keep: int, deadline: int = 0) -> None:
        if request_id is not None and not 1 <= len(request_id) <= 128:
            raise InvalidArgumentError(f"request_id has {len(request_id)} characters, must have 1 to 128")
        for name, seconds in (("keep", keep), ("deadline", deadline)):
            if not 0 <= seconds < 2**32:
                raise InvalidArgumentError(f"{name} is {seconds}, must be 0 to {2**32 - 1} seconds")
        self.chosen = request_id is not None  # otherwise the request id is random
        self.request_id = request_id or uuid.uuid4().hex
        self.job = job
        self._header = jobs_pb2.SubmitHeader(
            request_id=self.request_id, job=job.header, keep_seconds=keep, deadline_seconds=deadline
        )
        self._may_be_taken = False

    def policy(self, policy: RetryPolicy) -> RetryPolicy:
        """Returns the policy with a seed from the request id, so that calls with the same id begin with the same
        server, which may have the job already."""
        return dataclasses.replace(policy, seed=_native.crc32c(self.request_id.encode())) if self.chosen else policy

    def messages(self) -> Sending:
        """Returns the messages of one attempt."""
        return Sending(self.job.uploads, jobs_pb2.SubmitRequest, self._header)

    def answer_was_lost(self, error: SpexdError, sent: Sending) -> bool:
        """Returns whether the server must be asked for its jobs, because it may have this one."""
        return isinstance(error, UnavailableError) and sent.complete and error.retry_delay is None

    def then(self, error: SpexdError, sent: Sending, unknown_there: bool) -> Then:
        """Returns how to continue. ``unknown_there``: the server was asked and has no such job."""
        lost = self.answer_was_lost(error, sent) and not unknown_there
        unclear = isinstance(error, (CancelledError, DeadlineExceededError, InternalError, UnknownError))
        self._may_be_taken = self._may_be_taken or (sent.complete and (lost or unclear))
        return Then.HERE if lost else then_of(error, taken=False)

    def last_error(self, error: SpexdError) -> SpexdError:
        """Returns the error of the whole call. It names the request id if a server may have taken the job."""
        if not self._may_be_taken:
            return error
        hint = (
            f'the server may have taken the job as request id "{self.request_id}": submit it again with that to learn'
        )
        return error_of(error.code, f"{error}; {hint}", error.retry_delay)


def analysis_of(spectra: Any, templates: Any, options: dict[str, Any]) -> RemoteAnalysis:
    """Returns the analysis of a call's arguments. TypeError: an unknown option."""
    several = [spectra] if isinstance(spectra, (str, os.PathLike, Submitted)) else list(spectra)
    given = [f"job:{one.job_id}" if isinstance(one, Submitted) else one for one in several]
    return AskedAnalysis(**options).job(given, templates)


_MAY_BE_THE_CONNECTIONS = (UnavailableError, InternalError, UnknownError, CancelledError)


class WatchState:
    """The part of a job that one watch has received. Events are taken once and in order, across broken connections."""

    def __init__(self, job_id: str, handed_on: set[int]) -> None:
        """``handed_on``: bundles that were handed on, by this watch or an earlier one; each is handed on once."""
        self.job_id = job_id
        self._handed_on = handed_on
        self.assembler = Assembler()
        self.last = 0  # sequence number
        self.damaged = False

    def request(self) -> jobs_pb2.WatchRequest:
        """Returns the request for what is missing."""
        return jobs_pb2.WatchRequest(job_id=self.job_id, after=self.last)

    def take(self, event: jobs_pb2.WatchEvent) -> Bundle | None:
        """Takes an event; returns the bundle that it completes, or None."""
        if event.sequence == 0:
            return None if self.assembler.whole else self._add(event)
        if event.sequence <= self.last:
            return None
        if event.sequence != self.last + 1:
            self.damaged = True
            gap = f"event {event.sequence} came after event {self.last}"
            raise DataLossError(f"the server's answer is damaged: {gap}")
        bundle = self._add(event)
        self.last = event.sequence
        return bundle

    def _add(self, event: jobs_pb2.WatchEvent) -> Bundle | None:
        try:
            bundle = self.assembler.add(event.event)
        except DataLossError:
            self.damaged = True
            raise
        if bundle is None or bundle.index in self._handed_on:
            return None
        self._handed_on.add(bundle.index)
        return bundle

    def finish(self, server: str) -> Frame:
        """Returns the frame, after the call has ended well."""
        try:
            return self.assembler.finish(None, server, self.job_id, self.last)
        except DataLossError:
            self.damaged = True
            raise

    def released(self, error: SpexdError) -> SpexdError | None:
        """Returns the error for a job whose results were released, or None."""
        if isinstance(error, OutOfRangeError) and self.last == 0:
            return OutOfRangeError(f"the results of job {self.job_id} were fetched and released before: {error}")
        return None

    def after(self, error: SpexdError, record: jobs_pb2.JobRecord | SpexdError) -> SpexdError | None:
        """Returns the error that the watch ends with, after a call that ended with ``error``, given the job's
        record; None: watch again after a pause."""
        if isinstance(record, jobs_pb2.JobRecord):
            if record.state == jobs_pb2.DETACHED_STATE_CANCELLED:
                return CancelledError(record.message or "the job was cancelled")
            if record.state == jobs_pb2.DETACHED_STATE_FAILED:
                return error_of(record.code or InternalError.code, record.message)
        full = isinstance(error, ResourceExhaustedError) and error.retry_delay is not None
        if not full and not isinstance(error, _MAY_BE_THE_CONNECTIONS):
            return error
        return record if isinstance(record, LookupError) else None  # the job was removed meanwhile
