"""The version of the installed package."""

import importlib.metadata
import subprocess

from conftest import BIN

import spexd


def test_it_is_what_its_metadata_and_spex_say():
    said = subprocess.run([BIN / "spex", "--version"], check=True, capture_output=True, text=True).stdout
    program, _, version = said.strip().partition(" ")
    assert program == "spex" and version.partition("+")[0] == spexd.__version__
    assert importlib.metadata.version("spexd") == spexd.__version__
