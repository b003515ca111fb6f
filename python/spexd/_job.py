"""The options of an extraction, and reports of its progress: the same in this process and on a server."""

from __future__ import annotations

import contextlib
import dataclasses
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from spexd import _cards, _native
from spexd.errors import InvalidArgumentError

Path = str | os.PathLike[str]
Wavelength = str | Sequence[float] | None
Report = Callable[[int, int], None]
Progress = bool | Report | None
Degrees = Sequence[int]
#: options of a job, as core/frame/job_options.h defines them
OPTIONS = _native.job_options()


@dataclasses.dataclass(frozen=True)
class Arrays:
    """An image in memory, [row, column]: float32 pixels, float32 ivar, and int32 mask or None."""

    pixels: np.ndarray
    ivar: np.ndarray
    mask: np.ndarray | None
    cards: list[str]


@dataclasses.dataclass(frozen=True)
class Spec:
    """A job without its inputs. The fields are those of OPTIONS. None: the default, which is the pipeline's."""

    wavelength: Wavelength = None
    first_fibre: int = 0
    fibre_count: int | None = None
    bundle_size: int = 25
    psferr: float | None = None
    regularize: float = 0.0
    barycentric_correction: bool = False
    scores: bool = True
    model: bool = False
    trace_shifts: str = "off"
    trace_degrees: Degrees = (2, 2, 2, 1)
    trace_required: bool = False
    priority: int = 0

    def grid(self) -> _native.Grid | None:
        """Returns the wavelength grid, or None for the PSF's range at 0.8 Angstrom."""
        if self.wavelength is None:
            return None
        if isinstance(self.wavelength, str):
            return _native.parse_grid(self.wavelength)
        try:
            values = [float(value) for value in self.wavelength]
        except (TypeError, ValueError):
            given = f"wavelength is {self.wavelength!r}"
            raise InvalidArgumentError(f"{given}, must be (first, last, step) in Angstrom") from None
        if len(values) != 3:
            raise InvalidArgumentError(f"wavelength has {len(values)} values, must be (first, last, step) in Angstrom")
        return _native.make_grid(*values)

    def native(self) -> _native.Spec:
        """Returns the spec as an object of the extension, checked. InvalidArgumentError names option, value and
        limits."""
        spec = _native.Spec()
        for option in OPTIONS:
            value: Any = getattr(self, option.name)
            if value is None:
                continue
            try:
                if option.kind == "grid":
                    value = self.grid()
                elif option.kind == "axes":
                    value = str(value)
                elif option.kind == "degrees":
                    value = _degrees(option.name, value)
                elif option.kind == "bool":
                    value = bool(value)
                else:
                    option.check(value)
                setattr(spec, option.name, value)
            except TypeError:
                kind = "a whole number" if option.kind == "int" else "a number"
                raise InvalidArgumentError(f"{option.name} is {value!r}, must be {kind}") from None
        return spec


def _degrees(name: str, values: Degrees) -> list[int]:
    try:
        degrees = [operator.index(value) for value in values]
    except TypeError:
        degrees = []
    if len(degrees) != 4 or not all(0 <= degree < 2**31 for degree in degrees):
        raise InvalidArgumentError(
            f"{name} is {values!r}, must be four degrees, such as (2, 2, 2, 1): of the shifts in x over fibres and over "
            "wavelength, and of those in y"
        )
    return degrees


def check_spec(spec: Spec, reference: Path | None) -> None:
    """InvalidArgumentError: a bad option, or an option of trace shifts without ``trace_shifts``."""
    spec.native().check(reference is not None)


def arrays_of(image: Any, ivar: Any, mask: Any, header: object) -> Arrays | None:
    """Returns the arrays of a call, None if ``image`` is a path. They are the caller's own if their layout and type
    allow it."""
    if isinstance(image, (str, os.PathLike)):
        if ivar is not None or mask is not None or header is not None:
            raise InvalidArgumentError("image is a path: its file has IVAR, MASK and header, so give none of these")
        return None
    if ivar is None:
        raise InvalidArgumentError("ivar is missing: an image in memory needs the inverse variance of its pixels")
    pixels = _plane("image", image, np.float32, None)
    weights = _plane("ivar", ivar, np.float32, pixels.shape)
    flags = None if mask is None else _plane("mask", mask, np.int32, pixels.shape)
    for values in (image, ivar, mask):
        if np.ma.is_masked(values):  # pixels that a masked array hides carry no data
            weights = np.where(np.ma.getmaskarray(values), np.float32(0), weights)
    return Arrays(pixels, weights, flags, _cards.cards_of(header))


def _plane(name: str, values: object, dtype: type, shape: tuple[int, ...] | None) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 2 or array.size == 0:
        raise InvalidArgumentError(f"{name} has shape {array.shape}, must be [row, column]")
    if shape is not None and array.shape != shape:
        raise InvalidArgumentError(f"{name} has shape {array.shape}, the image has {shape}")
    if array.dtype.kind not in ("fiu" if dtype is np.float32 else "iub"):
        raise InvalidArgumentError(f"{name} has type {array.dtype}, must be {np.dtype(dtype)}")
    if dtype is np.int32 and array.dtype.itemsize > 4 and (array.max() >= 2**32 or array.min() < -(2**31)):
        raise InvalidArgumentError(f"{name} has bits beyond the 32 of {np.dtype(dtype)}")
    if dtype is np.int32 and array.dtype == np.uint32:
        array = array.view(np.int32)  # the pipeline's masks: the bits stay the same
    return np.ascontiguousarray(array, dtype)


@contextlib.contextmanager
def progress_of(progress: Progress, unit: str = "bundle") -> Iterator[Report | None]:
    """Provides the function to call with (done, total), or None."""
    if progress is not True:
        yield progress or None
        return
    from tqdm.auto import tqdm

    with tqdm(unit=unit) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report
