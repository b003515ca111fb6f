"""Runs the examples of the package's README unchanged, one after the other."""

import ast
import pathlib
import re
import shlex

import pytest
from conftest import run_spex

README = (pathlib.Path(__file__).parents[2] / "python" / "README.md").read_text()


def printed(block):
    """Returns what a block's calls of print should print, according to its comments."""
    return re.findall(r"^\s*print\(.*\)\s+# (.+)$", block, re.MULTILINE)


def test_the_examples_of_the_readme_run(server, frames, monkeypatch, capsys):
    for package in ("scipy", "tqdm", "distributed"):
        pytest.importorskip(package)
    pytest.importorskip("matplotlib").use("Agg")
    folder = frames / "readme"  # a folder that the server may read
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SPEXD_SERVER", server.address)
    (simulate,) = re.findall(r"^\$ spex (simulate .*?)#", README, re.MULTILINE)
    run_spex(*shlex.split(simulate), folder=folder)

    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    names = {"__name__": "readme"}
    for block in blocks:
        exec(compile(ast.parse(block), "README.md", "exec"), names)
        output = capsys.readouterr().out
        for text in printed(block):
            assert text in output
    assert len(blocks) == 13 and sum(len(printed(block)) for block in blocks) == 9
    written = {"frame.fits", "sframe.fits", "coadd.fits", "pca.fits", "zlines_coadd.fits", "spectra.png"}
    written |= {"shifted-psf-r0.fits", "exposure", "spex-night.jsonl", *(f"frame-{k}.fits" for k in range(8))}
    assert written <= {path.name for path in folder.iterdir()}
