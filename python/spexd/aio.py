"""The client for asyncio. Needs grpcio and protobuf."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio

from spexd._calls import Directory, Submission, Submitted, analysis_of, deadline_of, job_of, servers_of
from spexd._events import Bundle
from spexd._flows import Flow, Flows, LookUp, Next, Sleep, Step
from spexd._job import Path, Progress, progress_of
from spexd._products import TemplatesLike
from spexd._request import Sending
from spexd._retry import RetryPolicy
from spexd._spectra import Analysis
from spexd.engine import PsfLike
from spexd.errors import UnavailableError
from spexd.frame import Frame
from spexd.v1 import extraction_pb2, jobs_pb2, registry_pb2

T = TypeVar("T")


class AsyncStream:
    """The bundles of a job as they finish, in any order; then ``await stream.frame()``. Closing the stream early
    stops the job on the server, unless it is detached."""

    def __init__(self, flow: Flow[Frame]) -> None:
        self._result: list[Frame] = []
        self._steps = _drive(flow, self._result)

    def __aiter__(self) -> AsyncIterator[Bundle]:
        return self

    async def __anext__(self) -> Bundle:
        return await self._steps.__anext__()

    async def frame(self) -> Frame:
        """Returns the whole frame; waits for the remaining bundles."""
        async for _ in self:
            pass
        if not self._result:
            raise UnavailableError("the stream ended before its frame was whole")
        return self._result[0]

    async def aclose(self) -> None:
        """Ends the call."""
        await self._steps.aclose()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class AsyncClient:
    """A client of spexd for one event loop. Calls and results are those of :class:`spexd.Client`. Cancelling a task
    ends its call and its job, unless the job is detached. Files are read in threads."""

    def __init__(
        self,
        address: str | None = None,
        *,
        tls_ca: str | None = None,
        tls_cert: str | None = None,
        tls_key: str | None = None,
        token_file: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        """Arguments are those of :class:`spexd.Client`. Must be made in a running event loop. Names are looked up
        now, and again for each call in a thread."""
        servers = servers_of(address, tls_ca, tls_cert, tls_key, token_file)
        self._directory = Directory(servers, grpc.aio)
        self._flows = Flows(self._directory, retry if retry is not None else RetryPolicy())

    async def close(self) -> None:
        """Closes the connections."""
        for channel in self._directory.channels_to_close():
            await channel.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def extract(
        self,
        image: Any,
        ivar: Any = None,
        mask: Any = None,
        psf: PsfLike | None = None,
        *,
        timeout: float | None = None,
        progress: Progress = None,
        **options: Any,
    ) -> Frame:
        """See :meth:`spexd.Client.extract`."""
        return await _finish(self.stream(image, ivar, mask, psf, timeout=timeout, **options), progress)

    def stream(
        self,
        image: Any,
        ivar: Any = None,
        mask: Any = None,
        psf: PsfLike | None = None,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> AsyncStream:
        """See :meth:`spexd.Client.stream`; used with ``async with`` and ``async for``."""
        return AsyncStream(self._flows.run(job_of(image, ivar, mask, psf, options), deadline_of(timeout)))

    async def submit(
        self,
        image: Any,
        ivar: Any = None,
        mask: Any = None,
        psf: PsfLike | None = None,
        *,
        request_id: str | None = None,
        keep: int = 0,
        deadline: int = 0,
        timeout: float | None = None,
        **options: Any,
    ) -> Submitted:
        """See :meth:`spexd.Client.submit`."""
        submission = Submission(job_of(image, ivar, mask, psf, options), request_id, keep, deadline)
        return await _result(self._flows.submit(submission, deadline_of(timeout)))

    async def watch(self, job_id: str, *, timeout: float | None = None, progress: Progress = None) -> Frame:
        """See :meth:`spexd.Client.watch`."""
        return await _finish(self.stream_job(job_id, timeout=timeout), progress)

    def stream_job(self, job_id: str, *, timeout: float | None = None) -> AsyncStream:
        """See :meth:`spexd.Client.stream_job`."""
        return AsyncStream(self._flows.watch(job_id, deadline_of(timeout)))

    async def ack(self, frame: Frame) -> None:
        """See :meth:`spexd.Client.ack`."""
        await _result(self._flows.ack(frame))

    async def analyse(
        self,
        spectra: Path | Submitted | Sequence[Path | Submitted],
        templates: TemplatesLike | None = None,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> Analysis:
        """See :meth:`spexd.Client.analyse`."""
        return await _result(self._flows.analyse(analysis_of(spectra, templates, options), deadline_of(timeout)))

    async def job(self, job_id: str) -> jobs_pb2.JobRecord:
        """See :meth:`spexd.Client.job`."""
        return await _result(self._flows.job(job_id))

    async def jobs(self) -> list[jobs_pb2.JobRecord]:
        """See :meth:`spexd.Client.jobs`."""
        return await _result(self._flows.jobs())

    async def cancel(self, job_id: str) -> jobs_pb2.JobRecord:
        """See :meth:`spexd.Client.cancel`."""
        return await _result(self._flows.cancel(job_id))

    async def capabilities(self) -> list[extraction_pb2.Capabilities]:
        """See :meth:`spexd.Client.capabilities`."""
        return await _result(self._flows.capabilities())

    async def psfs(self) -> list[registry_pb2.PsfInfo]:
        """See :meth:`spexd.Client.psfs`."""
        return await _result(self._flows.psfs())



async def _finish(stream: AsyncStream, progress: Progress) -> Frame:
    with progress_of(progress) as report:
        async with stream:
            async for bundle in stream:
                if report is not None:
                    report(bundle.done, bundle.total)
            return await stream.frame()


async def _drive(flow: Flow[T], result: list[T]) -> AsyncGenerator[Bundle, None]:
    """Carries out a flow's steps in this event loop, yields its bundles and puts its result into ``result``. Closing
    it ends the flow."""
    answer: Any = None
    failure: Exception | None = None
    try:
        while True:
            try:
                step = flow.send(answer) if failure is None else flow.throw(failure)
            except StopIteration as end:
                result.append(end.value)
                return
            answer = failure = None
            if isinstance(step, Bundle):
                yield step
                continue
            try:
                answer = await _carry_out(step)
            except grpc.RpcError as error:
                failure = error
    finally:
        flow.close()


async def _carry_out(step: Step) -> Any:
    if isinstance(step, Sleep):
        return await asyncio.sleep(step.seconds)
    if isinstance(step, LookUp):
        return await asyncio.to_thread(step.look_up)
    if isinstance(step, Next):
        event = await step.call.read()
        return None if event is grpc.aio.EOF else event
    if isinstance(step.request, Sending):
        call = step.method(timeout=step.timeout, metadata=step.metadata)
        feeding = asyncio.create_task(_feed(call, step.request))
        call.add_done_callback(lambda _: feeding.cancel())
    else:
        call = step.method(step.request, timeout=step.timeout, metadata=step.metadata)
    return call if step.streams else await call


async def _feed(call: Any, sending: Sending) -> None:
    """Writes the messages of a call. Each is made in a thread, because making it reads files. gRPC's own feeding
    from an iterator would cancel a call that ends meanwhile, and so hide why it ended."""
    with contextlib.suppress(Exception):  # writing to a call that has ended fails; its reader learns why it ended
        while (message := await asyncio.to_thread(next, sending, None)) is not None:
            await call.write(message)
        await call.done_writing()


async def _result(flow: Flow[T]) -> T:
    """Returns the result of a flow without bundles."""
    result: list[T] = []
    async for _ in _drive(flow, result):
        raise AssertionError("the flow has bundles")
    return result[0]
