#!/usr/bin/env bash
# Compares the values in line_stack_test.cc with pyrocko's own, for ctest. Exit code 77: skipped without PyPI.
#
#   run.sh FOLDER    where pyrocko's environment is kept
set -euo pipefail
folder=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
../../../scripts/pypi-env.sh "$folder" requirements.txt
exec "$folder/bin/python" check_parstack.py ../line_stack_test.cc
