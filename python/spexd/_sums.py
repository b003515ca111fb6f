"""Sums over frames, computed by the functions of ``spex coadd`` and ``spex pca``."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spexd import _cards, _native, _products
from spexd._processes import process
from spexd._job import Path
from spexd.errors import InvalidArgumentError
from spexd.frame import Frame

if TYPE_CHECKING:
    from spexd._products import Fiberflat

FrameLike = Path | Frame


@dataclasses.dataclass
class Coadd:
    """Exposures added target by target and camera by camera."""

    #: spectra of the cameras of each letter, "B", "R" or "Z", ordered by their first wavelength. A row for each target,
    #: in the order in which the frames first have it; a target without a frame in the arm has NODATA. The fibermap is
    #: the same in all arms, and has COADD_FIBERSTATUS, the bits that all exposures have
    arms: dict[str, Frame]
    #: int64 [row]: TARGETID
    target_ids: np.ndarray
    #: int64 [row]: number of exposures that were added; the cameras of an exposure (EXPID) count as one
    exposures: np.ndarray
    _exposure_table: Any = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def frame(self) -> Frame:
        """The spectra of a coadd with one arm.

        Raises:
            InvalidArgumentError: the coadd has several arms.
        """
        if len(self.arms) != 1:
            raise InvalidArgumentError(f"the coadd has the arms {', '.join(self.arms)}; take one of Coadd.arms")
        return next(iter(self.arms.values()))

    @property
    def exposure_map(self) -> np.ndarray | None:
        """The EXP_FIBERMAP as a structured array, a row for each exposure of a target by a fibre, with TARGETID,
        EXPID and, if all frames have them, NIGHT, FIBER and FIBERSTATUS. None if a frame has no EXPID."""
        return _cards.table_of(self._exposure_table)

    def to_fits(self, path: Path) -> None:
        """Writes the file that ``spex coadd`` would write. desispec's ``read_spectra`` reads it."""
        ids, exposures = (np.ascontiguousarray(values, np.int64) for values in (self.target_ids, self.exposures))
        natives = [frame._to_native() for frame in self.arms.values()]
        process.call(
            _native.write_coadd, list(self.arms), natives, ids, exposures, self._exposure_table, os.fsencode(path)
        )

    def __repr__(self) -> str:
        bins = {name: f"{len(frame.wave)} bins" for name, frame in self.arms.items()}
        of_arms = ", ".join(f"{name}: {text}" if len(bins) > 1 else text for name, text in bins.items())
        return f"<spexd.Coadd of {len(self.target_ids)} targets, {of_arms}>"


class SkyPca:
    """Principal components of the residuals that the sky model leaves in the sky fibres of frames. They show what
    the model misses, and when. Do not subtract them, because that would remove emission lines."""

    def __init__(self, native: Any) -> None:
        self._native = native
        #: float64 [component]: variances, largest first, in units of the variance of noise
        self.variances: np.ndarray = native.variances
        #: float64 [component, bin]: vectors of length 1, in residuals over their errors; the largest element of each is
        #: positive
        self.vectors: np.ndarray = native.vectors
        #: float64 [bin]: mean of the residuals over their errors
        self.mean: np.ndarray = native.mean
        #: float64 [bin], Angstrom in vacuum
        self.wave = np.array(native.grid.values())
        #: Rms over a frame's sky spectra, float64 [frame, component]; NaN for a frame without any
        self.amplitudes: np.ndarray = native.amplitudes()
        #: Number of sky spectra that were added, int64 [frame]
        self.spectra: np.ndarray = native.spectra()

    @property
    def noise_edge(self) -> float:
        """The variance that noise alone exceeds once in ten thousand times. Components with a smaller variance mean
        nothing."""
        return float(self._native.noise_edge)

    def to_fits(self, path: Path) -> None:
        """Writes the file that ``spex pca`` would write. ``spex plot`` draws it."""
        process.call(self._native.write, os.fsencode(path))

    def __repr__(self) -> str:
        above = np.count_nonzero(self.variances > self.noise_edge)
        return (
            f"<spexd.SkyPca: {len(self.variances)} components of {self._native.weight:g} sky spectra of "
            f"{len(self.spectra)} frames, {above} above noise>"
        )


