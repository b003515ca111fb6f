#!/usr/bin/env bash
# Makes a virtual environment with the DESI pipeline's package desispec, and rvspecfit, from PyPI: 0.8 GB, in about a minute.
# Fails if PyPI cannot be reached.
#
#   scripts/pipeline-env.sh FOLDER
set -euo pipefail
folder=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/pypi-env.sh "$folder" tests/client/pipeline/requirements.txt || exit 1
"$folder/bin/python" -c 'import desispec; print("desispec", desispec.__version__)'
