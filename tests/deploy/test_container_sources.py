"""The image is built only from the files that .dockerignore lets through; they must suffice."""

import pathlib
import shutil
import subprocess

SOURCES = pathlib.Path(__file__).resolve().parents[2]


def test_cmake_configures_the_programs_from_them_alone(tmp_path):
    for line in (SOURCES / ".dockerignore").read_text().splitlines():
        if not line.startswith("!"):
            continue
        source, copy = SOURCES / line[1:], tmp_path / line[1:]
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("*.md", "__pycache__"))
        else:
            shutil.copy(source, copy)
    configured = subprocess.run(["cmake", "--preset", "release"], cwd=tmp_path, capture_output=True, text=True)
    assert configured.returncode == 0, configured.stderr
