"""Requests to a server: a job or an analysis, as its header and the bytes of its inputs."""

from __future__ import annotations

import dataclasses
import operator
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from spexd import _native
from spexd._job import OPTIONS, Arrays, Path, Spec, check_spec
from spexd._products import Templates, TemplatesLike
from spexd._spectra import ranges_of
from spexd.engine import Psf, PsfLike
from spexd.errors import InternalError, InvalidArgumentError, NotFoundError, PermissionDeniedError, SpexdError
from spexd.v1 import analysis_pb2
from spexd.v1 import extraction_pb2 as pb

_CHUNK = 1 << 20
_HASH = "sha256:"
_JOB = "job:"
_MAX_DEGREE = 20
_MAX_HEADER_BYTES = (4 << 20) - 1000  # of a message, less its framing

Pieces = Callable[[], Iterator[bytes]]


@dataclasses.dataclass(frozen=True)
class Upload:
    """The bytes of an input, sent after the header."""

    number: pb.Input
    pieces: Pieces
    index: int = 0  # which of several inputs with this number


@dataclasses.dataclass
class RemoteJob:
    """A job's header, the names of its inputs for the frame's header, and its uploads."""

    header: pb.JobHeader
    image_name: str
    psf_name: str | None  # None: the server's own name
    trace_reference_name: str | None = None  # None: the server's own name
    uploads: list[Upload] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class RemoteAnalysis:
    """The header of an analysis, and its uploads."""

    header: analysis_pb2.AnalysisHeader
    uploads: list[Upload] = dataclasses.field(default_factory=list)

    @property
    def files(self) -> list[int]:
        """Numbers of the files that are asked for."""
        asked = {
            pb.ANALYSIS_FILE_VELOCITIES: self.header.HasField("templates"),
            pb.ANALYSIS_FILE_MODELS: self.header.models,
            pb.ANALYSIS_FILE_REDSHIFTS: self.header.lines,
        }
        return [number for number, wanted in asked.items() if wanted]

    @property
    def job_ids(self) -> list[str]:
        """The detached jobs whose frames are analysed."""
        return [source.job_id for source in self.header.spectra if source.HasField("job_id")]


@dataclasses.dataclass(frozen=True)
class AskedAnalysis:
    """The options of :meth:`spexd.Client.analyse`."""

    redshifts: bool = False
    models: bool = False
    per_target: bool = False
    degree: int = 6
    exclude: Sequence[tuple[float, float]] | None = None
    arms: Iterable[str] = ()
    sky_subtracted: bool = False
    fiberflats: Path | Sequence[Path | None] | None = None
    targetids: Sequence[int] | np.ndarray | None = None
    min_snr: float | None = None
    min_exposure: int | None = None
    max_exposure: int | None = None
    objtypes: str | Iterable[str] = ()
    upload: bool = False
    priority: int = 0

    def job(self, spectra: Sequence[Any], templates: TemplatesLike | None) -> RemoteAnalysis:
        """Returns the analysis as it is sent. ``spectra``: paths, and "job:ID"."""
        if templates is None and not self.redshifts:
            raise InvalidArgumentError("nothing is asked for: give templates, redshifts=True or both")
        if templates is None and self.models:
            raise InvalidArgumentError("models is True, but without templates there are none")
        if not 0 <= self.degree <= _MAX_DEGREE:
            raise InvalidArgumentError(f"degree is {self.degree}, must be 0 to {_MAX_DEGREE}")
        analysis = RemoteAnalysis(analysis_pb2.AnalysisHeader())
        header = analysis.header
        header.models, header.lines = bool(self.models), bool(self.redshifts)
        header.per_target, header.sky_subtracted = bool(self.per_target), bool(self.sky_subtracted)
        header.coefficients, header.priority = operator.index(self.degree) + 1, operator.index(self.priority)
        header.arms.extend(self.arms)
        if self.exclude is not None:
            header.exclude.SetInParent()  # the list may be empty
            for first, last in ranges_of(self.exclude):
                header.exclude.first.append(first)
                header.exclude.last.append(last)
        self._select(header.rows)
        self._add_spectra(analysis, spectra)
        if templates is not None:
            path = templates.name if isinstance(templates, Templates) else templates
            name = _name_of("templates", path)
            _add_content(analysis.uploads, pb.INPUT_TEMPLATES, header.templates, name, self.upload)
        if header.ByteSize() > _MAX_HEADER_BYTES:
            raise InvalidArgumentError(
                f"targetids has {len(header.rows.target_ids.ids)} numbers, more than one message holds; analyse all "
                "rows, and choose among those of the results"
            )
        return analysis

    def _select(self, rows: analysis_pb2.RowFilter) -> None:
        if self.targetids is not None:
            ids = np.asarray(self.targetids)
            if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size > 0) or (ids.size > 0 and ids.max() >= 2**63):
                raise InvalidArgumentError(
                    f"targetids has shape {ids.shape} and type {ids.dtype}, must be whole numbers of 64 bits"
                )
            rows.target_ids.SetInParent()  # the list may be empty
            rows.target_ids.ids.extend(int(number) for number in ids)
        if self.min_snr is not None:
            rows.min_snr = float(self.min_snr)
        if self.min_exposure is not None:
            rows.min_exposure = operator.index(self.min_exposure)
        if self.max_exposure is not None:
            rows.max_exposure = operator.index(self.max_exposure)
        rows.object_types.extend([self.objtypes] if isinstance(self.objtypes, str) else self.objtypes)

    def _add_spectra(self, analysis: RemoteAnalysis, spectra: Sequence[Any]) -> None:
        flats: Any = self.fiberflats
        if flats is None or isinstance(flats, (str, os.PathLike)):
            flats = [flats] * len(spectra)
        if len(flats) != len(spectra):
            raise InvalidArgumentError(
                f"fiberflats has {len(flats)} files, must have one for each of the {len(spectra)} frames, or None"
            )
        if not spectra:
            raise InvalidArgumentError("spectra: there are none")
        for index, (given, flat) in enumerate(zip(spectra, flats, strict=True)):
            source = analysis.header.spectra.add()
            name = _name_of("spectra", given, "'job:ID'")
            if name.startswith(_JOB):
                source.job_id = name[len(_JOB) :]
            else:
                _add_file(analysis.uploads, pb.INPUT_SPECTRA, source, name, self.upload, index)
            if flat is not None:
                name = _name_of("fiberflats", flat)
                _add_content(analysis.uploads, pb.INPUT_FIBERFLAT, source.fiberflat, name, self.upload, index)


