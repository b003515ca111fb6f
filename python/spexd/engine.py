"""Extraction in this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spexd import _native
from spexd._device import DeviceSpectra
from spexd._processes import process
from spexd._job import Arrays, Degrees, Path, Progress, Spec, Wavelength, arrays_of, check_spec, progress_of
from spexd._traces import TraceShifts
from spexd.errors import InvalidArgumentError
from spexd.frame import Frame, JobInfo


class Psf:
    """A PSF that stays in memory, for several jobs. Immutable; threads may share it."""

    def __init__(self, path: Path) -> None:
        self._native = process.call(_native.load_psf, os.fsencode(path))

    def shifted(self, cx: np.ndarray | float = 0.0, cy: np.ndarray | float = 0.0) -> Psf:
        """Returns the PSF with moved traces, for jobs in this process. It keeps the name; ``content_hash`` becomes "".

        Args:
            cx: coefficients [a, b] of the shift in columns, pixels (see :class:`spexd.AxisShifts`); a number shifts all
                traces equally. Those of ``spexd.trace_shifts(...)`` move the PSF to the frame.
            cy: coefficients of the shift in rows.

        A frame extracted with ``psf.shifted(shifts.cx, shifts.cy)`` equals, to the bit, one extracted with the option
        ``trace_shifts`` that measured these shifts. :func:`spexd.write_shifted_psf` writes such a PSF.
        """
        moved = object.__new__(Psf)
        moved._native = process.call(_native.shift_psf, self._native, _series("cx", cx), _series("cy", cy))
        return moved

    @property
    def name(self) -> str:
        """The path from which it was read."""
        return str(self._native.name)

    @property
    def content_hash(self) -> str:
        """SHA-256 of the file; "" for a shifted PSF. Servers call the PSF ``"sha256:" + content_hash``."""
        return str(self._native.content_hash)

    @property
    def fibres(self) -> int:
        """Number of fibres."""
        return int(self._native.fibres)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the CCD."""
        return self._native.rows, self._native.columns

    @property
    def wavelength(self) -> tuple[float, float]:
        """First and last wavelength, Angstrom."""
        return self._native.wave_min, self._native.wave_max

    def __repr__(self) -> str:
        return f"<spexd.Psf {self.name}: {self.fibres} fibres, CCD {self.shape[0]} x {self.shape[1]}>"


PsfLike = Path | Psf


def _series(name: str, coefficients: np.ndarray | float) -> np.ndarray:
    values = np.asarray(coefficients)
    if values.dtype.kind not in "fiu" or values.ndim not in (0, 2):
        raise InvalidArgumentError(
            f"{name} has shape {values.shape} and type {values.dtype}, must be a number or coefficients [a, b]"
        )
    return np.ascontiguousarray(values.reshape(values.shape or (1, 1)), np.float64)


class Engine:
    """An engine with its threads or device, and the PSFs that it prepared last. It stays warm between calls.

    Threads may call it at the same time; each call's results are the same, to the bit, whatever else runs. It lives as
    long as the object. A forked process (``multiprocessing`` with "fork") cannot use its parent's engine and must make
    its own. It cannot make one if another thread of its parent was inside spexd at the fork, nor one on a GPU if its
    parent used a GPU. Each of these raises FailedPreconditionError.
    """

    def __init__(
        self,
        device: str = "auto",
        *,
        devices: Sequence[int] = (),
        threads: int = 0,
        psf_bytes: int = 1 << 30,
    ) -> None:
        """Makes an engine.

        Args:
            device: "cpu"; "cuda", which fails if CUDA is not available; "auto", which uses the CPU in that case, and
                ``note`` says why.
            devices: CUDA indices of devices; default: the first.
            threads: threads of the CPU engine and for reading; 0: one per processor.
            psf_bytes: memory for PSFs that are kept prepared for later calls with the same grid.
        """
        if psf_bytes < 0:
            raise InvalidArgumentError(f"psf_bytes is {psf_bytes}, must not be negative")
        process.check_device(device)
        self._native = process.call(_native.make_engine, device, list(devices), threads, psf_bytes)
        if self.kind == "cuda":
            process.uses_cuda()

    @property
    def kind(self) -> str:
        """Either "cpu" or "cuda"."""
        return str(self._native.kind)

    @property
    def device(self) -> str:
        """Description of the device, such as "AVX-512, 2 threads"."""
        return str(self._native.device)

    @property
    def note(self) -> str:
        """Why "auto" did not choose CUDA, or ""."""
        return str(self._native.note)

    def __repr__(self) -> str:
        return f"<spexd.Engine {self.kind}: {self.device}>"

    def extract(
        self,
        image: Path | np.ndarray,
        ivar: np.ndarray | None = None,
        mask: np.ndarray | None = None,
        psf: PsfLike | None = None,
        *,
        wavelength: Wavelength = None,
        first_fibre: int = 0,
        fibre_count: int | None = None,
        bundle_size: int = 25,
        psferr: float | None = None,
        regularize: float = 0.0,
        barycentric_correction: bool = False,
        scores: bool = True,
        model: bool = False,
        trace_shifts: str = "off",
        trace_degrees: Degrees = (2, 2, 2, 1),
        trace_required: bool = False,
        trace_reference: Path | None = None,
        keep_on_device: bool = False,
        fibermap: Path | None = None,
        header: object = None,
        name: str = "array",
        timeout: float | None = None,
        progress: Progress = None,
    ) -> Frame:
        """Extracts the spectra of an image; see :func:`spexd.extract`."""
        spec = Spec(
            wavelength,
            first_fibre,
            fibre_count,
            bundle_size,
            psferr,
            regularize,
            barycentric_correction,
            scores,
            model,
            trace_shifts,
            trace_degrees,
            trace_required,
        )
        check_spec(spec, trace_reference)
        if psf is None:
            raise InvalidArgumentError("psf is missing: give a path or a spexd.Psf")
        arrays = arrays_of(image, ivar, mask, header)
        job = _native_job(spec, timeout, keep_on_device)
        _set_inputs(job, arrays, name if arrays is not None else image, psf, fibermap, trace_reference)
        with progress_of(progress) as report:
            return _frame_of(process.call(self._native.run, job, _listener(report)), model)


