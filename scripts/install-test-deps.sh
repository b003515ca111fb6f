#!/usr/bin/env bash
# Installs what the first tier of tests needs besides the build's packages, and a compiler cache for daily work.
# Needs root or sudo if something is missing.
#
#   scripts/install-test-deps.sh [PACKAGE...]    with further packages
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec scripts/install-deps.sh \
  ccache git help2man libgtest-dev libgmock-dev libcpp-httplib-dev mandoc openssl util-linux fitsverify libcfitsio-bin \
  python3-dev python3-venv python3-grpcio python3-fitsio python3-pytest python3-yaml \
  "$@"
