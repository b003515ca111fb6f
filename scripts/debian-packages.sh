#!/usr/bin/env bash
# Builds the Debian packages into build/deb/packages, for the release that it runs on.
#
#   scripts/debian-packages.sh [CMAKE ARGUMENT...]    such as -DSPEXD_PACKAGE_CONTACT="Name <mail>" or -DSPEXD_CUDA=ON
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-deps.sh dpkg-dev file gzip
cmake --preset deb "$@"
cmake --build --preset deb
rm -rf build/deb/packages
(cd build/deb && umask 022 && cpack)
ls -l build/deb/packages/*.deb
