#!/usr/bin/env bash
# Passes the output of `spex` through the DESI pipeline's own code, for ctest. Fails if the environment cannot be made.
#
#   run.sh FOLDER    where the environment is kept; $SPEXD_BIN: the folder of spex
set -euo pipefail
folder=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
../../../scripts/pipeline-env.sh "$folder"
exec "$folder/bin/python" -m pytest -q -rs --color=no -p no:cacheprovider .
