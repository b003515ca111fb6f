"""Console scripts that start the package's programs. Importing the package would load numpy, so they are outside of
it and start at once."""

import os
import sys
from typing import NoReturn

_PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spexd", "_tree", "bin")


def _run(name: str) -> NoReturn:
    os.environ.setdefault("SPEXD_PYTHON", sys.executable)  # for `spex plot`
    os.execv(os.path.join(_PROGRAMS, name), [name, *sys.argv[1:]])


def spex() -> NoReturn:
    _run("spex")


def spexd() -> NoReturn:
    _run("spexd")
