"""Extracted spectra."""

from __future__ import annotations

import dataclasses
import html
import os
import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spexd import _cards, _native, _processes, _products
from spexd._device import DeviceSpectra
from spexd._processes import process
from spexd._products import Products, Sky, TemplatesLike
from spexd._traces import TraceShifts
from spexd.errors import InvalidArgumentError

if TYPE_CHECKING:
    import matplotlib.axes
    import scipy.sparse

    from spexd._products import Fiberflat

#: Bits of ``Frame.mask``.
SOMEBADPIX = 1 << 0  # more than half of the spot lies on unusable pixels
ALLBADPIX = 1 << 1  # less than 1e-4 of the spot lies on usable pixels; set wherever NODATA is
BADFIBERFLAT = 1 << 4  # the fiberflat has no value: its ivar is 0, its mask is set, or it is not positive
BADSKY = 1 << 6  # there is no sky to subtract
BAD2DFIT = 1 << 7  # the 2-D fit is bad: chi2pix far above its neighbours
NODATA = 1 << 8  # no data: flux and ivar are 0
BADFIBER = 1 << 9  # a fatal bit of FIBERSTATUS: the spectrum is not its target's

_PLANES = {
    "flux": np.float32,
    "ivar": np.float32,
    "mask": np.uint32,
    "resolution": np.float32,
    "chi2pix": np.float32,
}


_processes.register_values()


@dataclasses.dataclass(frozen=True)
class JobInfo:
    """The server, engine and times of a job. Times are in seconds."""

    engine: str = ""  #: such as "cpu (AVX-512, 2 threads)"
    psf_hash: str = ""  #: SHA-256 of the PSF's file
    run_seconds: float = 0.0  #: the whole job
    engine_seconds: float = 0.0  #: preparation and extraction
    queue_seconds: float = 0.0  #: time in the queue of a server
    stages: Mapping[str, float] = dataclasses.field(default_factory=dict)  #: seconds of each stage, summed over threads
    job_id: str = ""  #: id of a job on a server
    server: str = ""  #: address of the server
    last_sequence: int = 0  #: number of the last event of a detached job


@dataclasses.dataclass(frozen=True)
class Source:
    """The contents of a frame's file besides the arrays, as objects of the extension."""

    grid: Any
    origin: Any
    scores: Any
    first_fibre: int

    def native(self) -> Any:
        """Returns a frame of the extension, without spectra."""
        native = _native.Frame()
        native.grid, native.origin, native.scores = self.grid, self.origin, self.scores
        native.first_fibre = self.first_fibre
        return native