@dataclasses.dataclass(frozen=True)
class AskedProducts:
    """The products that a job asks for."""

    sky: bool = False
    redshifts: bool = False
    velocities: TemplatesLike | None = None  # the templates
    fiberflat: Path | None = None

    def add_to(self, job: RemoteJob, upload: bool) -> None:
        """Adds the request to a job. InvalidArgumentError, NotFoundError, PermissionDeniedError: an input cannot be
        used or read."""
        asked = self.sky or self.redshifts or self.velocities is not None
        if not asked and self.fiberflat is not None:
            raise InvalidArgumentError("fiberflat: no product is asked for")
        if not asked:
            return
        request = job.header.products
        request.sky, request.lines = bool(self.sky), bool(self.redshifts)
        templates = self.velocities.name if isinstance(self.velocities, Templates) else self.velocities
        for number, name, path, source in (
            (pb.INPUT_TEMPLATES, "velocities", templates, request.templates),
            (pb.INPUT_FIBERFLAT, "fiberflat", self.fiberflat, request.fiberflat),
        ):
            if path is not None:
                _add_content(job.uploads, number, source, _name_of(name, path), upload)


def make_job(
    spec: Spec,
    arrays: Arrays | None,
    image: Any,
    psf: PsfLike | None,
    fibermap: Path | None,
    trace_reference: Path | None = None,
    *,
    upload: bool,
    products: AskedProducts,
) -> RemoteJob:
    """Makes a job. ``image``: its path, or the name of arrays, which are always uploaded."""
    if psf is None:
        raise InvalidArgumentError("psf is missing: give a path, a spexd.Psf or 'sha256:HASH'")
    if isinstance(psf, Psf) and not psf.content_hash:
        raise InvalidArgumentError(
            "psf was shifted, and is in no file that a server could read; write it with spexd.write_shifted_psf"
        )
    check_spec(spec, trace_reference)
    psf_name = psf.name if isinstance(psf, Psf) else os.fspath(psf)
    job = RemoteJob(_header(spec), os.fspath(image), psf_name)
    if arrays is not None:
        _add_arrays(job, arrays)
    else:
        _add_file(job.uploads, pb.INPUT_IMAGE, job.header.image, job.image_name, upload)
    if psf_name.startswith(_HASH):
        job.header.psf.psf_hash = psf_name[len(_HASH) :]
        job.psf_name = None
    else:
        _add_file(job.uploads, pb.INPUT_PSF, job.header.psf, psf_name, upload)
    if fibermap is not None:
        _add_file(job.uploads, pb.INPUT_FIBERMAP, job.header.fibermap, os.fspath(fibermap), upload)
    if trace_reference is not None:
        name = _name_of("trace_reference", trace_reference)
        if _add_content(job.uploads, pb.INPUT_TRACE_REFERENCE, job.header.trace_reference, name, upload):
            job.trace_reference_name = name
    products.add_to(job, upload)
    return job


