#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests. The first run takes about 25 minutes on 2 cores.
#
#   ./test.sh [CTEST_ARGUMENT...]             tests that need no daemon, no network and no idle machine
#   ./test.sh --system [CTEST_ARGUMENT...]    those with real daemons, hundreds of kills, load, fuzzing, packages: some hours
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tier=(-LE system)
if [ "${1:-}" = --system ]; then
  shift
  tier=(-L system)
  ./scripts/install-system-test-deps.sh
  ./scripts/debian-packages.sh
  ./scripts/wheel.sh build/wheels || [ $? -eq 77 ]  # without PyPI there are no wheels, and wheels_test is skipped
fi
./scripts/install-test-deps.sh
# A first build compiles several files at a time, which halves the time. Later builds stay as they are configured.
unity=()
[ -f build/dev/CMakeCache.txt ] || unity=(-DSPEXD_UNITY=ON)
cmake --preset dev "${unity[@]}"
cmake --build --preset dev
exec ./scripts/run_tests.py dev "${tier[@]}" "$@"
