#!/usr/bin/env bash
# Builds the Debian packages into build/deb/packages, for the release on which it runs. python3-spexd needs nanobind from PyPI
# and is skipped, with a message, if PyPI cannot be reached.
#
#   scripts/debian-packages.sh [CMAKE ARGUMENT...]    such as -DSPEXD_PACKAGE_CONTACT="Name <mail>" or -DSPEXD_CUDA=ON
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-deps.sh dpkg-dev file git gzip help2man python3-dev python3-venv
nanobind=$PWD/build/deb-nanobind
if scripts/pypi-env.sh "$nanobind" deploy/debian/python3-spexd/build-requirements.txt; then
  python=(-DSPEXD_PYTHON=ON "-DPython_EXECUTABLE=$nanobind/bin/python" "-Dnanobind_DIR=$("$nanobind/bin/python" -m nanobind --cmake_dir)")
else
  [ $? -eq 77 ] || exit 1
  echo "debian-packages: without python3-spexd" >&2
  python=(-DSPEXD_PYTHON=OFF)
fi
cmake --preset deb "${python[@]}" "$@"
cmake --build --preset deb
rm -rf build/deb/packages
(cd build/deb && umask 022 && cpack)
ls -l build/deb/packages/*.deb
