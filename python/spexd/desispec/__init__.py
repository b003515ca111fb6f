"""The extraction step of the DESI pipeline, with the pipeline's own arguments (``desispec.scripts.extract``), and its
measurement of trace shifts, :mod:`spexd.desispec.trace_shifts`.

::

    from spexd.desispec import main
    main("-i preproc-r0.fits -p psf-r0.fits -w 5760,7620,0.8 -o frame.fits".split(), comm=comm)

The pipeline itself extracts with spexd after :func:`install`, or after :mod:`spexd.desispec.in_place` was imported.
:func:`install_script` makes the program that ``desi_proc`` runs without MPI. Only :func:`install` needs desispec.
"""

from __future__ import annotations

import argparse
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

from spexd.desispec import trace_shifts
from spexd.desispec._arguments import complete, idle, parse
from spexd.desispec._install import EXTRACT, TRACES, Installed, imported, install_script
from spexd.desispec._ranks import Ranks
from spexd.desispec._work import Work, log, logging_from

__all__ = ["Installed", "install", "install_script", "main", "main_gpu_specter", "main_mpi", "parse", "trace_shifts"]

Arguments = Sequence[str] | argparse.Namespace | None


def main(args: Arguments = None, comm: Any = None) -> None:
    """Extracts a frame and writes it. If the input is bad or a bundle fails, it raises and writes nothing.

    Args:
        args: command line without the program's name (default: this program's), or a namespace made by :func:`parse` or
            by the pipeline's own ``parse``.
        comm: an MPI communicator of mpi4py; all its ranks must call. They divide the bundles, rank 0 writes, and an
            error of one is raised on all. Default: MPI.COMM_WORLD with ``--mpi``, else none.

    If SPEXD_SERVER is set, rank 0 has the frame extracted there; the server reads the files by their paths.

    Raises:
        spexd.SpexdError: a subclass for each status code.
    """
    _run(args, comm, None)


def main_mpi(args: Arguments, comm: Any = None, timing: dict[str, float] | None = None) -> None:
    """Does what :func:`main` does, under the name that the pipeline uses for specter. ``timing`` gets "frame-start",
    "frame-setup", "frame-extract" and "frame-write", the times at which steps ended, in seconds since 1970."""
    _run(args, comm, timing)


def main_gpu_specter(
    args: Arguments, comm: Any = None, timing: dict[str, float] | None = None, coordinator: Any = None
) -> None:
    """Does what :func:`main` does, under the name that the pipeline uses for gpu_specter. Uses a coordinator's
    communicator."""
    _run(args, comm if coordinator is None else getattr(coordinator, "comm", None), timing)


def install(module: types.ModuleType | None = None, traces: types.ModuleType | None = None) -> Installed:
    """Makes the pipeline measure trace shifts and extract with spexd, including ``desi_proc`` under MPI.

    :func:`parse`, :func:`main`, :func:`main_mpi` and :func:`main_gpu_specter` replace the functions of these names in
    the imported module, and :func:`trace_shifts.parse` and :func:`trace_shifts.main` those in the module of trace
    shifts. Functions that other modules imported from these before are not replaced::

        installed = install()
        desispec.scripts.proc.main(args, comm)
        installed.undo()

    Args:
        module: default: ``desispec.scripts.extract``, which is imported.
        traces: default: ``desispec.scripts.trace_shifts``, which is imported.

    Returns:
        An object whose ``undo()`` removes them again. It is also a context manager.

    Raises:
        ImportError: desispec, or a package that it needs, is not installed.
    """
    functions: dict[str, Callable[..., Any]] = {
        "parse": parse,
        "main": main,
        "main_mpi": main_mpi,
        "main_gpu_specter": main_gpu_specter,
    }
    of_traces: dict[str, Callable[..., Any]] = {"parse": trace_shifts.parse, "main": trace_shifts.main}
    return Installed((imported(module, EXTRACT), functions), (imported(traces, TRACES), of_traces))


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
        work = Work(options, ranks.rank, ranks.placements())
        times["frame-setup"] = time.time()
        parts = ranks.together(work.extract)
        times["frame-extract"] = time.time()
        ranks.together(lambda: work.write(parts))
        times["frame-write"] = time.time()
    if timing is not None:
        timing.update(times)