def _native_job(spec: Spec, timeout: float | None, keep_on_device: bool) -> Any:
    job, native = _native.Job(), spec.native()
    native.keep_on_device = keep_on_device
    job.spec = native
    if timeout is not None and not 0 < timeout < 1e9:
        raise InvalidArgumentError(f"timeout is {timeout}, must be more than 0 and less than 1e9 seconds")
    job.timeout = timeout
    return job


def _set_inputs(
    job: Any, arrays: Arrays | None, image: Any, psf: PsfLike, fibermap: Path | None, trace_reference: Path | None
) -> None:
    job.set_image(os.fsencode(image))
    if arrays is not None:
        job.set_arrays(arrays.pixels, arrays.ivar, arrays.mask, arrays.cards)
    if isinstance(psf, Psf):
        job.set_psf(psf._native)
    else:
        job.set_psf(os.fsencode(psf))
    if fibermap is not None:
        job.set_fibermap(os.fsencode(fibermap))
    if trace_reference is not None:
        job.set_trace_reference(os.fsencode(trace_reference))


def _listener(report: Callable[[int, int], None] | None) -> Callable[[int, int, int, int], None] | None:
    if report is None:
        return None
    return lambda first, count, done, total: report(done, total)


def _frame_of(outcome: Any, model: bool) -> Frame:
    info = JobInfo(
        engine=outcome.engine,
        psf_hash=outcome.psf_hash,
        run_seconds=outcome.run_seconds,
        engine_seconds=outcome.engine_seconds,
        stages=outcome.stages,
    )
    return Frame._from_native(
        outcome.frame,
        model=outcome.model if model else None,
        on_device=None if outcome.on_device is None else DeviceSpectra(outcome.on_device),
        failed_bundles=tuple(outcome.failed_bundles),
        warnings=tuple(outcome.warnings),
        job=info,
    )


_lock = threading.Lock()
_default: Engine | None = None


def default_engine() -> Engine:
    """Returns the engine of :func:`spexd.extract`: ``Engine()``, made on first use, one for the process.

    Importing spexd does not start it.
    """
    global _default
    with _lock:
        if _default is None:
            _default = Engine()
        return _default


def _forget() -> None:
    """Forgets the engine and the lock: a forked process has neither the engine's threads nor the holder of the lock."""
    global _default, _lock
    _default, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)


