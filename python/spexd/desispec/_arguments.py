"""The command line of the pipeline's extraction."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from spexd.errors import InvalidArgumentError


def parse(options: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses options, with the names that the pipeline gives them.

    >>> parse("-i image.fits -p psf.fits -o frame.fits -w 5760,7620,0.8".split()).wavelength
    '5760,7620,0.8'
    """
    return make_parser().parse_args(options)


def complete(args: argparse.Namespace) -> argparse.Namespace:
    """Adds defaults for options that are missing, because other versions of the pipeline have fewer or different
    options. InvalidArgumentError: an option asks for something that spexd does not do."""
    defaults = parse(["--input", "", "--psf", "", "--output", ""])
    whole = argparse.Namespace(**{**vars(defaults), **vars(args)})
    for flag, why in _REFUSED.items():
        if getattr(whole, _name(flag)):
            raise InvalidArgumentError(f"{flag}: {why}")
    if whole.gpu and whole.no_gpu:
        raise InvalidArgumentError("--gpu: not together with --no-gpu")
    level = whole.loglevel or ("info" if whole.verbose else None)
    if level is not None and level.lower() not in _LEVELS:
        raise InvalidArgumentError(f'--loglevel is "{level}", must be one of {", ".join(_LEVELS)}')
    whole.loglevel = None if level is None else level.upper()
    return whole


def idle(args: argparse.Namespace) -> list[str]:
    """Returns the given options that have no effect, as the command line names them.

    >>> idle(parse("-i a -p b -o c --nwavestep 30 --async-io".split()))
    ['--nwavestep', '--async-io']
    """
    return [flag for flag, default in _IDLE.items() if getattr(args, _name(flag)) != default]


def _name(flag: str) -> str:
    return flag[2:].replace("-", "_")


_LEVELS = ("debug", "info", "warn", "warning", "error", "critical")

# Options for what spexd does not do, with the same reasons that `spex` gives.
_REFUSED = {
    "--use-specter": "it asks for the algorithm of specter, which spexd does not have; leave the flag out",
    "--decorrelate-fibers": "it asks to decorrelate fibres, which spexd does not do; leave the flag out",
}

# Options that only control how the pipeline's own extractors work, with their defaults.
_IDLE = {
    "--nsubbundles": 5,
    "--nwavestep": 50,
    "--pixpad-frac": 0.8,
    "--wavepad-frac": 0.2,
    "--wavepad": 10,
    "--ranks-per-bundle": None,
    "--async-io": False,
}


def make_parser() -> argparse.ArgumentParser:
    """Makes the parser, from which the manual page (docs/reference) is also generated."""
    parser = argparse.ArgumentParser(prog="spexd.desispec", description="Extracts the spectra of a preprocessed frame.")
    _add_files(parser)
    _add_job(parser)
    parser.add_argument("--no-gpu", action="store_true", help="use the CPU even where CUDA can be had")
    parser.add_argument("--gpu", "--use-gpu", action="store_true", help="fail where CUDA cannot be had")
    parser.add_argument("-v", "--verbose", action="store_true", help="as --loglevel info")
    parser.add_argument("--loglevel", help="least level that is logged: debug, info, warn, error or critical")
    parser.add_argument("--mpi", action="store_true", help="divide the bundles among the ranks of MPI.COMM_WORLD")
    for flag, why in _REFUSED.items():
        parser.add_argument(flag, action="store_true", help=f"refused: {why}")
    _add_ignored(parser)
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-i", "--input", required=True, help="preprocessed frame")
    parser.add_argument("-p", "--psf", required=True, help="PSF")
    parser.add_argument("-f", "--fibermap", help="file with the FIBERMAP; default: the frame's own")
    parser.add_argument("-o", "--output", required=True, help="frame to write")
    parser.add_argument("-m", "--model", help="2-D model image to write")


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-w", "--wavelength", help="first,last,step [Angstrom]; default: the PSF's range at 0.8")
    parser.add_argument("-s", "--specmin", type=int, default=0, help="first spectrum")
    parser.add_argument("-n", "--nspec", type=int, help="number of spectra; default: to the last")
    parser.add_argument("-r", "--regularize", type=float, default=0.0, help="weight of a prior flux = 0 on every bin")
    parser.add_argument("--bundlesize", type=int, default=25, help="spectra that are solved together; default: 25")
    parser.add_argument("--psferr", type=float, help="fractional error of the PSF model; default: the PSF's own")
    parser.add_argument("--barycentric-correction", action="store_true", help="wavelengths as at the barycentre")
    parser.add_argument("--no-scores", action="store_true", help="compute no scores")


def _add_ignored(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("without effect", "these steer how the pipeline's own extractors go about it")
    for flag, default in _IDLE.items():
        if default is False:
            group.add_argument(flag, action="store_true")
        else:
            group.add_argument(flag, type=float if flag.endswith("-frac") else int, default=default)
