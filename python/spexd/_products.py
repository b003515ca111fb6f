"""Products of frames, computed by the functions of ``spex analyse``."""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spexd import _native
from spexd._processes import process
from spexd._job import Path
from spexd.errors import InvalidArgumentError, SpexdError, error_of


class Templates:
    """A library of stellar template spectra on a grid of parameters. It stays in memory for several calls of
    :meth:`spexd.Frame.velocities`. Immutable; threads may share it."""

    def __init__(self, path: Path) -> None:
        """Reads a file with the HDUs TEMPLATES and PARAMS (docs/analysis.md)."""
        self._native = process.call(_native.load_templates, os.fsencode(path))
        #: path that the library was read from
        self.name = os.fspath(path)

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """Names of the parameters, and the values of each on the grid, ascending."""
        return {name: np.array(values) for name, values in zip(self._native.names, self._native.axes, strict=True)}

    @property
    def wavelength(self) -> tuple[float, float]:
        """First and last wavelength, Angstrom in vacuum."""
        answer: tuple[float, float] = self._native.wavelength
        return answer

    def __len__(self) -> int:
        return int(self._native.count)

    def __repr__(self) -> str:
        grid = ", ".join(f"{len(values)} {name}" for name, values in self.parameters.items())
        return f"<spexd.Templates {self.name}: {len(self)} spectra ({grid})>"


class Sky:
    """The sky of a frame. Names and meanings are those of the file that ``spex analyse --sky`` writes."""

    def __init__(self, native: Any, frame: Any, ivar: np.ndarray | None = None) -> None:
        self._native = native
        self._frame = frame
        #: float64 [bin], electron / Angstrom: one sky for all fibres, not convolved with any resolution
        self.deconvolved: np.ndarray = native.deconvolved
        #: float64 [fibre, bin], electron / Angstrom: the sky convolved with each fibre's resolution; 0 in bins without
        #: a sky
        self.model: np.ndarray = native.model
        #: float64 [fibre, bin], 1 / model^2: inverse variance of the model, statistical and systematic; 0 in bins
        #: without a sky
        self.ivar: np.ndarray = native.ivar() if ivar is None else ivar
        #: float64 [fibre, bin], 1 / model^2: inverse of the statistical variance alone
        self.statistical_ivar: np.ndarray = native.statistical_ivar
        #: uint32 [fibre, bin]: bit BADSKY in bins without a sky
        self.mask: np.ndarray = native.mask()
        #: float64 [fibre]: factor by which bright lines were scaled
        self.throughput: np.ndarray = native.throughput

    @property
    def sky_fibres(self) -> Sequence[int]:
        """Rows of the frame that the sky was made from."""
        answer: Sequence[int] = self._native.sky_fibres
        return answer

    @property
    def rejected(self) -> int:
        """Number of bins of sky fibres that were rejected as outliers."""
        return int(self._native.rejected)

    def to_fits(self, path: Path) -> None:
        """Writes the file that ``spex analyse --sky`` would write."""
        process.call(self._native.write, self._frame, os.fsencode(path))

    def __repr__(self) -> str:
        fibres, bins = self.model.shape
        return f"<spexd.Sky of {len(self.sky_fibres)} sky fibres for {fibres} fibres, {bins} bins>"


class Products:
    """The products that a server made of a frame's spectra; see :meth:`spexd.Client.extract`. A product is None if
    it was not asked for. If it could not be made, accessing it raises its error; the other products and the spectra
    are not affected. Values that the files of ``spex`` store as float32 are sent as float32."""

    def __init__(
        self,
        source: Any,
        sky: dict[str, Any] | None,
        velocities: np.ndarray | None,
        redshifts: np.ndarray | None,
        failed: dict[str, tuple[int, str]],
    ) -> None:
        self._source = source
        self._arrays = sky
        self._sky: Sky | None = None
        self._tables = {"velocities": velocities, "redshifts": redshifts}
        self._failed = failed

    @property
    def errors(self) -> Mapping[str, SpexdError]:
        """The errors that accessing "sky", "velocities" or "redshifts" raises, by name; empty if nothing went wrong."""
        return types.MappingProxyType({name: error_of(*failed) for name, failed in self._failed.items()})

    @property
    def sky(self) -> Sky | None:
        """The sky, as :meth:`spexd.Frame.sky` makes it. :meth:`spexd.Frame.sky_subtracted` accepts it."""
        self._raise_if_failed("sky")
        if self._sky is None and self._arrays is not None:
            ivar = self._arrays["model_ivar"].astype(np.float64)  # inverting it twice would change its last bit
            self._sky = Sky(_native.received_sky(self._arrays), self._source.native(), ivar)
        return self._sky

    @property
    def velocities(self) -> np.ndarray | None:
        """The table of :meth:`spexd.Frame.velocities` with ``models=True``."""
        self._raise_if_failed("velocities")
        return self._tables["velocities"]

    @property
    def redshifts(self) -> np.ndarray | None:
        """The table of :meth:`spexd.Frame.redshifts`."""
        self._raise_if_failed("redshifts")
        return self._tables["redshifts"]

    def _raise_if_failed(self, name: str) -> None:
        if name in self._failed:
            raise error_of(*self._failed[name])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sky": None}

    def __repr__(self) -> str:
        there = {"sky": self._arrays, **self._tables}
        made = [name for name, values in there.items() if values is not None]
        return f"<spexd.Products: {', '.join(made + [f'{name} failed' for name in self._failed])}>"


