"""The pipeline's measurement of trace shifts, ``desi_compute_trace_shifts``, with the pipeline's own arguments
(``desispec.scripts.trace_shifts``).

::

    from spexd.desispec import trace_shifts
    trace_shifts.main("-i preproc-r0.fits --psf psf-r0.fits --sky --degxx 2 --degyx 2 -o shifted-psf-r0.fits".split())

``python -m spexd.desispec.trace_shifts`` takes the same command line. The spectra of ``--sky`` and ``--arc-lamps`` are
files of the installed desispec.
"""

from __future__ import annotations

import argparse
import importlib.resources
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import spexd
from spexd.desispec._work import log
from spexd.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, SpexdError

__all__ = ["main", "parse"]

_SKY, _ARC_LAMPS = "spec-sky.dat", "spec-arc-lamps.dat"  # in desispec/data

_REFUSED = {
    "--lines": "it asks for a fit to a list of lines, which spexd does not do; give --arc-lamps or --spectrum",
    "--outoffsets": "it asks for a file of single measurements, which spexd does not write; leave the flag out",
}

# Options that only control how the pipeline's own measurement works, with their defaults.
_IDLE: dict[str, Any] = {
    "--nfibers": None,
    "--max-error": 0.05,
    "--width": 7,
    "--ccd-rows-rebin": 4,
    "--no-large-shift-scan": False,
}