def _header(spec: Spec) -> pb.JobHeader:
    native, header = spec.native(), pb.JobHeader()
    for option in OPTIONS:
        value: Any = getattr(native, option.name)
        if value is None:
            continue
        if option.kind == "grid":
            header.grid.first, header.grid.step, header.grid.count = value.first, value.step, value.count
        elif option.kind == "axes":
            setattr(header, option.field, pb.TraceAxes.Value(f"TRACE_AXES_{value.upper()}"))
        elif option.kind == "degrees":
            if value != Spec.trace_degrees:
                header.trace_degrees.x_fibre, header.trace_degrees.x_wavelength = value[:2]
                header.trace_degrees.y_fibre, header.trace_degrees.y_wavelength = value[2:]
        else:
            setattr(header, option.field, not value if option.negated else value)
    return header


def _add_arrays(job: RemoteJob, arrays: Arrays) -> None:
    raw = job.header.image.raw
    raw.name = job.image_name
    raw.rows, raw.columns = arrays.pixels.shape
    raw.header_cards.extend(card.encode("latin-1") for card in arrays.cards)

    def pieces() -> Iterator[bytes]:
        mask: np.ndarray = arrays.mask if arrays.mask is not None else np.zeros(arrays.pixels.shape, np.int32)
        for plane in (arrays.pixels, arrays.ivar, mask):
            view = plane.data.cast("B")
            for offset in range(0, len(view), _CHUNK):
                yield bytes(view[offset : offset + _CHUNK])

    job.uploads.append(Upload(pb.INPUT_IMAGE, pieces))


def _name_of(option: str, path: Any, other: str = "'sha256:HASH'") -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgumentError(f"{option} is a {type(path).__name__}, must be a path or {other}")
    return os.fspath(path)


def _add_content(
    uploads: list[Upload], number: pb.Input, source: pb.InputSource, name: str, upload: bool, index: int = 0
) -> bool:
    """Adds a file, or an input that the server knows by its hash. Returns whether it is a file."""
    if name.startswith(_HASH):
        source.content_hash = name[len(_HASH) :]
        return False
    _add_file(uploads, number, source, name, upload, index)
    return True


def _add_file(
    uploads: list[Upload], number: pb.Input, source: Any, path: str, upload: bool, index: int = 0
) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{path!r} is no UTF-8 text: it cannot be sent to a server") from error
    if not upload:
        source.path = os.path.abspath(path)
        return
    with _open(path) as file:
        source.upload.bytes = os.fstat(file.fileno()).st_size
    source.upload.name = path

    def pieces() -> Iterator[bytes]:
        with _open(path) as file:
            while piece := file.read(_CHUNK):
                yield piece

    uploads.append(Upload(number, pieces, index))


def _open(path: str) -> Any:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InvalidArgumentError(f"{path}: not a regular file")
        return open(path, "rb")
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from error
    except PermissionError as error:
        raise PermissionDeniedError(f"{path}: {error.strerror}") from error
    except OSError as error:
        raise InvalidArgumentError(f"{path}: {error.strerror}") from error


class Sending:
    """The messages of one call. gRPC hides the exceptions of its source of messages, so this source ends instead and
    keeps the error. The server does not take a job whose input is incomplete."""

    def __init__(self, uploads: Sequence[Upload], kind: Any, header: Any) -> None:
        self._messages = self._make(uploads, kind, header)
        self.error: SpexdError | None = None
        self.complete = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._messages)
        except SpexdError as error:
            self.error = error
        except OSError as error:
            self.error = InternalError(f"an input cannot be read: {error}")
        raise StopIteration

    def _make(self, uploads: Sequence[Upload], kind: Any, header: Any) -> Iterator[Any]:
        yield kind(header=header)
        for upload in uploads:
            which: dict[str, Any] = {"input": upload.number, "index": upload.index}
            offset = crc = 0
            for piece in upload.pieces():
                yield kind(chunk=pb.InputChunk(**which, offset=offset, payload=piece))
                offset += len(piece)
                crc = _native.crc32c(piece, crc)
            yield kind(end=pb.InputEnd(**which, crc32c=crc))
        self.complete = True
