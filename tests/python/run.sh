#!/usr/bin/env bash
# Builds the Python package and runs its tests, for ctest. Exits with 77 and the reason if skipped.
#
#   run.sh BUILD_FOLDER COMPILER SETTING...
set -euo pipefail
build=$1
export CXX=$2  # ccache compares the compiler's name too
shift 2
sources=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
"$sources/scripts/python-env.sh" "$build/python-env" "$@"
# peers/peers.sh runs the tests in `peers`, which need other packages.
test_with() {
  "$1/bin/python" -m pytest -q -rs --color=no --durations=5 -p no:cacheprovider "$sources/tests/python" \
    --ignore "$sources/tests/python/peers" --ignore "$sources/tests/python/measure" "${@:2}"
}
# Some modules need packages that are not installed here.
test_with "$build/python-env" --doctest-modules --doctest-ignore-import-errors --pyargs spexd

# Tests the same wheel with Debian's numpy, grpcio and protobuf, which are years older.
debian=$build/python-env/debian
[ -d "$debian" ] || /usr/bin/python3 -m venv --system-site-packages "$debian"
"$debian/bin/pip" --disable-pip-version-check --quiet install --no-deps --no-index --force-reinstall "$build"/python-env/wheel/*.whl
test_with "$debian"
