"""The package's annotations pass `mypy --strict`. Needs mypy."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

import spexd

SOURCES = pathlib.Path(__file__).parents[2] / "python"


def test_the_packages_own_modules_are_clean_under_mypy_strict(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("needs mypy")
    package = pathlib.Path(spexd.__file__).parent
    paths = [path.relative_to(package.parent) for path in package.rglob("*.py")]
    own = [path for path in paths if path.parts[1] not in ("v1", "_tree")]  # no generated messages or scripts of spex
    names = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in own]
    assert {"spexd", "spexd.engine", "spexd.client", "spexd.desispec", "spexd.dask"} <= set(names)
    modules = [argument for name in sorted(names) for argument in ("-m", name)]
    settings = ["--config-file", SOURCES / "pyproject.toml", "--cache-dir", tmp_path / "cache"]
    command = [sys.executable, "-m", "mypy", *settings, *modules]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
