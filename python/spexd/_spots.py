"""PSFs of sampled spots: files of PSFTYPE SAMPLED-SPOTS, made from arrays. docs/own-psf.md describes the format."""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.polynomial import legendre

from spexd._cards import format_cards
from spexd._job import Path
from spexd.engine import Psf
from spexd.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, PermissionDeniedError, SpexdError

_BLOCK = 2880  # bytes of FITS
_MAX_RESIDUAL = 0.001  # pixels; limit for traces whose degree is chosen here
_MAX_CHOSEN_DEGREE = 15
_MAX_DEGREE = 63
_MAX_FIBRES = 20000
_MAX_FIBRE_MIN = 2**30 - 1
_MAX_SIDE = 32768  # pixels of the CCD
_MAX_SPOT_SIDE = 63  # pixels
_MAX_SAMPLES = 64  # of a pixel along an axis
_MAX_IMAGES = 4096
_MAX_POSITION = 1e9  # on the slit, or Angstrom
_MAX_CAMERA = 60  # characters
_MIN_PSFERR = 1e-9  # smaller values cannot be told from 0, which means that the file states none

_Cards = Mapping[str, object]
_Hdu = tuple[str, np.ndarray, _Cards]  # name, image, and cards besides those of every image


def psf_from_spots(
    path: Path,
    *,
    wavelengths: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    spots: np.ndarray,
    oversampling: int,
    image_shape: Sequence[int],
    spot_positions: np.ndarray | None = None,
    spot_wavelengths: np.ndarray | None = None,
    fibre_positions: np.ndarray | None = None,
    centre: Sequence[float] | None = None,
    degree: int | None = None,
    psferr: float = 0.01,
    fibre_min: int = 0,
    camera: str = "",
    overwrite: bool = False,
) -> Psf:
    """Writes the PSF of any instrument, from sampled traces and images of its spots, and reads it.

    Spots between positions and wavelengths are interpolated linearly, and placed on the CCD's pixels as if the light of
    each sample were spread evenly over the sample. Negative light in a spot counts as 0.

    Args:
        path: path of the file to write. The file gets this name once it is complete and was read without an error.
        wavelengths: [wavelength], ascending, at least two: where the traces are sampled, Angstrom in vacuum. Spectra
            can be extracted between the first and the last.
        x: [fibre, wavelength]: CCD column of each spot's centre; integers are centres of pixels. A fibre whose samples
            are all NaN in ``x`` and ``y`` is lost: it has no spectrum.
        y: [fibre, wavelength]: CCD row of each spot's centre. Rows may rise or fall with the wavelength.
        spots: [position, wavelength, row, column]: images; each value is the light in a sample. The file stores them
            scaled to sum 1, float32 as float32 and other numbers as float64.
        oversampling: samples per CCD pixel along each axis, 1 to 64. An image need not be a whole number of pixels.
        image_shape: rows and columns of the CCD.
        spot_positions: [position], ascending: where on the slit the images are, in any unit. Default: fibre numbers
            from 0, if there are images for each fibre or one for all.
        spot_wavelengths: [wavelength] of the images, ascending, Angstrom. They may differ from those of the traces, and
            may be omitted if there is only one.
        fibre_positions: [fibre], on the axis of ``spot_positions`` and within its range. Default: fibre numbers from 0;
            with a single position, that position for all fibres.
        centre: column and row, in samples from 0, of the point of the images that is on the trace. Default: the middle,
            (columns - 1) / 2 and (rows - 1) / 2.
        degree: degree of the Legendre series in wavelength that are fitted to ``x`` and ``y``. Default: for each the
            lowest whose largest residual is less than 0.001 pixels, at most 15 and at most half the number of
            wavelengths.
        psferr: fractional error of the PSF model, for chi2pix.
        fibre_min: number of the first fibre.
        camera: name of the camera; frames of other cameras are refused. "": any camera.
        overwrite: whether an existing file may be replaced.

    Raises:
        spexd.AlreadyExistsError: the file exists, and ``overwrite`` is False.
        spexd.InvalidArgumentError: the message names the argument, its value and the limit.
    """
    file = os.fsdecode(path)
    if not overwrite and os.path.lexists(file):
        raise AlreadyExistsError(f"{file} is there already; see overwrite")
    waves = _ascending("wavelengths", wavelengths, least=2)
    traces = _trace_hdus(waves, x, y, degree)
    fibres = len(traces[0][1])
    images = _images(spots, oversampling)
    if spot_wavelengths is None and images.shape[1] == 1:
        spot_wavelengths = waves[:1]
    primary = {
        "PSFTYPE": "SAMPLED-SPOTS",
        "PSFVER": 1,
        **_sides(image_shape),
        "FIBERMIN": _whole("fibre_min", fibre_min, 0, _MAX_FIBRE_MIN),
        "PSFERR": _number("psferr", psferr, _MIN_PSFERR, 1000),
        **_camera(camera),
    }
    hdus: list[_Hdu] = [
        *traces,
        ("SPOTS", images, {"OVERSAMP": int(oversampling), **_centre(centre, images)}),
        *_slit(spot_positions, fibre_positions, len(images), fibres),
        ("SPOTWAVE", _of_images("spot_wavelengths", spot_wavelengths, images.shape[1]), {}),
    ]
    _publish(file, primary, hdus)
    return Psf(file)


