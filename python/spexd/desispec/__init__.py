"""The extraction step of the DESI pipeline, with the arguments of its own (``desispec.scripts.extract``).

::

    from spexd.desispec import main
    main("-i preproc-r0.fits -p psf-r0.fits -w 5760,7620,0.8 -o frame.fits".split(), comm=comm)

``desi_proc`` itself extracts with spexd once :mod:`spexd.desispec.in_place` was imported. All but that works without
desispec.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from spexd.desispec._arguments import complete, idle, parse
from spexd.desispec._ranks import Ranks
from spexd.desispec._work import Work, log, logging_from

__all__ = ["main", "main_gpu_specter", "main_mpi", "parse"]

Arguments = Sequence[str] | argparse.Namespace | None


def main(args: Arguments = None, comm: Any = None) -> None:
    """Extracts a frame and writes it. Bad input, or a bundle that fails, raises and writes nothing.

    Args:
        args: command line without the program's name (default: this program's), or a namespace as :func:`parse`, or the
            pipeline's own, makes it.
        comm: an MPI communicator as mpi4py has it, whose ranks must all call. They divide the bundles, rank 0 writes,
            and the error of one is raised on all. Default: MPI.COMM_WORLD with ``--mpi``, else none.

    With SPEXD_SERVER set, rank 0 has the frame extracted there; the server reads the files by their paths.

    Raises:
        spexd.SpexdError: a subclass for each status code.
    """
    _run(args, comm, None)


def main_mpi(args: Arguments, comm: Any = None, timing: dict[str, float] | None = None) -> None:
    """:func:`main` by the name that the pipeline has for specter. ``timing`` gets the times, in seconds since 1970."""
    _run(args, comm, timing)


def main_gpu_specter(
    args: Arguments, comm: Any = None, timing: dict[str, float] | None = None, coordinator: Any = None
) -> None:
    """:func:`main` by the name that the pipeline has for gpu_specter. A coordinator's communicator is taken."""
    _run(args, comm if coordinator is None else getattr(coordinator, "comm", None), timing)


def _run(args: Arguments, comm: Any, timing: dict[str, float] | None) -> None:
    times = {"frame-start": time.time()}
    options = complete(args if isinstance(args, argparse.Namespace) else parse(args))
    if comm is None and options.mpi:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    with logging_from(options.loglevel):
        ranks = Ranks(comm)
        if ranks.rank == 0 and idle(options):
            log().info("extract: without effect: %s", ", ".join(idle(options)))
        work = Work(options, ranks.rank, ranks.places())
        parts = ranks.together(work.extract)
        times["frame-extract"] = time.time()
        ranks.together(lambda: work.write(parts))
        times["frame-write"] = time.time()
    if timing is not None:
        timing.update(times)
