#!/usr/bin/env bash
# Runs Python in the environment that python_package_test made, for ctest. Exits with 77 and the reason if skipped.
#
#   with_package.sh BUILD_FOLDER ARGUMENT...    ARGUMENT: for python
set -euo pipefail
python=$1/python-env/bin/python
if ! "$python" -c "import spexd, grpc, astropy, distributed" 2>/dev/null; then
  echo "with_package: $1/python-env has no spexd; python_package_test makes it"
  exit 77
fi
exec "$python" "${@:2}"
