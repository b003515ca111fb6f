#!/usr/bin/env bash
# Installs what the second tier of tests needs beside the packages of the first: real daemons, a browser, tools of packages and images.
# Needs root or sudo where something is missing. The daemons that it installs are started by the tests alone: stop those that
# your system starts by itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec scripts/install-test-deps.sh \
  chromium prometheus nginx iproute2 slurmctld slurmd slurm-client munge \
  clang libclang-rt-dev llvm \
  dpkg-dev file gzip mmdebstrap buildah sudo groff zsh fish systemd \
  python3-sphinx python3-myst-parser furo
