#!/usr/bin/env bash
# Makes a virtual environment with packages from PyPI. An environment made from the same requirements is reused.
# Exit code 77 if PyPI cannot be reached. The caller decides whether that is a failure.
#
#   scripts/pypi-env.sh FOLDER REQUIREMENTS    REQUIREMENTS: a file for pip
set -euo pipefail
folder=$(realpath -m "$1")
requirements=$2

if [ -e "$folder" ] && [ ! -e "$folder/pyvenv.cfg" ]; then
  echo "pypi-env: $folder exists but is not a virtual environment" >&2
  exit 2
fi
if cmp -s "$requirements" "$folder/made-from"; then exit 0; fi
rm -rf "$folder"
# Uses Debian's Python, whose headers are in the package python3-dev.
/usr/bin/python3 -m venv "$folder"
pip=("$folder/bin/pip" --disable-pip-version-check --quiet --retries 1 --timeout 15)
# A small package shows whether PyPI can be reached. A later failure is then one of the requirements.
if ! "${pip[@]}" download --no-deps --dest "$folder/reach" wheel; then
  echo "pypi-env: PyPI cannot be reached" >&2
  exit 77
fi
"${pip[@]}" install --requirement "$requirements"
cp "$requirements" "$folder/made-from"
