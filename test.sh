#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests. On 2 cores about 15 minutes the first time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

./scripts/install-deps.sh
cmake --preset dev
cmake --build --preset dev
ctest --preset dev "$@"
