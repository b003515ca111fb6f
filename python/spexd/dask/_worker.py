"""The task of a worker: it runs ``spex night``."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

import distributed

import spexd
from spexd.errors import FailedPreconditionError

_LOOK_SECONDS = 0.1  # between checks whether the task is still wanted
_MESSAGE_BYTES = 2000
# Starts a program that is killed when the thread that started it ends, however it ends: a killed worker leaves no spex
# behind, and its frames are free. It runs no Python code between fork and exec, because of the threads.
_START = """import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclasses.dataclass(frozen=True)
class End:
    """The end of a run."""

    code: int  #: exit code of spex; negative: the signal that killed it
    message: str  #: the end of spex's error output
    #: The error of each output, "" if its files exist; None if spex wrote no summary.
    frames: Mapping[str, str] | None = None
    exposures: Mapping[str, str] = dataclasses.field(default_factory=dict)


def run_night(key: str, arguments: Sequence[str], threads: int, folder: str) -> End:
    """Runs ``spex night`` in a folder until it ends or the task of this key is no longer wanted."""
    worker = distributed.get_worker()
    # The process has its own group, so that a Ctrl-C on the caller's terminal reaches only the caller.
    with tempfile.TemporaryDirectory(prefix="spexd-night-") as own, open(os.path.join(own, "stderr"), "w+b") as said:
        summary = os.path.join(own, "night.json")
        command = [_program(), "night", *arguments, "--quiet", "--progress", "none", "--json", summary]
        command += ["--threads", str(threads or worker.state.nthreads)]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _START, str(os.getpid()), *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
        try:
            while not _has_ended(process):
                task = worker.state.tasks.get(key)
                if task is None or task.state != "executing":  # cancelled, or its client is gone
                    break
        finally:
            process.terminate()  # no effect if it has ended
            code = process.wait()
        said.seek(max(0, said.seek(0, os.SEEK_END) - _MESSAGE_BYTES))
        message = said.read().decode(errors="replace").strip()
        if not os.path.exists(summary):
            return End(code, message)
        with open(summary, encoding="utf-8") as file:
            night = json.load(file)
    kinds = [
        {
            os.path.normpath(os.path.join(folder, one["output"])): one.get("error", "not reached")
            if one["state"] in ("failed", "not reached")
            else ""
            for one in night[kind]
        }
        for kind in ("frames", "exposures")
    ]
    return End(code, message, *kinds)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_LOOK_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _program() -> str:
    """Returns the program spex of this package, or that on PATH."""
    own = os.path.join(os.path.dirname(spexd.__file__), "_tree", "bin", "spex")
    path = own if os.access(own, os.X_OK) else shutil.which("spex")
    if path is None:
        raise FailedPreconditionError(f"this worker has no program spex: neither {own} nor one on PATH")
    return path