def extract(
    image: Path | np.ndarray,
    ivar: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    psf: PsfLike | None = None,
    *,
    engine: Engine | None = None,
    **options: Any,
) -> Frame:
    """Extracts the spectra of a CCD image in this process.

    The GIL is released during the call. Ctrl-C stops the job within 0.2 s on the CPU, and raises KeyboardInterrupt.

    Arrays are read in place if they are C-contiguous, in native byte order and of the types below; others are converted
    first. They must not change during the call. The job then copies image and ivar once, by several threads, because
    pixels that the mask excludes become 0 in the copies; it does not copy the mask.

    Args:
        image: path of a preprocessed frame (HDUs IMAGE, IVAR, MASK and FIBERMAP), or float32 [row, column], electron.
        ivar: with an array: float32 [row, column], 1 / electron^2. Pixels with ivar <= 0 are not used.
        mask: with an array: int32 or uint32 [row, column], the pipeline's ccdmask bits; default: no pixel is flagged.
        psf: path of a PSF of any model that spexd reads, or a :class:`spexd.Psf` for several calls.
        engine: the engine to run on; default: :func:`spexd.default_engine`.
        wavelength: "5760,7620,0.8" or (5760, 7620, 0.8): first, last and step in Angstrom; default: the PSF's range at
            0.8 Angstrom.
        first_fibre: index in the PSF of the first fibre.
        fibre_count: number of fibres; default: to the last.
        bundle_size: number of fibres that are solved together.
        psferr: fractional error of the PSF model, for chi2pix; default: the PSF's own.
        regularize: weight of a prior flux = 0 on every bin.
        barycentric_correction: whether to solve on the barycentric grid; needs the date and position in the header.
        scores: whether to compute scores.
        model: whether to return the 2-D model image.
        trace_shifts: "off"; "auto", "x" or "xy": measures the displacement of the frame's traces from the PSF's, and
            extracts with moved traces. "auto": in x alone if the header's FLAVOR is "flat", else in x and y. The result
            is in ``frame.trace_shifts``. Shifts that cannot be measured are refused: they move nothing, and a warning
            gives the reason.
        trace_degrees: four degrees, 0 to 5: of the shifts in x over fibres and over wavelength, then of those in y.
        trace_required: whether a refusal raises FailedPreconditionError.
        trace_reference: path of a spectrum with known wavelengths, two columns of text, Angstrom in vacuum and light,
            such as desispec's spec-sky.dat; default: in y, only differences between fibres are measured.
        keep_on_device: whether the arrays also stay in the GPU's memory, as ``frame.on_device``. Raises
            UnimplementedError on the CPU.
        fibermap: path of a file with a FIBERMAP that replaces the image file's own.
        header: with an array: a mapping of keywords, an astropy Header, or cards of 80 characters.
        name: with an array: its name in headers and messages.
        timeout: seconds after which the job is stopped with DeadlineExceededError.
        progress: True for a bar (needs tqdm), or a function of (bundles done, bundles in all). An exception of the
            function stops the job and is raised here.

    Raises:
        spexd.SpexdError: a subclass for each status code; the message names field or HDU, value and limit.
    """
    return (engine if engine is not None else default_engine()).extract(image, ivar, mask, psf, **options)


def trace_shifts(
    image: Path | np.ndarray,
    ivar: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    psf: PsfLike | None = None,
    *,
    reference: Path | None = None,
    axes: str = "auto",
    degrees: Degrees = (2, 2, 2, 1),
    bundle_size: int = 25,
    header: object = None,
    name: str = "array",
    threads: int = 0,
) -> TraceShifts:
    """Measures the shifts of an image's traces against a PSF, on the processor and without extraction. The image is
    given as for :func:`extract`.

    Args:
        reference: as ``trace_reference`` of :func:`extract`.
        axes: "auto", "x" or "xy", as ``trace_shifts`` of :func:`extract`.
        degrees: as ``trace_degrees`` of :func:`extract`.
        bundle_size: number of fibres whose light may overlap.
        threads: 0: one per processor. The result does not depend on it.

    Returns:
        The shifts of all fibres of the PSF. An axis that cannot be measured is "refused" and has a reason; it does not
        raise.

    Raises:
        spexd.SpexdError: a subclass for each status code; the message names field or HDU, value and limit.
    """
    if psf is None:
        raise InvalidArgumentError("psf is missing: give a path or a spexd.Psf")
    if threads < 0:
        raise InvalidArgumentError(f"threads is {threads}, must not be negative")
    arrays = arrays_of(image, ivar, mask, header)
    job = _native_job(Spec(bundle_size=bundle_size, trace_shifts=axes, trace_degrees=degrees), None, False)
    _set_inputs(job, arrays, name if arrays is not None else image, psf, None, reference)
    return TraceShifts._from_native(process.call(_native.measure_traces, job, threads), 0)


def write_shifted_psf(psf: Path, shifts: TraceShifts, path: Path, *, image: str = "") -> None:
    """Writes a PSF's file with its traces moved by shifts that were measured against it, or unmoved if ``shifts.moved``
    is False. A frame extracted with the written PSF equals, to the bit, one extracted with the option ``trace_shifts``.

    Args:
        psf: path of the PSF against which the shifts were measured.
        shifts: ``frame.trace_shifts``, or the result of :func:`trace_shifts`.
        path: path of the file to write.
        image: name of the frame, for the header (IN_IMAGE).
    """
    process.call(_native.write_moved_psf, os.fsencode(psf), shifts._native, os.fsencode(path), image)
