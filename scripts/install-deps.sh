#!/usr/bin/env bash
# Installs the packages that spexd needs to build, and quickstart.sh to run, on Debian 12 or Ubuntu 24.04.
# Does nothing if all are installed, so scripts may call it at any time; otherwise it needs root or sudo.
# The tests need more (scripts/install-test-deps.sh).
#
#   scripts/install-deps.sh [PACKAGE...]    with further packages
set -euo pipefail

packages=(
  build-essential cmake ninja-build pkg-config
  libabsl-dev libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libcfitsio-dev libdeflate-dev libisal-dev zlib1g-dev libhwy-dev libsleef-dev libopenblas-dev liblapacke-dev liberfa-dev
  prometheus-cpp-dev libmicrohttpd-dev libssl-dev libcli11-dev nlohmann-json3-dev
  curl python3 python3-numpy python3-matplotlib python3-astropy
  "$@"
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
done
[ "${#missing[@]}" -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "install-deps: apt-get not found; install these packages by hand: ${missing[*]}" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then sudo=(sudo); fi
echo "installing: ${missing[*]}"
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
