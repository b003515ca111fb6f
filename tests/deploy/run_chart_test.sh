#!/usr/bin/env bash
# Tests the chart in a virtual environment with Helm and Kubernetes' schemas from PyPI. Exit code 77 if the environment
# cannot be made.
#
#   run_chart_test.sh FOLDER    where the environment is kept
set -euo pipefail
folder=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
if ! ../../scripts/pypi-env.sh "$folder" requirements.txt; then
  echo "skipped: PyPI cannot be reached, or has no Helm for this machine" >&2
  exit 77
fi
exec "$folder/bin/python" -m pytest -q -p no:cacheprovider test_chart.py
