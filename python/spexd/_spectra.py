"""Spectra of targets in several arms, and the joint fits of ``spex analyse`` to all arms."""

from __future__ import annotations

import os
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spexd import _cards, _native
from spexd._job import Path
from spexd._processes import process
from spexd._products import Templates, TemplatesLike, structured
from spexd.errors import InvalidArgumentError, SpexdError, error_of
from spexd.frame import Frame, JobInfo

_ARRAYS = ("wave", "flux", "ivar", "mask", "resolution")


class SpectraArm:
    """The spectra of one arm, one row for each row of the fibermap.

    Analyses use these arrays. They see changes in place; a value that is assigned to an attribute is copied into the
    array.
    """

    #: letter of a camera in capitals, or the letters of several that were combined (BRZ)
    name: str
    #: float64 [bin], Angstrom in vacuum, uniform; read-only
    wave: np.ndarray
    #: float32 [row, bin], in the units of the file; electron / Angstrom if made from frames
    flux: np.ndarray
    #: float32 [row, bin], 1 / flux^2
    ivar: np.ndarray
    #: uint32 [row, bin], bits; bins with any bit set have no data
    mask: np.ndarray
    #: float32 [row, diagonal, bin]: with 2 h + 1 diagonals, ``resolution[i, d + h, j]`` is R[j + d, j] of row i
    resolution: np.ndarray

    def __init__(self, native: Any) -> None:
        self.name = native.name
        self.wave = np.array(native.grid.values())
        self.wave.setflags(write=False)
        self.flux, self.ivar = native.flux, native.ivar
        self.mask, self.resolution = native.mask, native.resolution

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _ARRAYS and name in self.__dict__:
            self.__dict__[name][...] = value
        else:
            super().__setattr__(name, value)

    def __repr__(self) -> str:
        rows, bins = self.flux.shape
        first, last = self.wave[0], self.wave[-1]
        return f"<spexd.SpectraArm {self.name}: {rows} rows, {bins} bins from {first:.1f} to {last:.1f} Angstrom>"