def _trace_hdus(waves: np.ndarray, x: np.ndarray, y: np.ndarray, degree: int | None) -> list[_Hdu]:
    """Returns XTRACE and YTRACE: the series of the fibres, with NaN as coefficients of lost fibres."""
    samples = {"x": _array("x", x, "fibre, wavelength"), "y": _array("y", y, "fibre, wavelength")}
    fibres = len(samples["x"])
    for name, values in samples.items():
        if values.shape != (fibres, len(waves)) or not 1 <= fibres <= _MAX_FIBRES:
            raise InvalidArgumentError(
                f"{name} has shape {values.shape}, must be (fibres, {len(waves)}) with 1 to {_MAX_FIBRES} fibres, the same "
                "number in x and y"
            )
    good = ~np.all([np.isnan(values).all(axis=1) for values in samples.values()], axis=0)
    if not good.any():
        raise InvalidArgumentError("x and y are NaN for all fibres, at least one must have traces")
    if degree is not None:
        degree = _whole("degree", degree, 0, min(_MAX_DEGREE, len(waves) - 1))
    hdus: list[_Hdu] = []
    for name, values in samples.items():
        wrong = good[:, None] & ~np.isfinite(values)
        if wrong.any():
            fibre, k = np.argwhere(wrong)[0]
            raise InvalidArgumentError(
                f"{name} of fibre {fibre} at {waves[k]:g} Angstrom is {values[fibre, k]}, must be finite, unless x and y of "
                "the fibre are NaN at all wavelengths"
            )
        fitted = _fit(name, waves, values, np.flatnonzero(good), degree)
        series = np.full((fibres, fitted.shape[1]), np.nan)
        series[good] = fitted
        hdus.append((f"{name.upper()}TRACE", series, {"WAVEMIN": waves[0], "WAVEMAX": waves[-1]}))
    return hdus