def coadd(
    frames: Iterable[FrameLike],
    *,
    velocities: Sequence[float] | None = None,
    velocity_column: str | None = None,
    barycentric: bool = False,
    threads: int = 0,
) -> Coadd:
    """Adds exposures of the same targets (TARGETID of the fibermaps) with weights ivar, as ``spex coadd`` does, to the
    bit. Sky fibres are left out.

    The frames of cameras of one letter make an arm, with its own grid. Frames are read one after the other. With one of
    the three options below they are shifted against each other by small velocities. Each arm is then on the grid of its
    first frame, nothing is resampled, and all frames are in memory at once (docs/analysis.md).

    Args:
        frames: sky-subtracted frames, or paths of their files.
        velocities: velocities at which each frame sees light, km/s, in the order of the frames.
        velocity_column: column of the fibermaps that has these velocities, fibre by fibre.
        barycentric: whether the velocities follow from each frame's pointing and time; the coadd is then barycentric.
        threads: threads of a coadd with shifts; 0: one per processor. The result does not depend on it.

    Raises:
        InvalidArgumentError: the grids of an arm differ, a frame has no TARGETID, there is no target, or fibres of an
            exposure would be added twice; the message names the frame.
    """
    if (velocities is not None) + (velocity_column is not None) + barycentric > 1:
        raise InvalidArgumentError("velocities, velocity_column and barycentric exclude each other; give one")
    if threads < 0:
        raise InvalidArgumentError(f"threads is {threads}, must not be negative")
    named = _named(frames)
    if velocities is None and velocity_column is None and not barycentric:
        sums = _native.CoaddFrameSums()
        for native, name in named:
            process.call(sums.add, native, name)
        return _coadd_of(process.call(sums.result))
    shifts = _native.ShiftSource()
    shifts.velocities = [] if velocities is None else [float(velocity) for velocity in velocities]
    shifts.column = "" if velocity_column is None else velocity_column
    shifts.barycentric = barycentric
    both = list(named)
    natives, names = [native for native, _ in both], [name for _, name in both]
    return _coadd_of(process.call(_native.coadd_shifted, natives, names, shifts, threads))


def pca(
    frames: Iterable[FrameLike],
    *,
    components: int = 10,
    fiberflat: Fiberflat = None,
    forget: float = 1.0,
    clip: float = 5.0,
    threads: int = 0,
) -> SkyPca:
    """Finds the principal components of the residuals of sky fibres over frames of one grid, as ``spex pca`` does, to
    the bit.

    Needs 8 bytes of memory for each pair of bins, and 4 for each bin of a sky spectrum. Frames are read one after the
    other.

    Args:
        frames: frames with their sky, or paths of their files, in order of time.
        components: number of components, those with the largest variances.
        fiberflat: divides all frames first; see :meth:`Frame.sky`.
        forget: factor, 0.01 to 1, by which each frame multiplies the weight of earlier ones; 1: all frames count alike.
        clip: limit of residuals in sigma, 1 to 1e6; larger ones are set to it.
        threads: 0: one per processor. The result does not depend on it.

    Raises:
        InvalidArgumentError: a frame's grid differs, or it has no FIBERMAP; the message names the frame.
        FailedPreconditionError: a frame has no sky fibre with data, or there are fewer than two sky spectra.
    """
    for option, value, least, most in (("forget", forget, 0.01, 1), ("clip", clip, 1, 1e6)):
        if not least <= value <= most:
            raise InvalidArgumentError(f"{option} is {value}, must be {least} to {most:g}")
    if threads < 0:
        raise InvalidArgumentError(f"threads is {threads}, must not be negative")
    sums = _native.SkyPcaSums(forget, clip, _products.fiberflat_of(fiberflat), threads)
    for native, name in _named(frames):
        process.call(sums.add, native, name)
    return SkyPca(process.call(sums.solve, components))


def _named(frames: Iterable[FrameLike]) -> Iterator[tuple[Any, bytes]]:
    """Yields the extension's frames, and their names for errors and files. Files are read when they are needed."""
    if isinstance(frames, (str, os.PathLike, Frame)):
        raise InvalidArgumentError("frames must be a list of frames or paths, not one of them")
    for number, frame in enumerate(frames):
        if isinstance(frame, Frame):
            yield frame._to_native(), f"frame {number}".encode()
        else:
            path = os.fsencode(frame)
            yield process.call(_native.read_frame, path)[0], path


def _coadd_of(parts: tuple[list[tuple[str, Any]], np.ndarray, np.ndarray, Any]) -> Coadd:
    arms, target_ids, exposures, table = parts
    return Coadd({name: Frame._from_native(native) for name, native in arms}, target_ids, exposures, table)
