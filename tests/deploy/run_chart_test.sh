#!/usr/bin/env bash
# Tests the chart in a virtual environment with Helm's library and Kubernetes' schemas from PyPI. Exit code 77 where PyPI cannot be reached.
#
#   run_chart_test.sh FOLDER    where the environment is kept
set -euo pipefail
folder=$1
cd "$(dirname "${BASH_SOURCE[0]}")"
if ! cmp -s requirements.txt "$folder/made-from"; then
  rm -rf "$folder"
  /usr/bin/python3 -m venv "$folder"
  pip=("$folder/bin/pip" --disable-pip-version-check --quiet --retries 1 --timeout 15)
  if ! "${pip[@]}" install --requirement requirements.txt; then
    echo "skipped: PyPI cannot be reached, or has no Helm library for this machine" >&2
    exit 77
  fi
  cp requirements.txt "$folder/made-from"
fi
exec "$folder/bin/python" -m pytest -q -p no:cacheprovider test_chart.py
