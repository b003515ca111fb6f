#!/usr/bin/env bash
# Installs what the second tier of tests needs besides the packages of the first: real daemons, a browser, tools for packages
# and images.
# Needs root or sudo if something is missing. The tests start the daemons themselves: stop any that your system starts on its
# own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec scripts/install-test-deps.sh \
  chromium prometheus nginx iproute2 slurmctld slurmd slurm-client munge \
  clang libclang-rt-dev llvm \
  dpkg-dev file gzip mmdebstrap buildah sudo groff zsh fish systemd \
  python3-sphinx python3-myst-parser furo
