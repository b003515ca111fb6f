"""Assembles the events of a job into bundles and a frame, or into an analysis, and checks all of them."""

from __future__ import annotations

import dataclasses

import numpy as np

from spexd import _native
from spexd._product_parts import FileParts, ProductParts, asked_of
from spexd._request import RemoteAnalysis, RemoteJob
from spexd._spectra import Analysis
from spexd.errors import DataLossError
from spexd.frame import ALLBADPIX, BAD2DFIT, NODATA, SOMEBADPIX, Frame, JobInfo, Source
from spexd.v1 import extraction_pb2 as pb

_DIAGONALS = 11
_MAX_BINS = 1_000_000
_MAX_FIBRES = 20_000
_MAX_CCD_SIDE = 32_768
_MAX_SHIFT_TERMS = 6  # in fibre, and in wavelength
_MAX_FRAME_BINS = 1 << 27  # 60 bytes are allocated for each

_PLANES = {
    "flux": "<f4",
    "ivar": "<f4",
    "mask": "<u4",
    "resolution": "<f4",
    "chi2pix": "<f4",
}  # in the checksum's order


@dataclasses.dataclass(frozen=True)
class Bundle:
    """Some fibres whose spectra are complete. The arrays are views into the frame that is being assembled: [fibre,
    bin]; resolution [fibre, 11, bin]. :class:`spexd.Frame` describes their units."""

    index: int
    fibres: range  #: indices in the PSF
    wave: np.ndarray  #: [bin], Angstrom
    flux: np.ndarray
    ivar: np.ndarray
    mask: np.ndarray  #: without BAD2DFIT, which depends on the whole frame
    resolution: np.ndarray
    chi2pix: np.ndarray
    error: str  #: why the bundle failed, whose bins are then NODATA; empty if it did not
    done: int  #: bundles that are there, this one included
    total: int


@dataclasses.dataclass
class _Open:
    """A bundle whose parts have not all arrived."""

    fibres: range
    seen: int = 0
    error: str = ""
    empty: bool = False
    first_column: int = 0
    model: np.ndarray | None = None
    model_rows: int = 0


def _damaged(what: str) -> DataLossError:
    return DataLossError(f"the server's answer is damaged: {what}")


