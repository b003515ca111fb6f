#!/usr/bin/env bash
# Compares products with those of desispec and rvspecfit, and the time for velocities with rvspecfit's; runs desispec with spexd
# as its extractor. For ctest. The wheel is from python_package_test, the other programs are in the environment of
# pipeline_test. Exits with 77 if skipped.
#
#   peers.sh BUILD_FOLDER
set -euo pipefail
build=$1
tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
wheels=("$build"/python-env/wheel/*.whl)
if [ ! -e "${wheels[0]}" ]; then
  echo "peers: $build/python-env has no wheel; python_package_test builds it"
  exit 77
fi
"$tests/../../../scripts/pipeline-env.sh" "$build/pipeline-env"
python=$build/pipeline-env/bin/python
package=$build/python-env/beside-peers
rm -rf "$package"
"$python" -m pip --disable-pip-version-check --quiet install --no-deps --no-index --target "$package" "${wheels[@]}"
export PYTHONPATH=$package${PYTHONPATH:+:$PYTHONPATH}
"$python" -m pytest -q -rs --color=no -p no:cacheprovider "$tests"
"$python" "$tests/measure_velocities.py" --bin "$build/bin" --check