@dataclasses.dataclass
class Frame:
    """Spectra of some fibres on one wavelength grid.

    Arrays may be changed in place and are written as they are; their shapes must not change.
    """

    #: float32 [fibre, bin], electron / Angstrom
    flux: np.ndarray
    #: float32 [fibre, bin], 1 / flux^2: inverse variance
    ivar: np.ndarray
    #: uint32 [fibre, bin]: bits SOMEBADPIX, ALLBADPIX, BAD2DFIT, NODATA
    mask: np.ndarray
    #: float32 [fibre, 11, bin]: ``resolution[i, d + 5, j]`` is R[j + d, j] of fibre i
    resolution: np.ndarray
    #: float32 [fibre, bin]: chi^2 per pixel of the 2-D fit
    chi2pix: np.ndarray
    #: float64 [bin], Angstrom in vacuum, uniform
    wave: np.ndarray
    #: index in the PSF of the first fibre
    first_fibre: int
    #: structured array [fibre]: the FIBERMAP rows of these fibres; None if there is no FIBERMAP
    fibermap: np.ndarray | None
    #: values of the cards of HDU FLUX without its checksums, from the input image and from the extraction. COMMENT and
    #: HISTORY are tuples of lines
    header: Mapping[str, object]
    #: float64 [fibre] each: the scores, by the pipeline's names; empty if there are none
    scores: Mapping[str, np.ndarray]
    #: float32 [row, column], electron: the 2-D model, if it was asked for
    model: np.ndarray | None = None
    #: the same arrays in a GPU's memory, with ``keep_on_device``; None in a pickled copy
    on_device: DeviceSpectra | None = None
    #: bundles that could not be extracted, with reasons; their bins are NODATA
    failed_bundles: Sequence[str] = ()
    #: anomalies of the inputs of a job that succeeded, one sentence each
    warnings: Sequence[str] = ()
    job: JobInfo = dataclasses.field(default_factory=JobInfo)
    #: the products that the server made of the spectra, if a client asked for any
    products: Products | None = dataclasses.field(default=None, repr=False, compare=False)
    #: the same header as cards of 80 characters, with comments
    cards: Sequence[str] = dataclasses.field(default=(), repr=False)
    _source: Source | None = dataclasses.field(default=None, repr=False)
    _shape: tuple[int, ...] = dataclasses.field(default=(), repr=False)  # with which it was made
    _held: Any = dataclasses.field(default=None, repr=False, compare=False)  # owner of the arrays' memory, if any
    _name: str = dataclasses.field(default="", repr=False, compare=False)  # path of the file from which it was read

    @property
    def fibres(self) -> range:
        """Indices of the fibres in the PSF."""
        return range(self.first_fibre, self.first_fibre + len(self.flux))

    @property
    def trace_shifts(self) -> TraceShifts | None:
        """The trace shifts that were measured for this frame, also if it was read from a file; None if they were not
        asked for."""
        native = None if self._source is None else self._source.origin.traces
        return None if native is None else TraceShifts._from_native(native, self.first_fibre)

    def __repr__(self) -> str:
        first, last = self.wave[0], self.wave[-1]
        return (
            f"<spexd.Frame: fibres {self.fibres.start} to {self.fibres.stop - 1}, "
            f"{len(self.wave)} bins from {first:.1f} to {last:.1f} Angstrom>"
        )

    def resolution_matrix(self, index: int) -> scipy.sparse.dia_matrix:
        """Returns R [bin, bin] of the fibre at ``index`` of the arrays. Compare R m, not a model m itself, to the
        flux. Needs scipy."""
        import scipy.sparse

        half = self.resolution.shape[1] // 2
        bins = len(self.wave)
        return scipy.sparse.dia_matrix((self.resolution[index], np.arange(half, -half - 1, -1)), shape=(bins, bins))

    @classmethod
    def from_fits(cls, path: str | os.PathLike[str]) -> Frame:
        """Reads a frame that spexd or the pipeline wrote."""
        native, cards = process.call(_native.read_frame, os.fsencode(path))
        return cls._from_native(native, cards=cards, _name=os.fsdecode(path))

    def to_fits(self, path: str | os.PathLike[str], model: str | os.PathLike[str] | None = None) -> None:
        """Writes the file that ``spex`` would write, gzipped if the name ends in ".gz", and the model image if
        ``model`` names a file.

        A file gets its name only when it is complete.
        """
        if model is not None:
            if self.model is None:
                raise InvalidArgumentError("model: the frame has none; extract with model=True")
            image = np.ascontiguousarray(self.model, np.float32)
            process.call(_native.write_model, image, self._to_native().origin, os.fsencode(model))
        process.call(_native.write_frame, self._to_native(), os.fsencode(path))

    def sky(self, fiberflat: Fiberflat = None, *, threads: int = 0, device: str = "cpu") -> Sky:
        """Fits the sky to the fibres with OBJTYPE SKY, as ``spex analyse --sky`` does, to the bit.

        The processor computes it from the arrays in memory, without the GIL. Ctrl-C stops it. docs/analysis.md says
        what the fit assumes, and where it fails.

        Args:
            fiberflat: divides the spectra first. Path of a file as desispec's ``read_fiberflat`` takes it (IVAR, MASK
                and FIBERMAP may be missing), whose rows are found by FIBER; or numbers [fibre, bin] without errors, for
                this frame's fibres. If the frame has HELIOCOR, both are evaluated at WAVELENGTH / HELIOCOR.
            threads: 0: one per processor. The result does not depend on it.
            device: "cuda": computes it on a GPU, as ``spex analyse --device cuda`` does. If the frame stayed on the GPU
                (``keep_on_device``) and its own arrays were not replaced, the arrays there are used without a copy.
                Changes in place then count where they were made: on the GPU, those of ``on_device``.

        Raises:
            InvalidArgumentError: the frame has no FIBERMAP with OBJTYPE, or the fiberflat lacks fibres or has
                another grid.
            ResourceExhaustedError: the GPU lacks memory.
            FailedPreconditionError: no sky fibre has data.
        """
        native = self._to_native()
        request = _products.request_of(threads, fiberflat)
        self._take_device(request, device)
        return Sky(process.call(_native.fit_sky, native, request), native)

    def sky_subtracted(self, sky: Sky | None = None, *, fiberflat: Fiberflat = None, threads: int = 0) -> Frame:
        """Returns a frame of these spectra without the sky, flat-fielded if the sky was: that of ``spex analyse
        --sframe``.

        Args:
            sky: the result of :meth:`sky` for this frame; default: computes it, with ``fiberflat`` and ``threads``.
        """
        if sky is not None and fiberflat is not None:
            raise InvalidArgumentError("fiberflat: the sky was made with one or without; give it to frame.sky() alone")
        sky = self.sky(fiberflat, threads=threads) if sky is None else sky
        if sky.model.shape != self.flux.shape:
            raise InvalidArgumentError(f"sky has shape {sky.model.shape}, the frame {self.flux.shape}")
        native = process.call(_native.sky_subtracted, self._to_native(), sky._native)
        return Frame._from_native(native, cards=self.cards, failed_bundles=self.failed_bundles, job=self.job)

    def velocities(
        self,
        templates: TemplatesLike,
        sky: Sky | None = None,
        *,
        sky_subtracted: bool = False,
        fiberflat: Fiberflat = None,
        most: float = 1000.0,
        degree: int = 6,
        rotation: bool = True,
        models: bool = False,
        threads: int = 0,
        device: str = "cpu",
    ) -> np.ndarray:
        """Fits velocities of stars. Returns a row for each fibre that is not a sky fibre, as in the file of ``spex
        analyse --velocity-out``, to the bit. ``astropy.table.Table(...)`` accepts the table.

        Columns: TARGETID, FIBER, TARGET_RA, TARGET_DEC if the fibermap has them; ROW of the frame; VRAD, VRAD_ERR,
        VRAD_ERR_COND, VSINI, V2 in km/s; the templates' parameters, each with its error (_ERR); CHISQ_TOT, CHISQ_C_TOT
        (a continuum without a star), NBIN, DCHI2, RVS_WARN (bits: docs/analysis.md).

        Args:
            templates: path of a library of templates, or a :class:`spexd.Templates` for several calls.
            sky: the result of :meth:`sky` for this frame; default: computes it.
            sky_subtracted: whether the frame is sky-subtracted already.
            fiberflat, device: see :meth:`sky`.
            most: the velocities that are searched are -most to most, km/s.
            degree: degree, 3 to 20, of the polynomial that scales the templates.
            rotation: whether stars may rotate.
            models: whether to add the columns MODEL and CONTINUUM [bin], electron / Angstrom, and CHI2 [scanned
                velocity, every 25 km/s from -most], the least chi-square of all templates.

        Raises:
            InvalidArgumentError: there is no FIBERMAP, or the templates have a hole or do not cover the wavelengths.
        """
        request = _products.request_of(threads, fiberflat, sky, sky_subtracted)
        self._take_device(request, device)
        return _products.fit_velocities(self._to_native(), templates, request, most, degree, rotation, models)

    def redshifts(
        self,
        sky: Sky | None = None,
        *,
        sky_subtracted: bool = False,
        fiberflat: Fiberflat = None,
        most: float = 1.05,
        sigma: float = 60.0,
        threads: int = 0,
        device: str = "cpu",
    ) -> np.ndarray:
        """Finds redshifts of emission-line galaxies. Returns a row for each fibre that is not a sky fibre, as in the
        file of ``spex analyse --lines-out``, to the bit.

        Columns: the first as in :meth:`velocities`; Z, ZERR, ZWARN (0: accepted; bits: docs/analysis.md), DCHI2, SNR,
        GAP (secure above 25), Z2, NLINES.

        Args:
            sky, sky_subtracted, fiberflat, threads, device: see :meth:`velocities`.
            most: the largest redshift.
            sigma: width of the lines, km/s.
        """
        request = _products.request_of(threads, fiberflat, sky, sky_subtracted)
        self._take_device(request, device)
        return _products.find_redshifts(self._to_native(), request, most, sigma)

    def plot(self, fibres: Sequence[int] | None = None, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draws the spectra of these fibres (indices in the PSF; default: the first three) with their errors,
        without masked bins. Returns the axes. Needs matplotlib."""
        import matplotlib.pyplot as plt

        ax = ax if ax is not None else plt.subplots(figsize=(9, 4), layout="constrained")[1]
        for fibre in self.fibres[:3] if fibres is None else fibres:
            if fibre not in self.fibres:
                raise InvalidArgumentError(
                    f"fibre {fibre}: the frame has fibres {self.fibres.start} to {self.fibres.stop - 1}"
                )
            row = fibre - self.first_fibre
            good = (self.mask[row] == 0) & (self.ivar[row] > 0)
            flux = np.where(good, self.flux[row], np.nan)
            error = 1 / np.sqrt(np.where(good, self.ivar[row], np.nan))
            (line,) = ax.plot(self.wave, flux, lw=0.8, label=f"fibre {fibre}")
            ax.fill_between(self.wave, flux - error, flux + error, color=line.get_color(), alpha=0.25, lw=0)
        ax.set(xlabel="wavelength [Å]", ylabel="flux [electron / Å]")
        ax.legend()
        return ax

    def _repr_html_(self) -> str:
        masked = np.count_nonzero(self.mask) / self.mask.size
        rows = {
            "fibres": f"{self.fibres.start} to {self.fibres.stop - 1}",
            "wavelengths": f"{self.wave[0]:.2f} to {self.wave[-1]:.2f} Å, {len(self.wave)} bins",
            "masked": f"{100 * masked:.2f} %",
            "image": str(self.header.get("IN_IMG", "")),
            "PSF": str(self.header.get("IN_PSF", "")),
            "engine": self.job.engine,
        }
        cells = "".join(
            f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in rows.items() if value
        )
        return f"<table><caption>spexd.Frame</caption>{cells}</table>"

    @classmethod
    def _from_native(cls, native: Any, cards: Sequence[str] = (), **fields: Any) -> Frame:
        source = Source(native.grid, native.origin, native.scores, native.first_fibre)
        return cls._make(source, {name: getattr(native, name) for name in _PLANES}, cards, _held=native, **fields)

    @classmethod
    def _make(
        cls, source: Source, planes: Mapping[str, np.ndarray], cards: Sequence[str] = (), **fields: Any
    ) -> Frame:
        """``cards``: the header as it was read; default: as ``to_fits`` will write it."""
        fibres = len(planes["flux"])
        cards = tuple(cards or _native.frame_cards(source.grid, source.first_fibre, fibres, source.origin))
        return cls(
            flux=planes["flux"],
            ivar=planes["ivar"],
            mask=planes["mask"],
            resolution=planes["resolution"],
            chi2pix=planes["chi2pix"],
            wave=np.array(source.grid.values()),
            first_fibre=source.first_fibre,
            fibermap=_cards.table_of(source.origin.fibermap),
            header=types.MappingProxyType(_cards.header_of(cards)),
            scores=types.MappingProxyType(_scores_of(source.scores)),
            cards=cards,
            _source=source,
            _shape=planes["resolution"].shape,
            **fields,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "on_device": None, "_held": None, "header": dict(self.header), "scores": dict(self.scores)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        views = {name: types.MappingProxyType(state[name]) for name in ("header", "scores")}
        self.__dict__.update(state, **views)

    def _take_device(self, request: Any, device: str) -> None:
        replaced = self._to_native() is not self._held
        _products.take_device(request, device, None if replaced else self.on_device)

    def _to_native(self) -> Any:
        if self._held is not None and all(_same(getattr(self, name), getattr(self._held, name)) for name in _PLANES):
            return self._held  # its memory has the changes that were made in place
        assert self._source is not None
        native = self._source.native()
        fibres, _, bins = self._shape
        for name in _PLANES:
            have, need = getattr(self, name).shape, self._shape if name == "resolution" else (fibres, bins)
            if have != need:
                raise InvalidArgumentError(f"{name} has shape {have}, the frame was made with {need}")
        planes: list[Any] = [np.ascontiguousarray(getattr(self, name), dtype) for name, dtype in _PLANES.items()]
        native.set_spectra(*planes)
        return native


def _same(array: np.ndarray, view: np.ndarray) -> bool:
    """Returns whether both arrays use all of the same memory, in the same form."""
    return (array.shape, array.dtype, array.__array_interface__["data"][0], array.strides) == (
        view.shape,
        view.dtype,
        view.__array_interface__["data"][0],
        view.strides,
    )


def _scores_of(scores: Any) -> dict[str, np.ndarray]:
    if scores is None:
        return {}
    columns = {
        "SUM_RAW_COUNT": scores.sum_counts,
        "MEDIAN_RAW_COUNT": scores.median_counts,
        "MEDIAN_RAW_SNR": scores.median_snr,
        "MEDIAN_CHI2PIX": scores.median_chi2pix,
        "OUTLIERS_CHI2PIX": scores.outliers_chi2pix,
    }
    return {f"{name}_{scores.band}": np.array(values) for name, values in columns.items() if values}
