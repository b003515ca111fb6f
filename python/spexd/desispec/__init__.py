"""The extraction step of the DESI pipeline, with the arguments of its own (``desispec.scripts.extract``), and its
measurement of trace shifts, :mod:`spexd.desispec.trace_shifts`.

::

    from spexd.desispec import main
    main("-i preproc-r0.fits -p psf-r0.fits -w 5760,7620,0.8 -o frame.fits".split(), comm=comm)

The pipeline itself extracts with spexd after :func:`install`, or once :mod:`spexd.desispec.in_place` was imported.
:func:`install_script` makes the program that ``desi_proc`` runs without MPI. All but :func:`install` works without
desispec.
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
    """:func:`main` by the name that the pipeline has for specter. ``timing`` gets the times
    "frame-start", "frame-setup", "frame-extract" and "frame-write" at which a step ended, in seconds since 1970."""
    _run(args, comm, timing)


def main_gpu_specter(
    args: Arguments, comm: Any = None, timing: dict[str, float] | None = None, coordinator: Any = None
) -> None:
    """:func:`main` by the name that the pipeline has for gpu_specter. A coordinator's communicator is taken."""
    _run(args, comm if coordinator is None else getattr(coordinator, "comm", None), timing)


def install(module: types.ModuleType | None = None, traces: types.ModuleType | None = None) -> Installed:
    """Makes the pipeline measure trace shifts and extract with spexd, ``desi_proc`` under MPI included.

    :func:`parse`, :func:`main`, :func:`main_mpi` and :func:`main_gpu_specter` take the places of the functions of
    these names in the imported module, and :func:`trace_shifts.parse` and :func:`trace_shifts.main` those in the module
    of trace shifts. Functions that others imported from these before stay as they are::

        installed = install()
        desispec.scripts.proc.main(args, comm)
        installed.undo()

    Args:
        module: default: ``desispec.scripts.extract``, which is imported.
        traces: default: ``desispec.scripts.trace_shifts``, which is imported.

    Returns:
        What takes them out again: call ``undo()``, or use it as a context manager.

    Raises:
        ImportError: desispec, or what it needs, is not installed.
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