class Spectra:
    """Spectra of targets in several arms. A row is a target, or one of its exposures.

    Velocities and redshifts are fitted to all arms together, as by ``spex analyse`` for a file of spectra or for the
    frames of an exposure. :func:`spexd.read_spectra` reads a file of spectra.
    """

    #: arms, ordered by their first wavelength
    arms: Mapping[str, SpectraArm]
    #: structured array [row]: the FIBERMAP, as :attr:`spexd.Frame.fibermap`
    fibermap: np.ndarray | None
    #: structured array: the EXP_FIBERMAP, the exposures of a coadd's targets; None if the file has none
    exposure_map: np.ndarray | None
    #: structured array [row]: SCORES; None if the file has none
    scores: np.ndarray | None
    #: values of the cards of the file's first header; if made from frames, of the bluest frame's header
    header: Mapping[str, object]

    def __init__(self, frames: Iterable[Path | Frame], *, sky_subtracted: bool = False, threads: int = 0) -> None:
        """Combines the frames of one exposure's cameras, which must have the same NIGHT, EXPID, spectrograph and
        TARGETIDs. An arm is named by the letter of CAMERA. The spectra are copied.

        Args:
            frames: frames, or paths of their files, in any order. If a frame contains the sky, the sky that
                :meth:`spexd.Frame.sky` finds is subtracted first; flat-field such a frame before, with
                :meth:`spexd.Frame.sky_subtracted`. A frame counts as sky-subtracted if its header has IN_SKY, or if its
                file is named ``sframe-*`` or ``cframe-*``.
            sky_subtracted: whether all frames are sky-subtracted, whatever they are called.
            threads: threads that find the sky; 0: one per processor. The result does not depend on it.

        Raises:
            InvalidArgumentError: the frames are of different exposures, two are of one camera, or one has no FIBERMAP.
        """
        if isinstance(frames, (str, os.PathLike, Frame)):
            raise InvalidArgumentError(
                "frames must be a list of frames or paths, not one of them; read_spectra reads a file of spectra"
            )
        _check_threads(threads)
        natives, names = [], []
        for number, given in enumerate(frames):
            frame = given if isinstance(given, Frame) else Frame.from_fits(given)
            name = frame._name or f"frame {number}"
            names.append(os.fsencode(name))
            natives.append(_without_sky(frame, name, sky_subtracted, threads))
        self._take(process.call(_native.join_frames, natives, names), [])

    @classmethod
    def _from_file(cls, path: Path, threads: int) -> Spectra:
        _check_threads(threads)
        spectra = cls.__new__(cls)
        native = process.call(_native.read_spectra, os.fsencode(path), threads)
        spectra._take(native, _native.excluded_of_targets())
        return spectra

    def _take(self, native: Any, exclude: list[tuple[float, float]]) -> None:
        self._native = native
        self._exclude = exclude
        arms = [SpectraArm(native.arm(k)) for k in range(native.arm_count)]
        self.arms = types.MappingProxyType({arm.name: arm for arm in arms})
        self.fibermap = _cards.table_of(native.fibermap)
        self.exposure_map = _cards.table_of(native.exposures)
        self.scores = _cards.table_of(native.scores)
        self.header = types.MappingProxyType(_cards.header_of(native.cards))

    def __len__(self) -> int:
        return int(self._native.rows)

    @property
    def selected_rows(self) -> np.ndarray:
        """The rows that are analysed by default (int64). Their FIBERSTATUS or COADD_FIBERSTATUS is 0 except for bits 3
        and 20, and their OBJTYPE is neither SKY nor BAD."""
        return np.array(_native.select_rows(self._native), np.int64)

    def velocities(
        self,
        templates: TemplatesLike,
        rows: Sequence[int] | np.ndarray | None = None,
        *,
        per_target: bool = False,
        exclude: Sequence[tuple[float, float]] | None = None,
        most: float = 1000.0,
        degree: int = 6,
        rotation: bool = True,
        models: bool = False,
        threads: int = 0,
    ) -> np.ndarray:
        """Fits velocities of stars, each to all arms together. Returns the table RVTAB of ``spex analyse --velocity``,
        to the bit. ``astropy.table.Table(...)`` accepts it.

        Columns, with X for each arm, or for each camera of an arm that combines several: VRAD, VRAD_ERR, VRAD_ERR_COND,
        VSINI in km/s; the templates' parameters, each with its error (_ERR); CHISQ_TOT, CHISQ_C_TOT (continua without a
        star), NPIX_TOT; CHISQ_X, CHISQ_C_X, NPIX_X; VRAD_X, VRAD_ERR_X (the velocity from this arm alone, with all
        other parameters from the joint fit); DCHI2, V2; RVS_WARN (bits: docs/analysis.md); FIBER, REF_ID, REF_CAT,
        TARGET_RA, TARGET_DEC, TARGETID, EXPID if the fibermap has them; NUMEXP (number of rows fitted together); SN_X;
        SUCCESS.

        The fit runs on the processor, without the GIL. Ctrl-C stops it. docs/analysis.md says what it assumes, and
        where it fails.

        Args:
            templates: path of a library of templates, or a :class:`spexd.Templates` for several calls.
            rows: row numbers, or a mask [row]; default: :attr:`selected_rows`. The table has them in this order.
            per_target: whether the rows of a TARGETID are fitted together, in the order of their first rows; otherwise
                each row is fitted separately.
            exclude: pairs of wavelengths, Angstrom; bins between the two have no weight. Default: 4300 to 4450 for
                files of spectra, as in rvspecfit; nothing for frames. ``exclude=[]``: nothing.
            most: the velocities that are searched are -most to most, km/s.
            degree: degree, 0 to 20, of the polynomial that scales the templates in each arm.
            rotation: whether stars may rotate.
            models: whether to add columns named as the HDUs of the files: X_MODEL, float32 [bin], for each of
                :attr:`arms`, the model of the first exposure; CHI2 [scanned velocity, every 25 km/s from -most], the
                least chi-square of all templates; X_CHI2, each arm's part of it. NaN if there is none.
            threads: 0: one per processor. The result does not depend on it.

        Raises:
            InvalidArgumentError: a row is missing or named twice, there is no TARGETID for per_target, or the templates
                have a hole or do not cover the wavelengths.
        """
        library = templates if isinstance(templates, Templates) else Templates(templates)
        options = _native.VelocityOptions()
        options.most, options.degree, options.rotation = most, degree, rotation
        options.set_exclude(self._exclude if exclude is None else ranges_of(exclude))
        _check_threads(threads)
        given = [self._native, library._native, options, self._rows(rows), per_target, models, threads]
        return _table_of(process.call(_native.fit_joint_velocities, *given))

    def redshifts(
        self,
        rows: Sequence[int] | np.ndarray | None = None,
        *,
        per_target: bool = False,
        most: float = 1.63,
        sigma: float = 60.0,
        threads: int = 0,
    ) -> np.ndarray:
        """Finds redshifts of emission-line galaxies, each from all arms together. Returns the table ZLINES of ``spex
        analyse --lines``, to the bit.

        Columns: TARGETID, FIBER, EXPID, TARGET_RA, TARGET_DEC if the fibermap has them; the others as in
        :meth:`spexd.Frame.redshifts`.

        Args:
            rows, per_target, threads: see :meth:`velocities`.
            most: the largest redshift.
            sigma: width of the lines, km/s.
        """
        options = _native.LineOptions()
        options.most, options.sigma = most, sigma
        _check_threads(threads)
        given = [self._native, options, self._rows(rows), per_target, threads]
        return _table_of(process.call(_native.find_joint_redshifts, *given))

    def _rows(self, rows: Sequence[int] | np.ndarray | None) -> list[int]:
        if rows is None:
            chosen: list[int] = _native.select_rows(self._native)
            return chosen
        values = np.asarray(rows)
        if values.dtype == bool and values.shape == (len(self),):
            values = np.flatnonzero(values)
        if values.ndim != 1 or (values.dtype.kind not in "iu" and len(values) > 0):
            raise InvalidArgumentError(
                f"rows has shape {values.shape} and type {values.dtype}, must be numbers of rows or a mask of all "
                f"{len(self)} rows"
            )
        wrong = values[(values < 0) | (values >= len(self))]
        if len(wrong) > 0:
            raise InvalidArgumentError(f"rows has {wrong[0]}, the spectra have rows 0 to {len(self) - 1}")
        numbers, counts = np.unique(values, return_counts=True)
        if len(numbers) < len(values):
            raise InvalidArgumentError(f"rows has {numbers[counts > 1][0]} twice, must have each row once")
        return [int(value) for value in values]

    def __repr__(self) -> str:
        arms = ", ".join(f"{arm.name} {arm.wave[0]:.1f} to {arm.wave[-1]:.1f}" for arm in self.arms.values())
        return f"<spexd.Spectra: {len(self)} rows, {arms} Angstrom>"


