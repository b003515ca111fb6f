"""The steps of a client's calls. A flow is a generator. It yields steps, which its driver carries out in a thread or
an event loop, and bundles, which the driver hands on. It returns the call's result."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import random
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import grpc

from spexd._calls import (
    ANSWER_PATIENCE,
    Connection,
    Attempt,
    Directory,
    Services,
    Submission,
    Submitted,
    WatchState,
    analysis_attempt,
    extract_attempt,
    time_left,
)
from spexd._events import Bundle
from spexd._request import RemoteAnalysis, RemoteJob
from spexd._retry import Attempts, Candidate, Pauses, RetryPolicy, Then
from spexd._spectra import Analysis
from spexd._speeds import Speeds
from spexd.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    NotFoundError,
    SpexdError,
    UnavailableError,
)
from spexd.frame import Frame
from spexd.v1 import extraction_pb2, jobs_pb2, registry_pb2

_JOBS_OF_A_PAGE = 1000


@dataclasses.dataclass(frozen=True)
class Sleep:
    """Waits for some seconds."""

    seconds: float


@dataclasses.dataclass(frozen=True)
class Call:
    """Calls a method. Returns its answer or, with ``streams``, the call, which Next reads. ``request``: a message,
    or the messages of a call that sends several."""

    method: Any
    request: Any
    timeout: float | None
    metadata: tuple[tuple[str, str], ...]
    streams: bool = False


@dataclasses.dataclass(frozen=True)
class Next:
    """Reads the next message of a call; None at its end."""

    call: Any


@dataclasses.dataclass(frozen=True)
class LookUp:
    """Calls a function that asks name servers, which may take seconds."""

    look_up: Callable[[], Any]


Step = Sleep | Call | Next | LookUp
Method = Callable[[Services], Any]  # of a channel's services
T = TypeVar("T")
Flow = Generator[Any, Any, T]  # yields Steps and Bundles; returns the call's result


class Flows:
    """The flows of one client."""

    def __init__(self, directory: Directory, retry: RetryPolicy) -> None:
        self._directory = directory
        self._process = os.getpid()
        self._retry = retry
        # The first job begins with a random server, later ones with the server that is expected to end them first.
        # Detached jobs, whose ends are not seen here, begin with the servers in turn.
        first = random.Random(retry.seed).getrandbits(16)
        self._speeds, self._analysis_speeds = Speeds(first), Speeds(first)
        self._starts = itertools.count(first)

    def _servers(self) -> Flow[list[Connection]]:
        """Returns the current servers. FailedPreconditionError: this is a forked process, whose calls would disturb
        those of its parent."""
        if os.getpid() != self._process:
            raise FailedPreconditionError(
                "the client was made before a fork and cannot be used in the new process; make one there"
            )
        return self._directory.take((yield LookUp(self._directory.look_up)) if self._directory.names else ())

    def run(self, job: RemoteJob, deadline: float | None) -> Flow[Frame]:
        """Extracts; returns the Frame."""
        return (yield from self._run(lambda: extract_attempt(job), self._servers, self._speeds, deadline))

    def analyse(self, analysis: RemoteAnalysis, deadline: float | None) -> Flow[Analysis]:
        """Analyses spectra; returns the Analysis. Frames of detached jobs are analysed on the server that has them."""
        job_ids = analysis.job_ids
        find = (lambda: self._servers_of(job_ids, deadline)) if job_ids else self._servers
        return (yield from self._run(lambda: analysis_attempt(analysis), find, self._analysis_speeds, deadline))

    def _servers_of(self, job_ids: Sequence[str], deadline: float | None) -> Flow[list[Connection]]:
        """Returns the one server that has all of these jobs."""
        found: dict[str, Connection] = {}
        for job_id in job_ids:
            found[job_id], _ = yield from self._find_patiently(job_id, deadline)
        servers = list(dict.fromkeys(found.values()))
        if len(servers) > 1:
            jobs = ", ".join(f"{job_id} at {connection.address}" for job_id, connection in found.items())
            raise FailedPreconditionError(
                f"spectra: the jobs are on several servers ({jobs}); write their frames to files, and give these"
            )
        return servers

    def _run(
        self,
        make: Callable[[], Attempt[T]],
        find: Callable[[], Flow[list[Connection]]],
        speeds: Speeds,
        deadline: float | None,
    ) -> Flow[T]:
        """Tries until an attempt succeeds; returns its result. ``find``: looks up the current servers."""
        servers = yield from find()
        attempts = Attempts(_addresses(servers), self._retry, deadline)
        candidate = attempts.first()
        while True:
            yield Sleep(candidate.wait)
            with speeds.job(servers, attempts.ready(candidate)) as assignment:
                candidate.server = assignment.server
                connection, attempt = servers[candidate.server], make()
                try:
                    yield from self._check_health(connection, servers, deadline)
                    sending, take = attempt.messages, attempt.assembler.add
                    yield from self._events(connection, attempt.method, sending, deadline, take)
                    if sending.error is not None:
                        raise sending.error
                    result = attempt.finish(connection.address)
                    assignment.done()
                    return result
                except (grpc.RpcError, SpexdError) as error:
                    failed, then = attempt.failure(error, connection)
                if then is Then.ELSEWHERE or isinstance(failed, UnavailableError):
                    assignment.refused(failed.retry_delay)
            candidate = yield from self._after(attempts, servers, candidate, failed, then, find)

    def submit(self, submission: Submission, deadline: float | None) -> Flow[Submitted]:
        """Submits a detached job; returns Submitted."""
        servers = yield from self._servers()
        first = None if submission.chosen else next(self._starts)
        attempts = Attempts(_addresses(servers), submission.policy(self._retry), deadline, first)
        candidate = attempts.first()
        while True:
            yield Sleep(candidate.wait)
            connection, sending = servers[candidate.server], submission.messages()
            try:
                yield from self._check_health(connection, servers, deadline)
                with connection.services() as on:
                    reply = yield Call(on.jobs.Submit, sending, time_left(deadline), connection.metadata)
                return Submitted(reply.job_id, submission.request_id, connection.address, reply.existed)
            except (grpc.RpcError, SpexdError) as error:
                failed = sending.error or _error_of(connection, error)
            lost = submission.answer_was_lost(failed, sending)
            unknown = lost and (yield from self._is_unknown(connection, submission.request_id, deadline))
            try:
                then = submission.then(failed, sending, unknown)
                candidate = yield from self._after(attempts, servers, candidate, failed, then, self._servers)
            except SpexdError as error:
                raise submission.last_error(error) from failed

    def watch(self, job_id: str, deadline: float | None) -> Flow[Frame]:
        """Waits for a detached job; returns the Frame."""
        connection, _ = yield from self._find_patiently(job_id, deadline)
        seen: set[int] = set()
        for attempt in range(self._retry.data_loss_attempts):
            state = WatchState(job_id, seen)
            try:
                connection = yield from self._watch_once(connection, state, deadline)
                return state.finish(connection.address)
            except SpexdError:
                if not state.damaged or attempt + 1 == self._retry.data_loss_attempts:
                    raise
        raise AssertionError("there is at least one attempt")

    def ack(self, frame: Frame) -> Flow[None]:
        """Releases the results of a frame."""
        servers = yield from self._servers()
        connection = next((c for c in servers if c.address == frame.job.server), None)
        if connection is None or frame.job.last_sequence == 0:
            raise NotFoundError("the frame is of no detached job of these servers")
        request = jobs_pb2.AckRequest(job_id=frame.job.job_id, upto=frame.job.last_sequence)
        yield from self._patiently(lambda: _call(connection, lambda on: on.jobs.Ack, request), UnavailableError, None)

    def job(self, job_id: str) -> Flow[jobs_pb2.JobRecord]:
        """Returns the record of a detached job."""
        return (yield from self._find(job_id, None))[1]

    def jobs(self) -> Flow[list[jobs_pb2.JobRecord]]:
        """Returns the records of all servers."""
        records: list[jobs_pb2.JobRecord] = []
        for connection in (yield from self._servers()):
            records += yield from self._jobs_of(connection, None)
        return records

    def cancel(self, job_id: str) -> Flow[jobs_pb2.JobRecord]:
        """Stops a detached job; returns its record."""
        connection, _ = yield from self._find(job_id, None)
        request = jobs_pb2.CancelJobRequest(job_id=job_id)
        record: jobs_pb2.JobRecord = yield from _call(connection, lambda on: on.jobs.CancelJob, request)
        return record

    def capabilities(self) -> Flow[list[extraction_pb2.Capabilities]]:
        """Returns the capabilities of all servers."""
        found: list[extraction_pb2.Capabilities] = []
        for connection in (yield from self._servers()):
            request = extraction_pb2.GetCapabilitiesRequest()
            found.append((yield from _call(connection, lambda on: on.extraction.GetCapabilities, request)))
        return found

    def psfs(self) -> Flow[list[registry_pb2.PsfInfo]]:
        """Returns the warm PSFs of all servers."""
        found: list[registry_pb2.PsfInfo] = []
        for connection in (yield from self._servers()):
            request = registry_pb2.ListPsfsRequest()
            pages = yield from _pages(connection, lambda on: on.registry.ListPsfs, request, None)
            found += [psf for page in pages for psf in page.psfs]
        return found

    def _after(
        self,
        attempts: Attempts,
        servers: list[Connection],
        candidate: Candidate,
        failed: SpexdError,
        then: Then,
        find: Callable[[], Flow[list[Connection]]],
    ) -> Flow[Candidate]:
        """Returns the next candidate. If all servers have refused, those that were found since are added."""
        if attempts.note(candidate, failed, then):
            added = [server for server in (yield from find()) if server not in servers]
            servers += added
            attempts.add(_addresses(added))
        return attempts.next(failed)

    def _events(
        self,
        connection: Connection,
        method: Method,
        request: Any,
        deadline: float | None,
        take: Callable[[Any], Bundle | None],
    ) -> Flow[None]:
        """Passes a call's events to ``take``, and yields the bundles that it returns. Cancels the call on an early
        end."""
        with connection.services() as on:
            call = yield Call(method(on), request, time_left(deadline), connection.metadata, streams=True)
            try:
                while (event := (yield Next(call))) is not None:
                    if (bundle := take(event)) is not None:
                        yield bundle
            finally:
                call.cancel()

    def _watch_once(
        self, connection: Connection, state: WatchState, deadline: float | None
    ) -> Flow[Connection]:
        """Watches a job; returns the server that had it at the end."""
        pauses = Pauses(self._retry, deadline)
        while True:
            before, start = state.last, time.monotonic()
            try:
                yield from self._events(connection, lambda on: on.jobs.Watch, state.request(), deadline, state.take)
                return connection
            except (grpc.RpcError, SpexdError) as error:
                failed = _error_of(connection, error)
            if state.last > before or time.monotonic() - start > self._retry.longest_wait:
                pauses.reset()
            connection = yield from self._check_watch(connection, state, failed, deadline)
            yield Sleep(pauses.after(failed))

    def _check_watch(
        self,
        connection: Connection,
        state: WatchState,
        failed: SpexdError,
        deadline: float | None,
    ) -> Flow[Connection]:
        """Returns the server to continue with. Raises the error of the watch if it cannot continue."""
        if state.damaged:
            raise failed
        if isinstance(failed, DeadlineExceededError) and deadline is not None and time.monotonic() >= deadline:
            raise DeadlineExceededError("the job has not ended by the deadline; it goes on") from failed
        if released := state.released(failed):
            raise released
        record: jobs_pb2.JobRecord | SpexdError
        try:
            record = yield from self._record(connection, state.job_id, deadline)
        except SpexdError as error:
            record = error
            if moved := (yield from self._moved(connection, state.job_id, deadline)):
                return moved
        if ending := state.after(failed, record):
            raise ending
        return connection

    def _moved(self, present: Connection, job_id: str, deadline: float | None) -> Flow[Connection | None]:
        """Returns another server that now has the job; None: no other than ``present`` may have it."""
        for connection in (yield from self._servers()):
            if connection.address != present.address:
                # Servers that will not return, such as failed nodes, may be asked each time.
                with contextlib.suppress(SpexdError):
                    yield from self._record(connection, job_id, deadline, self._retry.health_patience)
                    return connection
        return None

    def _record(
        self, connection: Connection, job_id: str, deadline: float | None, patience: float = ANSWER_PATIENCE
    ) -> Flow[jobs_pb2.JobRecord]:
        request = jobs_pb2.GetJobRequest(job_id=job_id)
        record: jobs_pb2.JobRecord
        record = yield from _call(connection, lambda on: on.jobs.GetJob, request, deadline, patience)
        return record

    def _find(self, job_id: str, deadline: float | None) -> Flow[tuple[Connection, jobs_pb2.JobRecord]]:
        worst: SpexdError | None = None
        for connection in (yield from self._servers()):
            try:
                return connection, (yield from self._record(connection, job_id, deadline))
            except SpexdError as error:
                # A server that cannot answer may have the job. Any other error says more than NotFound.
                if worst is None or isinstance(worst, NotFoundError) or isinstance(error, UnavailableError):
                    worst = error
        assert worst is not None
        raise worst

    def _find_patiently(self, job_id: str, deadline: float | None) -> Flow[tuple[Connection, jobs_pb2.JobRecord]]:
        silent = (UnavailableError, DeadlineExceededError)
        return (yield from self._patiently(lambda: self._find(job_id, deadline), silent, deadline))

    def _patiently(self, flow: Callable[[], Flow[T]], silent: Any, deadline: float | None) -> Flow[T]:
        """Repeats a flow if a server does not answer, as often as the policy says."""
        pauses = Pauses(self._retry, deadline)
        for _ in range(self._retry.unavailable_attempts - 1):
            try:
                return (yield from flow())
            except silent as error:
                wait = pauses.after(error)
            yield Sleep(wait)
        return (yield from flow())

    def _jobs_of(self, connection: Connection, deadline: float | None) -> Flow[list[jobs_pb2.JobRecord]]:
        request = jobs_pb2.ListJobsRequest(page_size=_JOBS_OF_A_PAGE)
        pages = yield from _pages(connection, lambda on: on.jobs.ListJobs, request, deadline)
        return [record for page in pages for record in page.jobs]

    def _is_unknown(self, connection: Connection, request_id: str, deadline: float | None) -> Flow[bool]:
        try:
            records = yield from self._jobs_of(connection, deadline)
        except SpexdError:
            return False
        return all(record.request_id != request_id for record in records)

    def _check_health(
        self, connection: Connection, servers: Sequence[Connection], deadline: float | None
    ) -> Flow[None]:
        """Raises UnavailableError if one of several servers takes no jobs."""
        if len(servers) == 1:
            return
        try:
            left = time_left(deadline, self._retry.health_patience)
            with connection.services() as on:
                connection.check_health((yield Call(on.health, b"", left, connection.metadata)))
        except grpc.RpcError as error:
            connection.check_health_error(error)


def _addresses(servers: Sequence[Connection]) -> list[str]:
    return [server.address for server in servers]


def _call(
    connection: Connection,
    method: Method,
    request: Any,
    deadline: float | None = None,
    patience: float = ANSWER_PATIENCE,
) -> Flow[Any]:
    try:
        with connection.services() as on:
            return (yield Call(method(on), request, time_left(deadline, patience), connection.metadata))
    except grpc.RpcError as error:
        raise connection.error_of(error) from error


def _pages(connection: Connection, method: Method, request: Any, deadline: float | None) -> Flow[list[Any]]:
    pages = []
    while True:
        pages.append((yield from _call(connection, method, request, deadline)))
        request.page_token = pages[-1].next_page_token
        if not request.page_token:
            return pages


def _error_of(connection: Connection, error: Exception) -> SpexdError:
    return connection.error_of(error) if isinstance(error, grpc.RpcError) else error  # type: ignore[return-value]
