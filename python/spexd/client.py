"""Jobs on a spexd server, or on the first of several servers that takes them. Needs grpcio and protobuf."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, TypeVar

import grpc

from spexd._calls import Directory, Submission, Submitted, analysis_of, deadline_of, job_of, servers_of
from spexd._events import Bundle
from spexd._flows import Flow, Flows, LookUp, Next, Sleep, Step
from spexd._job import Path, Progress, progress_of
from spexd._products import TemplatesLike
from spexd._retry import RetryPolicy
from spexd._spectra import Analysis
from spexd.engine import PsfLike
from spexd.errors import UnavailableError
from spexd.frame import Frame
from spexd.v1 import extraction_pb2, jobs_pb2, registry_pb2

T = TypeVar("T")


class Stream:
    """The bundles of a job as they finish, in any order; then ``frame``. Closing the stream early stops the job on
    the server, unless it is detached."""

    def __init__(self, flow: Flow[Frame]) -> None:
        self._steps = self._drive(flow)
        self._frame: Frame | None = None

    def __iter__(self) -> Iterator[Bundle]:
        return self

    def __next__(self) -> Bundle:
        return next(self._steps)

    @property
    def frame(self) -> Frame:
        """The whole frame; waits for the remaining bundles."""
        for _ in self:
            pass
        if self._frame is None:
            raise UnavailableError("the stream ended before its frame was whole")
        return self._frame

    def _drive(self, flow: Flow[Frame]) -> Iterator[Bundle]:
        self._frame = yield from _drive(flow)

    def close(self) -> None:
        """Ends the call."""
        self._steps.close()  # type: ignore[attr-defined]

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Client:
    """A client of spexd. Threads may share it. Results equal those of ``spexd.extract``, to the bit."""

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
        """Connects when it is first needed. The environment replaces arguments that are None, as with ``spex``.

        Args:
            address: "host:port", "unix:/path", "dns:///name:port" for all addresses of a name, or several of these,
                separated by commas; default: SPEXD_SERVER. Names are looked up now, and again for each call.
            tls_ca: PEM file with the authorities that signed the server's certificate; switches TLS on; default:
                SPEXD_TLS_CA.
            tls_cert: PEM file with the client's certificate; default: SPEXD_TLS_CERT.
            tls_key: PEM file with its key; default: SPEXD_TLS_KEY.
            token_file: file with the token to send; default: SPEXD_TOKEN_FILE.
            retry: policy for trying refused calls again.
        """
        servers = servers_of(address, tls_ca, tls_cert, tls_key, token_file)
        self._directory = Directory(servers, grpc, _close)
        self._flows = Flows(self._directory, retry if retry is not None else RetryPolicy())

    def close(self) -> None:
        """Closes the connections."""
        for channel in self._directory.channels_to_close():
            channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def extract(
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
        """Extracts the spectra of an image on a server. The arguments are those of :func:`spexd.extract` and the
        following.

        Args:
            upload: whether to send the files' bytes; default: their absolute paths are sent, which the server must see
                and allow. Arrays are always sent.
            psf: also "sha256:HASH" of a PSF that the server holds.
            trace_reference: also "sha256:HASH" of a reference that the server holds.
            priority: -10 to 10; jobs of higher priority go first.
            sky, redshifts: whether the server also makes these products of the spectra, as :meth:`spexd.Frame.sky` and
                :meth:`spexd.Frame.redshifts` do. They are in ``frame.products``.
            velocities: path of a library of templates, or a :class:`spexd.Templates`, or "sha256:HASH" of one that the
                server holds: makes velocities of stars, as :meth:`spexd.Frame.velocities` does.
            fiberflat: path of a file as :meth:`spexd.Frame.sky` takes it, or "sha256:HASH" of one that the server
                holds; divides the spectra before products are made.

        A product that cannot be made affects neither the frame nor the other products: ``frame.products.sky`` then
        raises its error.
        """
        return self._finish(self.stream(image, ivar, mask, psf, timeout=timeout, **options), progress)

    def stream(
        self,
        image: Any,
        ivar: Any = None,
        mask: Any = None,
        psf: PsfLike | None = None,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> Stream:
        """Does the same job as :meth:`extract`, and yields bundles as they finish. Checksums are verified. A refused
        job is tried again, but not after the first bundle has arrived::

            with client.stream(path, psf=psf) as stream:
                for bundle in stream:
                    look_at(bundle.fibres, bundle.flux)
            frame = stream.frame
        """
        job = job_of(image, ivar, mask, psf, options)
        return Stream(self._flows.run(job, deadline_of(timeout)))

    def submit(
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
        """Submits a job that the server runs to its end, whatever happens to this process; see :meth:`watch`.

        Args:
            request_id: 1 to 128 characters. A call with the same id returns the same job; default: each call makes a
                new job.
            keep: seconds for which results are kept after the job's end; 0: the server's default.
            deadline: whole seconds after submission; a job that has not ended by then, waiting or running, ends with
                DeadlineExceededError; 0: none.
        """
        submission = Submission(job_of(image, ivar, mask, psf, options), request_id, keep, deadline)
        return _result(self._flows.submit(submission, deadline_of(timeout)))

    def watch(self, job_id: str, *, timeout: float | None = None, progress: Progress = None) -> Frame:
        """Waits for a detached job and returns its frame, with the products that it was submitted with. Continues
        after broken connections and restarts of the server. The server keeps the results until :meth:`ack`."""
        return self._finish(self.stream_job(job_id, timeout=timeout), progress)

    def stream_job(self, job_id: str, *, timeout: float | None = None) -> Stream:
        """Does the same as :meth:`watch`, and yields each bundle once."""
        return Stream(self._flows.watch(job_id, deadline_of(timeout)))

    def ack(self, frame: Frame) -> None:
        """Lets the server remove the results of a frame that :meth:`watch` returned. Call it once they are stored
        safely."""
        _result(self._flows.ack(frame))

    def analyse(
        self,
        spectra: Path | Submitted | Sequence[Path | Submitted],
        templates: TemplatesLike | None = None,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> Analysis:
        """Fits velocities and redshifts to existing spectra on a server, each to all arms together. The results are
        those of :meth:`Spectra.velocities` and :meth:`Spectra.redshifts`, to the bit if the server's processors have
        the same instruction set as this one, and the files of ``spex analyse``::

            analysis = client.analyse("coadd.fits", "templates.fits", redshifts=True, upload=True)
            analysis.velocities["VRAD"], analysis.redshifts["Z"]

        Args:
            spectra: path of a file of spectra, as :func:`spexd.read_spectra` takes it; or at most 16 frames of one
                exposure, as :class:`spexd.Spectra` takes them. Each frame is the path of its file, or a detached job
                that has ended well and is not acknowledged: what :meth:`submit` returned, or "job:ID". The job's frame
                need not be fetched first; if the job made the sky, it is subtracted. All jobs must be on one server.
            templates: asks for velocities: path of a library of templates, a :class:`spexd.Templates`, or "sha256:HASH"
                of one that the server holds.
            redshifts: whether to find redshifts.
            models: whether to also return the models of the velocities.
            per_target, degree, exclude: see :meth:`Spectra.velocities`.
            arms: letters of the arms to analyse, such as "BR"; default: all. A combined arm is taken as a whole or not
                at all.
            sky_subtracted: whether all frames are sky-subtracted, whatever they are called.
            fiberflats: for frames that contain the sky: path of the file that divides each of them first, or
                "sha256:HASH"; or a list with one of these or None for each frame.
            targetids: TARGETIDs whose rows are analysed; default: all. This and the following options select among
                :attr:`Spectra.selected_rows`; a row must satisfy all of them.
            min_snr: lower limit, exclusive, of the median S/N of a bin in the best arm.
            min_exposure, max_exposure: EXPID must be above the first and at most the second.
            objtypes: a regular expression, or several, one of which must match the beginning of the name of a bit that
                is set in DESI_TARGET, such as ``MWS_ANY`` or ``STD_``.
            upload: whether to send the files' bytes; default: their absolute paths are sent, which the server must see
                and allow.
            priority: -10 to 10; jobs of higher priority go first.
            timeout: seconds.

        Raises:
            InvalidArgumentError: an option, file or HDU is wrong.
            NotFoundError: the server does not see a path, or a job does not exist.
            FailedPreconditionError: a job has not ended or has failed, jobs are on several servers, or the server does
                not hold a fiberflat with the given hash.

        A file that cannot be made, for example because the server does not hold the templates of a hash, affects
        neither the other files nor the call: accessing its table raises its error.
        """
        return _result(self._flows.analyse(analysis_of(spectra, templates, options), deadline_of(timeout)))

    def job(self, job_id: str) -> jobs_pb2.JobRecord:
        """Returns the record of a detached job, on whichever server has it."""
        return _result(self._flows.job(job_id))

    def jobs(self) -> list[jobs_pb2.JobRecord]:
        """Returns the records of the detached jobs of all servers, newest first for each."""
        return _result(self._flows.jobs())

    def cancel(self, job_id: str) -> jobs_pb2.JobRecord:
        """Stops a detached job that has not ended, and returns its record. Its results so far are removed."""
        return _result(self._flows.cancel(job_id))

    def capabilities(self) -> list[extraction_pb2.Capabilities]:
        """Returns each server's capabilities: what it is and what it can do."""
        return _result(self._flows.capabilities())

    def psfs(self) -> list[registry_pb2.PsfInfo]:
        """Returns the PSFs that the servers keep warm, most recently used first for each."""
        return _result(self._flows.psfs())

    @staticmethod
    def _finish(stream: Stream, progress: Progress) -> Frame:
        with stream, progress_of(progress) as report:
            for bundle in stream:
                if report is not None:
                    report(bundle.done, bundle.total)
            return stream.frame


def _drive(flow: Flow[T]) -> Generator[Bundle, None, T]:
    """Carries out a flow's steps in this thread, and yields its bundles. Closing it ends the flow."""
    answer: Any = None
    failure: Exception | None = None
    try:
        while True:
            try:
                step = flow.send(answer) if failure is None else flow.throw(failure)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = failure = None
            if isinstance(step, Bundle):
                yield step
                continue
            try:
                answer = _carry_out(step)
            except grpc.RpcError as error:
                failure = error
    finally:
        flow.close()


def _close(channel: grpc.Channel) -> None:
    channel.close()


def _carry_out(step: Step) -> Any:
    if isinstance(step, Sleep):
        return time.sleep(step.seconds)
    if isinstance(step, LookUp):
        return step.look_up()
    if isinstance(step, Next):
        return next(step.call, None)
    return step.method(step.request, timeout=step.timeout, metadata=step.metadata)


def _result(flow: Flow[T]) -> T:
    """Returns the result of a flow without bundles."""
    steps = _drive(flow)
    try:
        next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("the flow has bundles")
