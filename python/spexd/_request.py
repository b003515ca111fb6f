"""What goes to a server: a job, as its header and the bytes of its inputs."""

from __future__ import annotations

import dataclasses
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from spexd import _native
from spexd._job import OPTIONS, Arrays, Path, Spec, check_spec
from spexd._products import Templates, TemplatesLike
from spexd.engine import Psf, PsfLike
from spexd.errors import InternalError, InvalidArgumentError, NotFoundError, PermissionDeniedError, SpexdError
from spexd.v1 import extraction_pb2 as pb

_CHUNK = 1 << 20
_HASH = "sha256:"

Pieces = Callable[[], Iterator[bytes]]


@dataclasses.dataclass
class RemoteJob:
    """A job's header, the names of its inputs for the frame's header, and what is uploaded."""

    header: pb.JobHeader
    image_name: str
    psf_name: str | None  # None: the server's own
    trace_reference_name: str | None = None  # None: the server's own
    uploads: list[tuple[pb.Input, Pieces]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class AskedProducts:
    """The products that a job asks for."""

    sky: bool = False
    redshifts: bool = False
    velocities: TemplatesLike | None = None  # the templates
    fiberflat: Path | None = None

    def add_to(self, job: RemoteJob, upload: bool) -> None:
        """Asks for them. InvalidArgumentError, NotFoundError, PermissionDeniedError: an input that is not there."""
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
                _add_content(job, number, source, _name_of(name, path), upload)


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
    """``image``: the path, or the name of the arrays, which are always uploaded."""
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
        _add_file(job, pb.INPUT_IMAGE, job.header.image, job.image_name, upload)
    if psf_name.startswith(_HASH):
        job.header.psf.psf_hash = psf_name[len(_HASH) :]
        job.psf_name = None
    else:
        _add_file(job, pb.INPUT_PSF, job.header.psf, psf_name, upload)
    if fibermap is not None:
        _add_file(job, pb.INPUT_FIBERMAP, job.header.fibermap, os.fspath(fibermap), upload)
    if trace_reference is not None:
        name = _name_of("trace_reference", trace_reference)
        if _add_content(job, pb.INPUT_TRACE_REFERENCE, job.header.trace_reference, name, upload):
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

    job.uploads.append((pb.INPUT_IMAGE, pieces))


def _name_of(option: str, path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgumentError(f"{option} is a {type(path).__name__}, must be a path or 'sha256:HASH'")
    return os.fspath(path)


def _add_content(job: RemoteJob, number: pb.Input, source: pb.InputSource, name: str, upload: bool) -> bool:
    """Adds a file, or what the server knows by its hash. Whether it is a file."""
    if name.startswith(_HASH):
        source.content_hash = name[len(_HASH) :]
        return False
    _add_file(job, number, source, name, upload)
    return True


def _add_file(job: RemoteJob, number: pb.Input, source: pb.InputSource, path: str, upload: bool) -> None:
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

    job.uploads.append((number, pieces))


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
    """The messages of one call. gRPC hides what its source of messages raises: this ends instead, and keeps the error.
    The server does not take a job whose input is incomplete."""

    def __init__(self, job: RemoteJob, kind: Any, header: Any) -> None:
        self._messages = self._make(job, kind, header)
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

    def _make(self, job: RemoteJob, kind: Any, header: Any) -> Iterator[Any]:
        yield kind(header=header)
        for number, pieces in job.uploads:
            offset = crc = 0
            for piece in pieces():
                yield kind(chunk=pb.InputChunk(input=number, offset=offset, payload=piece))
                offset += len(piece)
                crc = _native.crc32c(piece, crc)
            yield kind(end=pb.InputEnd(input=number, crc32c=crc))
        self.complete = True