class Analysis:
    """The products that a server fitted to spectra; see :meth:`spexd.Client.analyse`. A table is None if it was not
    asked for. If it could not be made, accessing it raises its error; the other tables are not affected."""

    #: server, engine and times of the job
    job: JobInfo

    def __init__(self, files: dict[str, bytes], failed: dict[str, tuple[int, str]], job: JobInfo) -> None:
        self.job = job
        self._files, self._failed = files, failed
        self._tables: dict[str, np.ndarray] = {}  # the tables that were accessed

    @property
    def files(self) -> Mapping[str, bytes]:
        """The FITS files that were made, by the names "velocities", "models" and "redshifts". ``spex analyse`` calls
        them ``rvtab_*``, ``rvmod_*`` and ``zlines_*``; its files are identical, byte for byte, on processors with the same
        instruction set."""
        return types.MappingProxyType(self._files)

    @property
    def errors(self) -> Mapping[str, SpexdError]:
        """The errors of the files that could not be made, by name; empty if nothing went wrong."""
        return types.MappingProxyType({name: error_of(*failed) for name, failed in self._failed.items()})

    @property
    def velocities(self) -> np.ndarray | None:
        """The table of :meth:`Spectra.velocities`. With ``models=True`` it also has the float32 columns of the
        models; X_MODEL is missing if the models could not be made (:attr:`errors`)."""
        return self._table("velocities", "RVTAB")

    @property
    def redshifts(self) -> np.ndarray | None:
        """The table of :meth:`Spectra.redshifts`."""
        return self._table("redshifts", "ZLINES")

    def _table(self, name: str, hdu: str) -> np.ndarray | None:
        if name in self._failed:
            raise error_of(*self._failed[name])
        if name in self._files and name not in self._tables:
            fits = self._open(name)
            columns = _cards.columns_of(fits.table(hdu)) + (self._models(fits) if name == "velocities" else [])
            self._tables[name] = structured(columns)
        return self._tables.get(name)

    def _models(self, velocities: Any) -> list[tuple[str, np.ndarray]]:
        """Returns the columns that are images in the files."""
        columns = []
        if "models" in self._files:
            models = self._open("models")
            columns += [(name, models.image(name)) for name in models.hdus if name.endswith("_MODEL")]
        if "models" in self._files or "models" in self._failed:
            columns += [(n, velocities.image(n)) for n in velocities.hdus if n == "CHI2" or n.endswith("_CHI2")]
        return columns

    def _open(self, name: str) -> Any:
        return process.call(_native.parse_fits, f"the file of {name}", self._files[name])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tables": {}}

    def __repr__(self) -> str:
        return f"<spexd.Analysis: {', '.join([*self._files, *(f'{name} failed' for name in self._failed)])}>"