class Assembler:
    """Assembles the events of one job, taken in order."""

    def __init__(self) -> None:
        self.accepted = False
        self.whole = False  # whether the summary has arrived
        self.done = 0
        self._job_id = ""
        self._info: pb.FrameInfo | None = None
        self._info_complete = False
        self._origin = _native.Origin()
        self._cards: list[str] = []
        self._table_cards: list[str] = []
        self._table_data = bytearray()
        self._planes: dict[str, np.ndarray] = {}
        self._open: dict[int, _Open] = {}
        self._models: dict[int, _Open] = {}
        self._bad2dfit: list[int] = []
        self._summary: pb.JobSummary | None = None
        self._products: ProductParts | None = None  # None until one has arrived

    @property
    def arrived(self) -> bool:
        """Whether any spectra have arrived."""
        return self.done > 0 or bool(self._open)

    def add(self, event: pb.ExtractEvent) -> Bundle | None:
        """Takes an event; returns the bundle that it completes, or None. DataLossError: the event is damaged or out
        of order."""
        if self.whole:
            raise _damaged("an event after the summary")
        kind = event.WhichOneof("event")
        if kind == "accepted":
            self.accepted, self._job_id = True, event.accepted.job_id
        elif kind == "frame_info":
            self._add_info(event.frame_info)
        elif kind in ("bundle", "model", "product", "summary"):
            if not self._info_complete:
                raise _damaged(f"a {kind} before the FrameInfo")
            if kind == "bundle":
                return self._add_part(event.bundle)
            if kind == "model":
                self._add_model(event.model)
            elif kind == "product":
                self._add_product(event.product)
            else:
                self._add_summary(event.summary)
        return None

    def _add_info(self, info: pb.FrameInfo) -> None:
        if self._info_complete:
            raise _damaged("a second FrameInfo")
        if self._info is None:
            self._begin(info)
        self._cards += [card.decode("latin-1") for card in info.image_cards]
        self._table_cards += [card.decode("latin-1") for card in info.fibermap_cards]
        self._table_data += info.fibermap_data
        if info.last:
            self._end_info()

    def _begin(self, info: pb.FrameInfo) -> None:
        bins, fibres = info.grid.count, info.fibre_count
        if not (
            1 <= bins <= _MAX_BINS
            and 1 <= fibres <= _MAX_FIBRES
            and bins * fibres <= _MAX_FRAME_BINS
            and info.first_fibre <= _MAX_FIBRES
            and max(info.model_rows, info.model_columns) <= _MAX_CCD_SIDE
        ):
            model = f"model {info.model_rows} x {info.model_columns}"
            raise _damaged(f"a frame of {fibres} fibres x {bins} bins, {model}")
        self._info, origin = info, self._origin
        origin.input_image, origin.input_psf = info.input_image, info.input_psf
        origin.original_psf = info.original_psf.decode("latin-1")
        if info.HasField("heliocentric_factor"):
            origin.heliocentric_factor = info.heliocentric_factor
        origin.psferr, origin.fine_grid_prior, origin.version = info.psferr, info.fine_grid_prior, info.version
        if info.HasField("trace_shifts"):
            origin.traces = _traces_of(info.trace_shifts, fibres)
        self._grid = _native.Grid(info.grid.first, info.grid.step, bins)
        self._wave = np.array(self._grid.values())

    def _end_info(self) -> None:
        info = self._info
        assert info is not None
        self._info_complete = True
        self._origin.image_cards = self._cards
        if info.has_fibermap:
            if info.fibermap_rows > _MAX_FIBRES or info.fibermap_rows * info.fibermap_row_bytes > len(
                self._table_data
            ):
                size = f"{info.fibermap_rows} rows x {info.fibermap_row_bytes} bytes in {len(self._table_data)} bytes"
                raise _damaged(f"a fibermap of {size}")
            table = _native.RawTable()
            table.cards, table.data = self._table_cards, bytes(self._table_data)
            table.rows, table.row_bytes = info.fibermap_rows, info.fibermap_row_bytes
            self._origin.fibermap = table
        fibres, bins = info.fibre_count, info.grid.count
        for name, dtype in _PLANES.items():
            shape = (fibres, _DIAGONALS, bins) if name == "resolution" else (fibres, bins)
            self._planes[name] = np.empty(shape, dtype)
        self._present = np.zeros(fibres, bool)

    def _add_part(self, part: pb.BundlePart) -> Bundle | None:
        self._check_part(part)
        fibres = range(part.bundle_first_fibre, part.bundle_first_fibre + part.bundle_fibre_count)
        bundle = self._open.setdefault(part.bundle, _Open(fibres))
        if bundle.seen == 0:
            bundle.fibres = fibres  # the model may have arrived first
        elif bundle.fibres != fibres:
            raise _damaged(f"bundle {part.bundle} changed its fibres")
        first = part.first_fibre - self._info.first_fibre  # type: ignore[union-attr]
        rows = slice(first, first + part.fibre_count)
        if self._present[rows].any():
            raise _damaged(f"fibres from {part.first_fibre} came twice")
        self._present[rows] = True
        for name, dtype in _PLANES.items():
            content = getattr(part, name)
            if content:
                plane = self._planes[name][rows]
                plane[...] = np.frombuffer(content, dtype).reshape(plane.shape)
        bundle.seen += part.fibre_count
        bundle.error = part.error or bundle.error
        bundle.empty = bundle.empty or not part.flux
        return self._close(part.bundle) if part.last else None

    def _check_part(self, part: pb.BundlePart) -> None:
        info = self._info
        assert info is not None
        name = f"bundle {part.bundle}, fibres from {part.first_fibre}"
        first, end = part.bundle_first_fibre, part.bundle_first_fibre + part.bundle_fibre_count
        if (
            part.bins != info.grid.count
            or part.fibre_count < 1
            or first < info.first_fibre
            or end > info.first_fibre + info.fibre_count
            or part.first_fibre < first
            or part.first_fibre + part.fibre_count > end
        ):
            raise _damaged(f"{name}: fibres or bins that are not the frame's")
        # A bundle that failed may omit its empty spectra.
        size = 0 if part.error and not part.flux else 4 * part.fibre_count * part.bins
        crc = 0
        for plane in _PLANES:
            content = getattr(part, plane)
            if len(content) != size * (_DIAGONALS if plane == "resolution" else 1):
                raise _damaged(f"{name}: arrays of the wrong size")
            crc = _native.crc32c(content, crc)
        if crc != part.crc32c:
            raise _damaged(f"{name}: checksum {crc:08x}, expected {part.crc32c:08x}")

    def _close(self, index: int) -> Bundle:
        info, bundle = self._info, self._open.pop(index)
        assert info is not None
        if bundle.seen != len(bundle.fibres):
            raise _damaged(f"bundle {index} ended after {bundle.seen} of its {len(bundle.fibres)} fibres")
        first = bundle.fibres.start - info.first_fibre
        planes = {name: plane[first : first + len(bundle.fibres)] for name, plane in self._planes.items()}
        if bundle.empty:
            for plane in planes.values():
                plane[...] = 0
            planes["mask"][...] = NODATA | SOMEBADPIX | ALLBADPIX
            planes["resolution"][:, _DIAGONALS // 2] = 1
        if bundle.model is not None:
            if bundle.model_rows != info.model_rows:
                raise _damaged(f"bundle {index} brought {bundle.model_rows} of {info.model_rows} rows of its model")
            self._models[index] = bundle
        self.done += 1
        return Bundle(
            index=index,
            fibres=bundle.fibres,
            wave=self._wave,
            flux=planes["flux"],
            ivar=planes["ivar"],
            mask=planes["mask"],
            resolution=planes["resolution"],
            chi2pix=planes["chi2pix"],
            error=bundle.error,
            done=self.done,
            total=info.bundles,
        )

    def _add_model(self, part: pb.ModelPart) -> None:
        info = self._info
        assert info is not None
        name, rows, columns = f"model of bundle {part.bundle}", part.row_count, part.column_count
        if (
            columns < 1
            or part.first_column + columns > info.model_columns
            or part.first_row + rows > info.model_rows
            or len(part.pixels) != 4 * rows * columns
        ):
            raise _damaged(f"{name}: rows or columns that are not the image's")
        if _native.crc32c(part.pixels) != part.crc32c:
            raise _damaged(f"{name}: wrong checksum")
        bundle = self._open.setdefault(part.bundle, _Open(range(0)))
        if bundle.model is None:
            bundle.first_column, bundle.model = part.first_column, np.zeros((info.model_rows, columns), "<f4")
        if (part.first_row, part.first_column, columns) != (
            bundle.model_rows,
            bundle.first_column,
            bundle.model.shape[1],
        ):
            raise _damaged(f"{name}: rows out of order")
        bundle.model[part.first_row : part.first_row + rows] = np.frombuffer(part.pixels, "<f4").reshape(rows, columns)
        bundle.model_rows += rows

    def _add_product(self, part: pb.ProductPart) -> None:
        info = self._info
        assert info is not None
        if not self._present.all() or self._open:
            raise _damaged("a product before all bundles")
        if part.code == 0 and (not info.has_fibermap or info.fibermap_rows != info.fibre_count):
            raise _damaged("a product of a frame without a fibermap of its fibres")
        if self._products is None:
            self._products = ProductParts(info.first_fibre, info.fibre_count, info.grid.count)
        self._products.add(part)

    def _add_summary(self, summary: pb.JobSummary) -> None:
        bins = len(self._wave) * len(self._present)
        if any(index >= bins for index in summary.bad2dfit):
            raise _damaged(f"bin {max(summary.bad2dfit)} in the summary, the frame has {bins}")
        self._bad2dfit += summary.bad2dfit
        if not summary.last:
            return
        scores = summary.scores
        columns = (scores.sum_counts, scores.median_counts, scores.median_snr)
        if summary.HasField("scores") and (
            len(scores.band) != 1 or any(len(column) != len(self._present) for column in columns)
        ):
            raise _damaged("scores that are not the frame's")
        fit = summary.fit
        if summary.HasField("fit") and any(
            len(column) != len(self._present) for column in (fit.fibre_median, fit.fibre_outliers)
        ):
            raise _damaged("a quality of the fit that is not the frame's")
        self.whole, self._summary = True, summary

    def finish(self, job: RemoteJob | None, server: str, job_id: str = "", last_sequence: int = 0) -> Frame:
        """Returns the frame, after the call has ended well. ``job``: names the frame's inputs as this side knows
        them; None: as the server does. DataLossError: something is missing."""
        summary = self._summary
        if not self._info_complete:
            raise _damaged("it ended before the first bundle")
        if not self._present.all():
            fibre = self._info.first_fibre + int(np.argmin(self._present))  # type: ignore[union-attr]
            raise _damaged(f"it ended after {self.done} bundles; fibre {fibre} never came")
        if summary is None:
            raise _damaged("it ended before the summary")
        origin = self._origin
        if summary.HasField("largest_residual"):
            origin.flux_residual = summary.largest_residual
        if summary.HasField("largest_root_error"):
            origin.root_error = summary.largest_root_error
        if summary.HasField("fit"):
            origin.chi2pix_median = summary.fit.median
            origin.chi2pix_outliers = summary.fit.outliers
        if job is not None:
            origin.input_image = job.image_name
            origin.input_psf = job.psf_name if job.psf_name is not None else origin.input_psf
            if origin.traces is not None and job.trace_reference_name is not None:
                traces = origin.traces  # a copy
                traces.reference = job.trace_reference_name
                origin.traces = traces
        self._planes["mask"].reshape(-1)[self._bad2dfit] |= np.uint32(BAD2DFIT)
        frame_info = self._info
        assert frame_info is not None
        source = Source(self._grid, origin, _scores_of(summary), frame_info.first_fibre)
        parts = self._products or ProductParts(frame_info.first_fibre, frame_info.fibre_count, frame_info.grid.count)
        return Frame._make(
            source,
            self._planes,
            products=parts.finish(source, asked_of(job.header.products) if job is not None else None),
            model=self._model(),
            failed_bundles=tuple(summary.failed_bundles),
            warnings=tuple(summary.warnings),
            job=_job_info(summary, job_id or self._job_id, server, last_sequence),
        )

    def _model(self) -> np.ndarray | None:
        info = self._info
        if info is None or info.model_rows == 0:
            return None
        model = np.zeros((info.model_rows, info.model_columns), np.float32)
        for index in sorted(self._models):  # the bits of the sums depend on the order
            bundle = self._models[index]
            assert bundle.model is not None
            model[:, bundle.first_column : bundle.first_column + bundle.model.shape[1]] += bundle.model
        return model


class AnalysisAssembler:
    """Assembles the events of one analysis, taken in order. Hands nothing on before the end."""

    arrived = False

    def __init__(self, analysis: RemoteAnalysis) -> None:
        self.accepted = False
        self._job_id = ""
        self._parts = FileParts(analysis.files)
        self._summary: pb.JobSummary | None = None

    def add(self, event: pb.ExtractEvent) -> None:
        """Takes an event. DataLossError: it is damaged or out of order."""
        if self._summary is not None:
            raise _damaged("an event after the summary")
        kind = event.WhichOneof("event")
        if kind == "accepted":
            self.accepted, self._job_id = True, event.accepted.job_id
        elif kind == "file":
            if not self.accepted:
                raise _damaged("a file before the job was accepted")
            self._parts.add(event.file)
        elif kind == "summary":
            self._summary = event.summary if event.summary.last else None
        elif kind in ("frame_info", "bundle", "model", "product"):
            raise _damaged(f"a {kind} of an analysis")

    def finish(self, server: str) -> Analysis:
        """Returns the analysis, after the call has ended well. DataLossError: something is missing."""
        summary, parts = self._summary, self._parts
        parts.finish()
        if summary is None:
            raise _damaged("it ended before the summary")
        return Analysis(parts.files, parts.failed, _job_info(summary, self._job_id, server, 0))


def _job_info(summary: pb.JobSummary, job_id: str, server: str, last_sequence: int) -> JobInfo:
    return JobInfo(
        engine=summary.engine,
        psf_hash=summary.psf_hash,
        run_seconds=summary.run_seconds,
        engine_seconds=summary.engine_seconds,
        queue_seconds=summary.queue_seconds,
        stages={stage.stage: stage.seconds for stage in summary.stages},
        job_id=job_id,
        server=server,
        last_sequence=last_sequence,
    )


def _traces_of(message: pb.TraceShifts, fibres: int) -> _native.TraceReport:
    if len(message.u) != 8 * fibres:
        raise _damaged(f"trace shifts of {len(message.u) / 8:g} fibres, the frame has {fibres}")
    report = _native.TraceReport()
    report.x, report.y = _axis_of("x", message.x), _axis_of("y", message.y)
    for name in ("reason", "passes", "lines", "moved", "reference", "wave_min", "wave_max"):
        setattr(report, name, getattr(message, name))
    report.u = np.frombuffer(message.u, "<f8").tolist()
    return report


def _axis_of(name: str, message: pb.AxisShifts) -> _native.AxisShifts:
    shape = message.u_terms, message.t_terms
    size = message.u_terms * message.t_terms
    if max(shape) > _MAX_SHIFT_TERMS or len(message.coefficients) != size or len(message.covariance) != size**2:
        raise _damaged(f"a series of shifts in {name} with {len(message.coefficients)} of {size} coefficients")
    if message.status not in pb.AxisShifts.Status.values():
        raise _damaged(f"status {message.status} of shifts in {name}")
    axis = _native.AxisShifts()
    axis.status = pb.AxisShifts.Status.Name(message.status).lower()
    if size > 0:
        axis.series = np.array(message.coefficients).reshape(shape)
        axis.covariance = np.array(message.covariance).reshape(size, size)
    for field in ("corner_error", "mean", "min", "max", "used", "clipped"):
        setattr(axis, field, getattr(message, field))
    return axis


def _scores_of(summary: pb.JobSummary) -> _native.Scores | None:
    if not summary.HasField("scores"):
        return None
    scores = _native.Scores()
    scores.band = summary.scores.band
    for name in ("sum_counts", "median_counts", "median_snr"):
        setattr(scores, name, list(getattr(summary.scores, name)))
    scores.median_chi2pix = list(summary.fit.fibre_median)
    scores.outliers_chi2pix = list(summary.fit.fibre_outliers)
    return scores
