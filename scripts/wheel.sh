#!/usr/bin/env bash
# Builds wheels that need nothing but Python, on Debian 12: `spexd`, one for every Python since 3.10 and every distribution
# since glibc 2.34, with the programs and the libraries that they use, and `spexd-cuda`, the CUDA engine, where there is nvcc.
# Prints what auditwheel and abi3audit say of them. The same commit in the same folder gives the same bytes, with the same
# packages of Debian and the same nvcc.
#
#   scripts/wheel.sh [OUTPUT_FOLDER]    build/wheel/dist without one
#
# SPEXD_CUDA=ON fails without nvcc, SPEXD_CUDA=OFF leaves spexd-cuda out in any case. Exit code 77: PyPI cannot be reached.
set -euo pipefail
umask 022
output=$(realpath -m "${1:-build/wheel/dist}")
cd "$(dirname "$0")/.."
platform=manylinux_2_34_x86_64

if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) || {
    echo "wheel: there is no commit to take the date from: set SOURCE_DATE_EPOCH" >&2
    exit 1
  }
fi
export SOURCE_DATE_EPOCH
scripts/install-deps.sh git python3-dev python3-venv
work=$PWD/build/wheel
env=$work/env
scripts/pypi-env.sh "$env" scripts/wheel/requirements.txt
PATH=$env/bin:$PATH

# GPU code: machine code for compute capabilities 8.0 and 9.0, and PTX for later ones (cmake/Cuda.cmake).
rm -rf "$work"/{raw,stubs,repaired,tree}
pip --disable-pip-version-check --quiet wheel --no-build-isolation --no-deps --wheel-dir "$work/raw" \
  --config-settings=build-dir="$work/build" --config-settings=cmake.define.SPEXD_CUDA="${SPEXD_CUDA:-AUTO}" \
  --config-settings=cmake.define.CMAKE_CXX_FLAGS="-ffile-prefix-map=$PWD/=" ./python

scripts/wheel/stubs.sh "$work/stubs" "$work/build/bin/spexd"
LD_LIBRARY_PATH=$work/stubs auditwheel repair --plat "$platform" --wheel-dir "$work/repaired" "$work"/raw/spexd-*.whl
wheel unpack --dest "$work/tree" "$work"/repaired/spexd-*.whl
tree=$(echo "$work"/tree/spexd-*)
version=${tree##*-}

# The second wheel has one file, which uses the first wheel's libraries, and NVIDIA's wheel of cuBLAS if it is installed.
module=spexd/_tree/lib/spexd/libspexd_cuda.so
if [ -e "$tree/$module" ]; then
  compiler=$(echo "$work"/build/CMakeFiles/*/CMakeCUDACompiler.cmake)
  cuda_major=$(sed -n 's/^set(CMAKE_CUDA_COMPILER_VERSION "\([0-9]*\).*/\1/p' "$compiler")
  toolkit=$(sed -n 's/^set(CMAKE_CUDA_COMPILER_TOOLKIT_ROOT "\(.*\)")/\1/p' "$compiler")
  cuda_tree=$work/tree/spexd_cuda-$version
  metadata=$cuda_tree/spexd_cuda-$version.dist-info
  mkdir -p "$metadata/licenses" "$cuda_tree/${module%/*}"
  mv "$tree/$module" "$cuda_tree/$module"
  rmdir -p --ignore-fail-on-non-empty "$tree/${module%/*}"
  from_module=\$ORIGIN/../../../..
  patchelf --force-rpath --set-rpath "$from_module/spexd.libs:$from_module/nvidia/cu$cuda_major/lib" "$cuda_tree/$module"
  cat >"$metadata/METADATA" <<METADATA
Metadata-Version: 2.1
Name: spexd-cuda
Version: $version
Summary: CUDA engine of spexd, which extracts spectra of multi-fibre spectrographs on NVIDIA GPUs
License: Apache-2.0, with NVIDIA's CUDA runtime
Requires-Python: >=3.10
Requires-Dist: spexd==$version
Provides-Extra: products
Requires-Dist: nvidia-cublas>=$cuda_major,<$((cuda_major + 1)); extra == "products"
METADATA
  cat >"$metadata/WHEEL" <<WHEEL
Wheel-Version: 1.0
Generator: scripts/wheel.sh
Root-Is-Purelib: false
Tag: py3-none-$platform
WHEEL
  # The toolkit's licence: from NVIDIA's installer, its wheels or its packages.
  for licence in "$toolkit/EULA.txt" "$toolkit"/dist-info/nvidia_cuda_runtime-*/licenses/License.txt \
      /usr/share/doc/cuda-cudart-dev-*/copyright; do
    [ ! -e "$licence" ] || break
  done
  cp LICENSE "$metadata/licenses"
  scripts/wheel/licences.py "$cuda_tree" liblapacke-dev "NVIDIA CUDA runtime=$licence"
  rm -f "$output"/spexd_cuda-*.whl
else
  echo "wheel: without spexd-cuda, as SPEXD_CUDA is OFF or no nvcc works, of PATH or /usr/local/cuda/bin" >&2
fi

mkdir -p "$tree/spexd-$version.dist-info/licenses" "$output"
cp LICENSE "$tree/spexd-$version.dist-info/licenses"
scripts/wheel/licences.py "$tree" libcli11-dev liblapacke-dev nlohmann-json3-dev \
  "nanobind=$(echo "$env"/lib/python3*/site-packages/nanobind-*.dist-info/licenses/LICENSE)"

rm -f "$output"/spexd*-"$version"-*.whl
for packed in "$work"/tree/*; do wheel pack --dest-dir "$output" "$packed"; done
auditwheel show "$output"/spexd-"$version"-*.whl
abi3audit --strict --summary "$output"/spexd-"$version"-*.whl
ls -l "$output"/*.whl
