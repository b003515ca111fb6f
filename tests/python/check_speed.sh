#!/usr/bin/env bash
# Holds the Python package to its limits of time, for ctest, in the environment that python_package_test made. Exit code
# 77: skipped, with the reason.
#
#   check_speed.sh BUILD_FOLDER OPTION...    OPTION: of measure.py
set -euo pipefail
build=$1
shift
python=$build/python-env/bin/python
if ! "$python" -c "import spexd, grpc, astropy" 2>/dev/null; then
  echo "check_speed: $build/python-env has no spexd; python_package_test makes it"
  exit 77
fi
"$python" "$(dirname "${BASH_SOURCE[0]}")/measure.py" --bin "$build/bin" --check "$@"
