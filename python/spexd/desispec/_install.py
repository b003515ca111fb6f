"""Puts spexd in the place of the pipeline's own steps, in their modules or as their program."""

from __future__ import annotations

import importlib
import os
import pathlib
import shlex
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from spexd.errors import AlreadyExistsError, NotFoundError

EXTRACT = "desispec.scripts.extract"
TRACES = "desispec.scripts.trace_shifts"
PROGRAM = "desi_extract_spectra"


class Installed:
    """Functions that replaced others in modules. As a context manager it restores the others at its end."""

    def __init__(self, *replaced: tuple[types.ModuleType, Mapping[str, Callable[..., Any]]]) -> None:
        self._before = [
            (module, name, getattr(module, name, None), hasattr(module, name))
            for module, functions in replaced
            for name in functions
        ]
        for module, functions in replaced:
            for name, function in functions.items():
                setattr(module, name, function)

    def undo(self) -> None:
        """Restores what the modules had before. A second call does nothing. Undo the last installation first."""
        for module, name, function, existed in self._before:
            if existed:
                setattr(module, name, function)
            else:
                delattr(module, name)
        self._before = []

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, *error: object) -> None:
        self.undo()


def imported(module: types.ModuleType | None, name: str) -> types.ModuleType:
    """Returns the module, imported by name if it is not given."""
    return importlib.import_module(name) if module is None else module


def install_script(folder: str | os.PathLike[str], name: str = PROGRAM) -> pathlib.Path:
    """Writes a program that extracts with spexd, under the name of the pipeline's own program, and returns its path.

    Without MPI the pipeline runs this program instead of calling a function. The package does not install it, because
    desispec has a program of that name. Put ``folder`` first in ``PATH``::

        install_script("spexd-bin")

    Args:
        folder: an existing folder, other than that of the pipeline's program.
        name: the program's name.

    Raises:
        spexd.NotFoundError: the folder does not exist.
        spexd.AlreadyExistsError: the folder has another file of that name.
    """
    path = pathlib.Path(folder) / name
    text = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m spexd.desispec "$@"\n'
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755)
    except FileExistsError:
        if path.is_file() and path.read_bytes() == text.encode():
            return path
        raise AlreadyExistsError(f"{path} exists and is another program; choose another folder") from None
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"{path.parent} is not a folder") from None
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path