def _fit(name: str, waves: np.ndarray, values: np.ndarray, good: np.ndarray, degree: int | None) -> np.ndarray:
    """Returns Legendre series [fibre, coefficient] of the fibres ``good``: of the given degree, or of the lowest
    that suffices."""
    t = 2 * (waves - waves[0]) / (waves[-1] - waves[0]) - 1
    most = min(_MAX_CHOSEN_DEGREE, len(waves) // 2)
    for tried in [degree] if degree is not None else range(most + 1):
        series = legendre.legfit(t, values[good].T, tried)
        off = np.abs(legendre.legval(t, series) - values[good])
        if degree is not None or off.max() < _MAX_RESIDUAL:
            return series.T
    worst, k = np.unravel_index(off.argmax(), off.shape)
    raise InvalidArgumentError(
        f"{name} of fibre {good[worst]} is {off.max():.2g} pixels from a Legendre series of degree {most} at {waves[k]:g} "
        f"Angstrom, must be less than {_MAX_RESIDUAL}: give more wavelengths (a degree of half their number is tried, at "
        f"most {_MAX_CHOSEN_DEGREE}), or degree, if the traces have noise"
    )


def _images(spots: np.ndarray, oversampling: int) -> np.ndarray:
    images = _array("spots", spots, "position, wavelength, row, column")
    if not 1 <= images.shape[0] * images.shape[1] <= _MAX_IMAGES:
        raise InvalidArgumentError(f"spots has shape {images.shape}, must have 1 to {_MAX_IMAGES} images")
    samples = _whole("oversampling", oversampling, 1, _MAX_SAMPLES)
    most = (_MAX_SPOT_SIDE - 1) * samples
    if not (1 <= images.shape[2] <= most and 1 <= images.shape[3] <= most):
        raise InvalidArgumentError(
            f"spots has images of {images.shape[2]} rows and {images.shape[3]} columns, must be 1 to {most}: with "
            f"oversampling {samples} a spot covers at most {_MAX_SPOT_SIDE} pixels"
        )
    sums = images.sum(axis=(2, 3), dtype=np.float64)
    wrong = ~(np.isfinite(sums) & (sums > 0))  # sums with a number that is not finite are not finite
    if wrong.any():
        position, wave = np.argwhere(wrong)[0]
        raise InvalidArgumentError(
            f"spots[{position}, {wave}] adds up to {sums[position, wave]:g}, must be finite and more than 0"
        )
    kind = np.float32 if images.dtype == np.float32 else np.float64
    return np.asarray(images / sums[:, :, None, None], kind)


def _slit(spot_positions: np.ndarray | None, fibre_positions: np.ndarray | None, images: int, fibres: int) -> list[_Hdu]:
    """Returns SPOTPOS and FIBERPOS."""
    numbers = np.arange(fibres, dtype=np.float64)
    if spot_positions is None and images in (1, fibres):
        spot_positions = numbers[:images]
    positions = _of_images("spot_positions", spot_positions, images)
    if fibre_positions is None:
        fibre_positions = numbers if images > 1 else np.full(fibres, positions[0])
    places = _array("fibre_positions", fibre_positions, "fibre")
    if places.shape != (fibres,):
        raise InvalidArgumentError(f"fibre_positions has {len(places)} numbers, must have {fibres}, one for each fibre")
    outside = ~np.isfinite(places) if images == 1 else ~((places >= positions[0]) & (places <= positions[-1]))
    if outside.any():
        fibre = int(outside.argmax())
        raise InvalidArgumentError(
            f"fibre_positions[{fibre}] is {places[fibre]:g}, must be within spot_positions, {positions[0]:g} to "
            f"{positions[-1]:g}"
        )
    return [("SPOTPOS", positions, {}), ("FIBERPOS", places.astype(np.float64), {})]


def _of_images(name: str, values: np.ndarray | None, images: int) -> np.ndarray:
    """Returns the positions or wavelengths of images along an axis of ``spots``."""
    if values is None:
        raise InvalidArgumentError(f"{name} is missing: spots has {images} of them")
    numbers = _ascending(name, values, least=1)
    if len(numbers) != images:
        raise InvalidArgumentError(f"{name} has {len(numbers)} numbers, must have {images}, as spots")
    return numbers


def _centre(centre: Sequence[float] | None, images: np.ndarray) -> dict[str, float]:
    sides = {"XCENTER": images.shape[3], "YCENTER": images.shape[2]}
    if centre is None:
        return {key: (side - 1) / 2 for key, side in sides.items()}
    column, row = _pair("centre", centre, "column and row")
    values = {"XCENTER": column, "YCENTER": row}
    return {key: _number("centre", values[key], 0, side - 1) for key, side in sides.items()}


def _sides(image_shape: Sequence[int]) -> dict[str, int]:
    rows, columns = _pair("image_shape", image_shape, "rows and columns")
    return {key: _whole("image_shape", side, 1, _MAX_SIDE) for key, side in (("NPIX_X", columns), ("NPIX_Y", rows))}


def _camera(camera: str) -> dict[str, str]:
    if not isinstance(camera, str) or len(camera) > _MAX_CAMERA or not (camera.isascii() and camera.isprintable()):
        raise InvalidArgumentError(f"camera is {camera!r}, must be at most {_MAX_CAMERA} printable ASCII characters")
    return {"CAMERA": camera} if camera else {}


def _array(name: str, values: np.ndarray, axes: str) -> np.ndarray:
    """Returns an array of numbers with as many axes as are named."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.ndim != len(axes.split(",")):
        raise InvalidArgumentError(f"{name} has shape {array.shape} and type {array.dtype}, must be numbers [{axes}]")
    return array


def _ascending(name: str, values: np.ndarray, least: int) -> np.ndarray:
    numbers = _array(name, values, "number").astype(np.float64)
    if len(numbers) < least:
        raise InvalidArgumentError(f"{name} has {len(numbers)} numbers, must have {least} or more")
    wrong = ~(np.abs(numbers) <= _MAX_POSITION)
    wrong[1:] |= ~(np.diff(numbers) > 0)
    if wrong.any():
        k = int(wrong.argmax())
        raise InvalidArgumentError(f"{name}[{k}] is {numbers[k]:g}, must be ascending and within {_MAX_POSITION:g} either way")
    return numbers


def _pair(name: str, values: Sequence[float], what: str) -> tuple[float, float]:
    try:
        first, second = values
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name} is {values!r}, must be {what}") from None
    return first, second


def _whole(name: str, value: object, least: int, most: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise InvalidArgumentError(f"{name} is {value!r}, must be a whole number of {least} to {most}")
    return number


def _number(name: str, value: float, least: float, most: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not least <= number <= most:
        raise InvalidArgumentError(f"{name} is {value!r}, must be {least:g} to {most:g}")
    return number


def _publish(file: str, primary: _Cards, hdus: Sequence[_Hdu]) -> None:
    """Writes a file under a temporary name, reads it, and renames it if there was no error."""
    folder, name = os.path.split(file)
    partial = os.path.join(folder, f".{name}.spexd-{os.urandom(4).hex()}")
    try:
        with open(partial, "xb") as stream:
            for piece in _pieces(primary, hdus):
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        Psf(partial)
        os.replace(partial, file)
    except SpexdError as error:
        raise type(error)(str(error).replace(partial, file)) from None
    except FileNotFoundError as error:
        raise NotFoundError(f"{file}: {error.strerror}") from error
    except PermissionError as error:
        raise PermissionDeniedError(f"{file}: {error.strerror}") from error
    except OSError as error:
        raise InvalidArgumentError(f"{file}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(partial)


def _pieces(primary: _Cards, hdus: Sequence[_Hdu]) -> Iterator[bytes | memoryview]:
    """Yields the bytes of a FITS file: a primary HDU without data, and images."""
    yield _header({"SIMPLE": True, "BITPIX": 8, "NAXIS": 0, "EXTEND": True, **primary})
    for name, image, cards in hdus:
        axes = {f"NAXIS{k + 1}": side for k, side in enumerate(reversed(image.shape))}
        shape = {"BITPIX": -8 * image.itemsize, "NAXIS": image.ndim, **axes, "PCOUNT": 0, "GCOUNT": 1}
        yield _header({"XTENSION": "IMAGE", **shape, "EXTNAME": name, **cards})
        yield np.ascontiguousarray(image, image.dtype.newbyteorder(">")).data
        yield bytes(-image.nbytes % _BLOCK)


def _header(cards: _Cards) -> bytes:
    text = "".join(card for key, value in cards.items() for card in format_cards(key, value)) + "END"
    return text.ljust(-(-len(text) // _BLOCK) * _BLOCK).encode("ascii")