def read_spectra(path: Path, *, threads: int = 0) -> Spectra:
    """Reads a file of targets' spectra, ``coadd-*`` or ``spectra-*``, from ``spex coadd``, :meth:`spexd.Coadd.to_fits`
    or the pipeline. It has HDUs such as B_WAVELENGTH, B_FLUX, B_IVAR, B_MASK and B_RESOLUTION for each arm, and a
    FIBERMAP. It may be compressed (``.gz``).

    Args:
        path: path of the file.
        threads: threads that read it; 0: one per processor.

    Raises:
        InvalidArgumentError: the file does not have this form; the message names the HDU.
    """
    return Spectra._from_file(path, threads)


def _without_sky(frame: Frame, name: str, sky_subtracted: bool, threads: int) -> Any:
    """Returns the extension's frame, sky-subtracted if it contained the sky."""
    native = frame._to_native()
    if sky_subtracted or not _native.has_sky(native, os.fsencode(name)):
        return native
    try:
        return frame.sky_subtracted(threads=threads)._to_native()
    except SpexdError as error:
        text = f"{name}: {error}; if the frame has no sky in it any more, give sky_subtracted=True"
        raise error_of(error.code, text) from error


def _check_threads(threads: int) -> None:
    if threads < 0:
        raise InvalidArgumentError(f"threads is {threads}, must not be negative")


def ranges_of(exclude: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Returns pairs of wavelengths, Angstrom. InvalidArgumentError: ``exclude`` does not consist of pairs."""
    try:
        ends = np.array(exclude, np.float64)
    except (TypeError, ValueError):
        ends = np.zeros(1)
    if ends.size > 0 and (ends.ndim != 2 or ends.shape[1] != 2):
        raise InvalidArgumentError(
            f"exclude is {exclude!r}, must be pairs of wavelengths in Angstrom, as [(4300, 4450)]"
        )
    return [(float(first), float(last)) for first, last in ends.reshape(-1, 2)]


def _table_of(columns: Sequence[tuple[str, Any]]) -> np.ndarray:
    """Returns one structured array of the extension's columns. Columns of types that numpy lacks are left out."""
    values = [(name, it if isinstance(it, np.ndarray) else _cards.column_of(*it)) for name, it in columns]
    return structured([(name, array) for name, array in values if array is not None])