def parse(options: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses options, with the names that the pipeline gives them.

    >>> args = parse("-i image.fits --psf psf.fits -o shifted.fits --sky --degxx 2".split())
    >>> args.outpsf, args.sky, args.degxx, args.degxy
    ('shifted.fits', True, 2, 0)
    """
    return _make_parser().parse_args(options)


def main(args: Sequence[str] | argparse.Namespace | None = None) -> None:
    """Measures the trace shifts of a preprocessed frame and writes the PSF with moved traces.

    Args:
        args: command line without the program's name (default: this program's), or a namespace made by :func:`parse` or
            by the pipeline's own ``parse``.

    Raises:
        spexd.FailedPreconditionError: the shifts in x cannot be measured; nothing is written. If only those in y cannot
            be measured, a warning is logged, and the rows of traces are not moved.
        spexd.SpexdError: a subclass for each status code; the message names flag, field or file.
    """
    options = _complete(args if isinstance(args, argparse.Namespace) else parse(args))
    idle = [flag for flag, default in _IDLE.items() if getattr(options, _name(flag)) != default]
    if idle:
        log().info("trace shifts: without effect: %s", ", ".join(idle))
    psf = options.psf if options.psf is not None else _default_psf(options.image)
    axes, reference = _measured(options)
    shifts = spexd.trace_shifts(
        options.image,
        psf=psf,
        reference=reference,
        axes=axes,
        degrees=(options.degxx, options.degxy, options.degyx, options.degyy),
    )
    log().info("trace shifts: %s: %r", options.image, shifts)
    if shifts.status_x == "refused":
        raise FailedPreconditionError(f"{options.image} with PSF {psf}: trace shifts were not measured: {shifts.reason}")
    if shifts.status_y == "refused":
        log().warning("%s with PSF %s: trace shifts in y were not measured: %s", options.image, psf, shifts.reason)
    os.makedirs(os.path.dirname(options.outpsf) or ".", exist_ok=True)
    spexd.write_shifted_psf(psf, shifts, options.outpsf, image=options.image)
    log().info("trace shifts: wrote %s", options.outpsf)


def _measured(options: argparse.Namespace) -> tuple[str, str | None]:
    """Returns the axes and the path of the reference."""
    if options.continuum:
        return "x", None
    sky, lamps = options.sky, options.arc_lamps
    if options.auto:
        flavor = str(_header(options.image).get("FLAVOR", "")).strip().lower()
        if not flavor:
            raise InvalidArgumentError(f"--auto: {options.image} has no FLAVOR; give --sky, --arc-lamps or --continuum")
        if flavor == "flat":
            return "x", None
        sky, lamps = flavor != "arc", flavor == "arc"
    if sky or lamps:
        return "xy", _spectrum("--sky" if sky else "--arc-lamps", _SKY if sky else _ARC_LAMPS)
    if options.spectrum is not None:
        return "xy", options.spectrum
    return ("xy" if options.degyx > 0 or options.degyy > 0 else "x"), None


def _spectrum(flag: str, name: str) -> str:
    try:
        path = importlib.resources.files("desispec").joinpath("data", name)
    except ImportError as error:
        raise NotFoundError(f"{flag}: desispec, which has {name}, is not installed; give --spectrum FILE") from error
    return str(path)


def _header(image: str) -> Mapping[str, Any]:
    from astropy.io import fits

    with fits.open(image) as hdus:
        header: Mapping[str, Any] = (hdus["IMAGE"] if "IMAGE" in hdus else hdus[0]).header
        return header


def _default_psf(image: str) -> str:
    """Returns the PSF of the calibration data, found as by the pipeline."""
    try:
        from desispec.calibfinder import findcalibfile
    except ImportError as error:
        raise InvalidArgumentError("--psf is missing; only desispec, which is not installed, has a default") from error
    path = findcalibfile([_header(image)], "PSF")
    if path is None:
        raise NotFoundError(f"--psf is missing, and the calibration data has no PSF for {image}")
    return str(path)


def _complete(args: argparse.Namespace) -> argparse.Namespace:
    """Adds defaults for options that are missing. InvalidArgumentError: an option asks for something that spexd does
    not do."""
    defaults = parse(["--image", "", "--outpsf", ""])
    whole = argparse.Namespace(**{**vars(defaults), **vars(args)})
    for flag, why in _REFUSED.items():
        if getattr(whole, _name(flag)) is not None:
            raise InvalidArgumentError(f"{flag}: {why}")
    return whole


def _name(flag: str) -> str:
    return flag[2:].replace("-", "_")


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spexd.desispec.trace_shifts",
        description="Measures the trace shifts of a preprocessed frame and writes the PSF with moved traces.",
    )
    parser.add_argument("-i", "--image", required=True, help="preprocessed frame")
    parser.add_argument("--psf", help="PSF; default: that of the calibration data")
    parser.add_argument("-o", "--outpsf", required=True, help="PSF to write")
    parser.add_argument("--spectrum", help="spectrum of known wavelengths: two columns of text")
    parser.add_argument("--sky", action="store_true", help=f"as --spectrum desispec/data/{_SKY}")
    parser.add_argument("--arc-lamps", action="store_true", help=f"as --spectrum desispec/data/{_ARC_LAMPS}")
    parser.add_argument("--continuum", action="store_true", help="the light of lamps: measure shifts in x alone")
    parser.add_argument("--auto", action="store_true", help="choose among these three by the image's FLAVOR")
    for axis, along in ("x", "x"), ("x", "y"), ("y", "x"), ("y", "y"):
        over = "fibres" if along == "x" else "wavelength"
        text = f"degree of shifts in {axis} over {over}; default: 0"
        parser.add_argument(f"--deg{axis}{along}", type=int, default=0, help=text)
    for flag, why in _REFUSED.items():
        parser.add_argument(flag, help=f"refused: {why}")
    group = parser.add_argument_group("without effect", "these steer how the pipeline's own measurement goes about it")
    for flag, default in _IDLE.items():
        if default is False:
            group.add_argument(flag, action="store_true")
        else:
            group.add_argument(flag, type=float if flag == "--max-error" else int, default=default)
    return parser


def _run() -> None:
    logging.basicConfig(format="%(levelname)s: %(message)s")
    try:
        main()
    except SpexdError as error:
        sys.exit(f"spexd.desispec.trace_shifts: {error}")


if __name__ == "__main__":
    _run()
