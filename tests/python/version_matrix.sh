#!/usr/bin/env bash
# Tests the wheel that python_package_test built with other versions of grpcio, protobuf and numpy, for ctest. Each combination
# has its own environment. Exits with 77 and the reason if skipped.
#
#   version_matrix.sh BUILD_FOLDER
set -euo pipefail
build=$1
sources=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
# Every major version of protobuf since 3.20. python_package_test covers Debian's versions and the newest ones.
combinations=(
  "grpcio==1.51.3 protobuf==3.20.3 numpy==1.23.5"
  "grpcio==1.54.3 protobuf==4.21.12 numpy==1.24.4"
  "grpcio==1.62.3 protobuf==4.25.8 numpy==1.26.4"
  "grpcio==1.71.2 protobuf==5.29.5 numpy==2.2.6"
  "grpcio==1.76.0 protobuf==6.33.0 numpy==2.3.5"
  "grpcio==1.85.1 protobuf==7.36.0 numpy==2.4.6"
)

wheels=("$build"/python-env/wheel/*.whl)
if [ ! -e "${wheels[0]}" ]; then
  echo "version_matrix: $build/python-env has no wheel; python_package_test builds it"
  exit 77
fi
mkdir -p "$build/python-versions"
failed=()
for combination in "${combinations[@]}"; do
  name=${combination//==/-}
  environment=$build/python-versions/${name// /_}
  printf '%s\n' $combination astropy pytest >"$environment.txt"  # one per line
  "$sources/scripts/pypi-env.sh" "$environment" "$environment.txt"
  "$environment/bin/pip" --disable-pip-version-check --quiet install --no-deps --no-index --force-reinstall "${wheels[@]}"
  echo "== $combination"
  tests=()
  for module in in_process products async remote remote_products; do tests+=("$sources/tests/python/test_$module.py"); done
  "$environment/bin/python" -m pytest -q -rs --color=no -p no:cacheprovider "${tests[@]}" || failed+=("$combination")
done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'version_matrix: failed with %s\n' "${failed[@]}"
  exit 1
fi
