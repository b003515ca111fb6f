#!/usr/bin/env bash
# Makes a virtual environment with the Python package spexd, built from these sources, and what its tests need from PyPI.
# Exit code 77, with the reason, where PyPI cannot be reached.
#
#   scripts/python-env.sh FOLDER [SETTING...]    SETTING: of scikit-build-core, as cmake.build-type=None
set -euo pipefail
folder=$(realpath -m "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
requirements=tests/python/requirements.txt

if [ -e "$folder" ] && [ ! -e "$folder/pyvenv.cfg" ]; then
  echo "python-env: $folder is there, and is no virtual environment" >&2
  exit 2
fi
if ! cmp -s "$requirements" "$folder/made-from"; then
  rm -rf "$folder"
  # Debian's Python: its headers are among the packages that install-deps.sh installs.
  /usr/bin/python3 -m venv "$folder"
  pip=("$folder/bin/pip" --disable-pip-version-check --quiet --retries 1 --timeout 15)
  if ! "${pip[@]}" download --no-deps --dest "$folder/reach" nanobind; then
    echo "python-env: skipped: PyPI cannot be reached" >&2
    exit 77
  fi
  "${pip[@]}" install --requirement "$requirements"
  cp "$requirements" "$folder/made-from"
fi

settings=()
for setting in "$@"; do settings+=("--config-settings=$setting"); done
rm -rf "$folder/wheel"
"$folder/bin/pip" --disable-pip-version-check --quiet wheel --no-build-isolation --no-deps --wheel-dir "$folder/wheel" \
  "${settings[@]}" ./python
"$folder/bin/pip" --disable-pip-version-check --quiet install --no-deps --force-reinstall "$folder"/wheel/spexd-*.whl
