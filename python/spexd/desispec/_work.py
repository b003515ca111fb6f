"""The work of one rank: it extracts its fibres, and rank 0 writes the frame."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
from collections.abc import Iterator
from typing import Any

from spexd._job import Spec
from spexd.desispec._merge import merge
from spexd.desispec._ranks import divide
from spexd.engine import Engine, Psf
from spexd.errors import InternalError, InvalidArgumentError
from spexd.frame import Frame

Placements = list[tuple[str, frozenset[int]]]


class Work:
    """The work of one rank. ``placements``: host and processors of each rank."""

    def __init__(self, options: argparse.Namespace, rank: int, placements: Placements) -> None:
        self._options = options
        self._rank = rank
        self._placements = placements

    def extract(self) -> Frame | None:
        """Returns this rank's spectra, None if no fibres are left for it."""
        if os.environ.get("SPEXD_SERVER"):
            return self._checked(self._by_server()) if self._rank == 0 else None
        options, psf = self._options, Psf(self._options.psf)
        parts = divide(_fibres(options, psf), options.bundlesize, len(self._placements))
        if self._rank >= len(parts):
            return None
        device = "cpu" if options.no_gpu else "cuda" if options.gpu else "auto"
        engine = Engine(device, threads=_threads(self._placements[: len(parts)], self._rank))
        fibres = parts[self._rank]
        log().info("extract: %s fibres %d to %d by %r", options.input, fibres[0], fibres[-1], engine)
        spec = _spec(options) | {"first_fibre": fibres.start, "fibre_count": len(fibres)}
        return self._checked(engine.extract(options.input, psf=psf, fibermap=options.fibermap, **spec))

    def _by_server(self) -> Frame:
        from spexd.client import Client  # needs grpcio

        options = self._options
        with Client() as client:
            log().info("extract: %s on %s", options.input, os.environ["SPEXD_SERVER"])
            return client.extract(options.input, psf=options.psf, fibermap=options.fibermap, **_spec(options))

    def _checked(self, frame: Frame) -> Frame:
        if frame.failed_bundles:
            raise InternalError(f"{self._options.input}: {'; '.join(frame.failed_bundles)}")
        return frame

    def write(self, parts: list[Frame | None]) -> None:
        """Writes the frame from all ranks' spectra. ``parts``: empty except on rank 0."""
        if not parts:
            return
        frame = merge([part for part in parts if part is not None])
        for warning in frame.warnings:
            log().warning("%s", warning)
        options = self._options
        for path in (options.output, options.model):
            if path is not None:
                os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        frame.to_fits(options.output, model=options.model)
        log().info("extract: wrote %s", options.output)


def _spec(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the fields of Spec."""
    return {
        "wavelength": options.wavelength,
        "first_fibre": options.specmin,
        "fibre_count": options.nspec,
        "bundle_size": options.bundlesize,
        "psferr": options.psferr,
        "regularize": options.regularize,
        "barycentric_correction": options.barycentric_correction,
        "scores": not options.no_scores,
        "model": options.model is not None,
    }


def _fibres(options: argparse.Namespace, psf: Psf) -> range:
    Spec(**_spec(options)).native()  # checks them
    first, most = options.specmin, psf.fibres - options.specmin
    count = most if options.nspec is None else options.nspec
    if not 1 <= count <= most:
        raise InvalidArgumentError(
            f"--specmin {first} --nspec {options.nspec}: PSF {psf.name} has fibres 0 to {psf.fibres - 1}"
        )
    return range(first, first + count)


def _threads(placements: Placements, rank: int) -> int:
    """Returns this rank's share of the processors on which it may run."""
    host, processors = placements[rank]
    sharing = sum(other == host and not processors.isdisjoint(theirs) for other, theirs in placements)
    return max(1, len(processors) // sharing)


@contextlib.contextmanager
def logging_from(level: str | None) -> Iterator[None]:
    """Logs nothing below a level within the context; None leaves the level as it is."""
    before = log().level
    if level is not None:
        log().setLevel(level)
    try:
        yield
    finally:
        log().setLevel(before)


def log() -> logging.Logger:
    """Returns the pipeline's logger if it is installed, else that of spexd."""
    try:
        from desiutil.log import get_logger
    except ImportError:
        return logging.getLogger("spexd")
    answer: logging.Logger = get_logger()
    return answer
