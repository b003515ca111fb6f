#!/usr/bin/env bash
# Makes a virtual environment with the Python package spexd, built from these sources, and what its tests need from PyPI.
# FOLDER/wheel has its wheel and that of nanobind-backend, without which it cannot be imported: other environments install
# both. Exit code 77, with the reason, if PyPI cannot be reached.
#
#   scripts/python-env.sh FOLDER [SETTING...]    SETTING: of scikit-build-core, as cmake.build-type=None
set -euo pipefail
folder=$(realpath -m "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/pypi-env.sh "$folder" tests/python/requirements.txt

settings=()
for setting in "$@"; do settings+=("--config-settings=$setting"); done
rm -rf "$folder/wheel"
"$folder/bin/pip" --disable-pip-version-check --quiet wheel --no-build-isolation --no-deps --wheel-dir "$folder/wheel" \
  "${settings[@]}" nanobind-backend ./python
"$folder/bin/pip" --disable-pip-version-check --quiet install --no-deps --force-reinstall "$folder"/wheel/*.whl