TemplatesLike = Path | Templates
if TYPE_CHECKING:
    Fiberflat = Path | np.ndarray | None


def request_of(threads: int, fiberflat: Fiberflat = None, sky: Sky | None = None, sky_subtracted: bool = False) -> Any:
    """Returns the request that all products have in common."""
    if threads < 0:
        raise InvalidArgumentError(f"threads is {threads}, must not be negative")
    if sky is not None and sky_subtracted:
        raise InvalidArgumentError("sky: with sky_subtracted the frame has no sky in it any more; give one of the two")
    if sky is not None and fiberflat is not None:
        raise InvalidArgumentError("fiberflat: the sky was made with one or without; give it to frame.sky() alone")
    request = _native.AnalysisRequest(threads)
    if sky is not None:
        request.set_sky(sky._native)
    if sky_subtracted:
        request.set_sky_subtracted()
    if (native := fiberflat_of(fiberflat)) is not None:
        request.set_fiberflat(native)
    return request


def fiberflat_of(fiberflat: Fiberflat) -> Any:
    """Returns the extension's fiberflat, or None."""
    if fiberflat is None:
        return None
    if isinstance(fiberflat, (str, os.PathLike)):
        return process.call(_native.read_fiberflat, os.fsencode(fiberflat))
    values = np.asarray(fiberflat)
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        raise InvalidArgumentError(
            f"fiberflat has shape {values.shape} and type {values.dtype}, must be numbers [fibre, bin]"
        )
    return _native.Fiberflat(np.ascontiguousarray(values, np.float64))


@functools.lru_cache(maxsize=8)
def _analyser(device: int, pid: int) -> Any:
    """Returns this process's analyser of the GPU. ``pid``: a GPU that a parent process used is lost after a fork."""
    process.check_device("cuda")
    analyser = process.call(_native.make_analyser, device)
    process.uses_cuda()
    return analyser


def take_device(request: Any, device: str, on_device: Any) -> None:
    """Makes the request use ``device``; ``on_device``: the frame's arrays on the GPU, or None."""
    if device not in ("cpu", "cuda"):
        raise InvalidArgumentError(f'device is {device!r}, must be "cpu" or "cuda"')
    if device == "cuda":
        analyser = _analyser(0 if on_device is None else on_device.device, os.getpid())
        request.set_analyser(analyser, None if on_device is None else on_device._native)


def fit_velocities(
    frame: Any, templates: TemplatesLike, request: Any, most: float, degree: int, rotation: bool, models: bool
) -> np.ndarray:
    library = templates if isinstance(templates, Templates) else Templates(templates)
    request.set_templates(library._native)
    request.set_most_velocity(most)
    request.set_degree(degree)
    request.set_rotation(rotation)
    return structured(process.call(_native.fit_velocities, frame, request, models))


def find_redshifts(frame: Any, request: Any, most: float, sigma: float) -> np.ndarray:
    request.set_most_redshift(most)
    request.set_line_sigma(sigma)
    return structured(process.call(_native.find_redshifts, frame, request))


def structured(columns: Sequence[tuple[str, np.ndarray]]) -> np.ndarray:
    """Returns one structured array of columns. Further axes of a column are inside each row.

    >>> table = structured([("ROW", np.arange(2)), ("MODEL", np.ones((2, 3)))])
    >>> table.dtype.names, table["MODEL"].shape
    (('ROW', 'MODEL'), (2, 3))
    """
    table = np.empty(len(columns[0][1]), [(name, values.dtype, values.shape[1:]) for name, values in columns])
    for name, values in columns:
        table[name] = values
    return table
